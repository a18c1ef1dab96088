"""Adagrad: the TensorFlow side of `reference/optimizers/adagrad.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor


def _adagrad(w, g, n, learning_rate, epsilon):
    n = n + tf.square(g)
    w = w - learning_rate * g / (tf.sqrt(n) + epsilon)
    return w, n


def _adagrad_inside(w, g, n, learning_rate, epsilon):
    n = n + tf.square(g)
    w = w - learning_rate * g / tf.sqrt(n + epsilon)
    return w, n


def _kernel(w, g, n, learning_rate, epsilon):
    return tf.raw_ops.ResourceApplyAdagradV2(
        var=w, accum=n, lr=learning_rate, epsilon=epsilon, grad=g
    )


class Adagrad(Optimizer):
    """Adagrad (Duchi, Hazan, Singer, 2011, JMLR 12).

    Slot `accumulator`: the sum `n` of squared gradients.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        initial_accumulator_value: where `n` starts, at least 0, default 0.1.
        epsilon: added outside the root, 1e-7.
        epsilon_inside: whether it is added inside, as in Keras 3 and optax.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows (a zero gradient changes nothing anyway).

    Raises:
        ValueError: `initial_accumulator_value` is negative.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        initial_accumulator_value: float = 0.1,
        epsilon: float = 1e-7,
        name: str = "Adagrad",
        epsilon_inside: bool = False,
        **kwargs: Any,
    ) -> None:
        if initial_accumulator_value < 0:
            raise ValueError(
                "`initial_accumulator_value` must be at least 0, "
                f"not {initial_accumulator_value!r}"
            )
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._initial_accumulator_value = initial_accumulator_value
        self.epsilon = epsilon_or_default(epsilon)
        self.epsilon_inside = epsilon_inside
        slots = {"accumulator": initial_accumulator_value}
        if epsilon_inside:
            self._define(_adagrad_inside, slots)
        else:
            self._define(_adagrad, slots, kernel=_kernel)

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        return {"learning_rate": learning_rate, "epsilon": self.epsilon}

    def get_config(self) -> dict[str, Any]:
        config = {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            "initial_accumulator_value": self._initial_accumulator_value,
            "epsilon": self.epsilon,
        }
        if self.epsilon_inside:
            config["epsilon_inside"] = True
        return config
