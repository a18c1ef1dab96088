"""Optimistic methods: the TensorFlow side of `reference/optimizers/optimistic.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor


def _step(w, u, previous, is_first, learning_rate, alpha, beta):
    change = tf.where(is_first > 0, tf.zeros_like(u), u - previous)
    return w - learning_rate * (alpha * u + beta * change)


def _descent(w, g, previous, **coefficients):
    return _step(w, g, previous, **coefficients), g


def _adam(
    w,
    g,
    m,
    v,
    direction,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    share_of_m,
    share_of_g,
    bias_of_v,
    epsilon,
    **coefficients,
):
    m = beta_1 * m + one_minus_beta_1 * g
    v = beta_2 * v + one_minus_beta_2 * tf.square(g)
    u = (share_of_m * m + share_of_g * g) / (tf.sqrt(v / bias_of_v) + epsilon)
    return _step(w, u, direction, **coefficients), m, v, u


class OptimisticGradientDescent(Optimizer):
    """Optimistic gradient descent (Mokhtari, Ozdaglar and Pattathil, 2019,
    arXiv:1901.08511), as in optax.

    Slot `previous_gradient`.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.01.
        alpha, beta: factors of the gradient and of its change, 1.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        alpha: Any = 1.0,
        beta: Any = 1.0,
        name: str = "OptimisticGradientDescent",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("alpha", alpha)
        self._set_hyper("beta", beta)
        slots = {"previous_gradient": 0.0}
        self._define(_descent, slots, every_row=("w", *slots))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        return {
            "is_first": tf.cast(tf.equal(t, 1), t.dtype),
            "learning_rate": learning_rate,
            "alpha": self._real_hyper("alpha"),
            "beta": self._real_hyper("beta"),
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("alpha", "beta"),
        }


class OptimisticAdam(Optimizer):
    """Optimistic Adam (Daskalakis et al., 2017, arXiv:1711.00141, algorithm 1), as
    optax.optimistic_adam_v2.

    Slots: `m` and `v`, the averages of gradients and squared gradients; `direction`,
    Adam's of the step before.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        alpha, beta: factors of Adam's direction and of its change, 1.
        beta_1, beta_2: decay of `m` and `v`, 0 to below 1, defaults 0.9 and 0.999.
        epsilon: outside the root of the corrected `v`, 1e-8.
        nesterov: whether `m` looks a step ahead, as optax has it; default true.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        alpha: Any = 1.0,
        beta: Any = 1.0,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-8,
        nesterov: bool = True,
        name: str = "OptimisticAdam",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("alpha", alpha)
        self._set_hyper("beta", beta)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self.epsilon = epsilon_or_default(epsilon)
        self.nesterov = nesterov
        slots = {"m": 0.0, "v": 0.0, "direction": 0.0}
        self._define(_adam, slots, every_row=("w", *slots))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("beta_1")
        beta_2 = self._real_hyper("beta_2")
        if self.nesterov:
            share_of_m = beta_1 / (1 - beta_1 ** (t + 1))
            share_of_g = (1 - beta_1) / (1 - beta_1**t)
        else:
            share_of_m = 1 / (1 - beta_1**t)
            share_of_g = tf.zeros_like(t)
        return {
            "is_first": tf.cast(tf.equal(t, 1), t.dtype),
            "learning_rate": learning_rate,
            "alpha": self._real_hyper("alpha"),
            "beta": self._real_hyper("beta"),
            "beta_1": beta_1,
            "one_minus_beta_1": 1 - beta_1,
            "beta_2": beta_2,
            "one_minus_beta_2": 1 - beta_2,
            "share_of_m": share_of_m,
            "share_of_g": share_of_g,
            "bias_of_v": 1 - beta_2**t,
            "epsilon": self.epsilon,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("alpha", "beta", "beta_1", "beta_2"),
            "epsilon": self.epsilon,
            "nesterov": self.nesterov,
        }
