"""Proximal steps: the TensorFlow side of `reference/optimizers/proximal.py`."""

from __future__ import annotations

import numbers
from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.tensors import Tensor

L1, L2 = "l1_regularization_strength", "l2_regularization_strength"


def soft_threshold(z: Tensor, threshold: Tensor) -> Tensor:
    """Return `z` brought nearer to zero by `threshold`, no further than zero."""
    # The greater of the two last, so that a NaN stays one.
    return tf.sign(z) * tf.maximum(tf.abs(z) - threshold, 0.0)


def check_not_negative(**arguments: Any) -> None:
    """Raise a ValueError that names an argument that is a negative number."""
    for name, value in arguments.items():
        if isinstance(value, numbers.Real) and value < 0:
            raise ValueError(f"`{name}` must be at least 0, not {value!r}")


def _proximal(w, g, learning_rate, threshold, shrinkage):
    w = soft_threshold(w - learning_rate * g, threshold) / shrinkage
    return (w,)


def _proximal_adagrad(w, g, n, learning_rate, l1, l2):
    n = n + tf.square(g)
    rate = learning_rate / tf.sqrt(n)
    w = soft_threshold(w - rate * g, rate * l1) / (1 + rate * l2)
    return w, n


class ProximalGradientDescent(Optimizer):
    """Gradient descent with an l1 and a squared l2 penalty, by forward-backward
    splitting (Duchi and Singer, 2009, NIPS, sections 2 and 5).

    Takes the arguments of `tf.compat.v1.train.ProximalGradientDescentOptimizer`.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.01.
        l1_regularization_strength, l2_regularization_strength: at least 0, default 0.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows, the penalty included.

    Raises:
        ValueError: a strength is negative.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        name: str = "ProximalGradientDescent",
        **kwargs: Any,
    ) -> None:
        check_not_negative(
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper(L1, l1_regularization_strength)
        self._set_hyper(L2, l2_regularization_strength)
        self._define(_proximal, {})

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        return {
            "learning_rate": learning_rate,
            "threshold": learning_rate * self._real_hyper(L1),
            "shrinkage": 1 + learning_rate * self._real_hyper(L2),
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config(L1, L2),
        }


class ProximalAdagrad(Optimizer):
    """Adagrad with an l1 and a squared l2 penalty, by forward-backward splitting (Duchi
    and Singer, 2009, NIPS; Duchi, Hazan, Singer, 2011, JMLR 12, equation 4).

    Arguments, slots and config of TensorFlow Addons, and `decay` in the config too.

    Slot `accumulator`: the sum `n` of squared gradients. There is no epsilon.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        initial_accumulator_value: where `n` starts, at least 0, default 0.1.
        l1_regularization_strength, l2_regularization_strength: at least 0, default 0.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows, the penalty included.

    Raises:
        ValueError: `initial_accumulator_value` or a strength is negative.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        name: str = "ProximalAdagrad",
        **kwargs: Any,
    ) -> None:
        check_not_negative(
            initial_accumulator_value=initial_accumulator_value,
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper(L1, l1_regularization_strength)
        self._set_hyper(L2, l2_regularization_strength)
        self._initial_accumulator_value = float(initial_accumulator_value)
        self._define(
            _proximal_adagrad, {"accumulator": self._initial_accumulator_value}
        )

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        return {
            "learning_rate": learning_rate,
            "l1": self._real_hyper(L1),
            "l2": self._real_hyper(L2),
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            "initial_accumulator_value": self._initial_accumulator_value,
            **self._hyper_config(L1, L2),
        }
