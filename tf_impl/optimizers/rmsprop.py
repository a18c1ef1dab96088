"""RMSprop: the TensorFlow side of `reference/optimizers/rmsprop.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.optimizers.sgd import has_momentum
from tf_impl.tensors import Tensor


def _variance(r, m):
    # Rounding can make a variance negative; a NaN stays one.
    return tf.maximum(r - tf.square(m), 0.0)


def _plain(w, g, r, learning_rate, rho, one_minus_rho, epsilon):
    r = rho * r + one_minus_rho * tf.square(g)
    w = w - learning_rate * g / (tf.sqrt(r) + epsilon)
    return w, r


def _centered(w, g, r, m, learning_rate, rho, one_minus_rho, epsilon):
    r = rho * r + one_minus_rho * tf.square(g)
    m = rho * m + one_minus_rho * g
    w = w - learning_rate * g / (tf.sqrt(_variance(r, m)) + epsilon)
    return w, r, m


def _momentum(w, g, r, a, learning_rate, rho, one_minus_rho, epsilon, momentum):
    r = rho * r + one_minus_rho * tf.square(g)
    a = momentum * a + learning_rate * g / tf.sqrt(r + epsilon)
    w = w - a
    return w, r, a


def _momentum_centered(
    w, g, r, a, m, learning_rate, rho, one_minus_rho, epsilon, momentum
):
    r = rho * r + one_minus_rho * tf.square(g)
    m = rho * m + one_minus_rho * g
    a = momentum * a + learning_rate * g / tf.sqrt(_variance(r, m) + epsilon)
    w = w - a
    return w, r, a, m


class RMSprop(Optimizer):
    """RMSprop (Tieleman and Hinton, 2012, lecture 6e; centered: Graves, 2013,
    arXiv:1308.0850, equations 38 to 45).

    Slots: `rms`, the average `r` of squared gradients; `momentum` (with momentum), the
    velocity `a`, which has the learning rate inside; `mg` (centered), the average `m`
    of gradients.

    As in Keras, epsilon is outside the root without momentum and inside with it.
    Unlike Keras, the centered variance never falls below zero.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        rho: decay of the averages, 0 to 1, default 0.9.
        momentum: 0 to 1. Whether it is zero is decided when the optimizer is made.
        epsilon: 1e-7.
        centered: whether to divide by the deviation instead of the root mean square.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: without momentum, `rms` and `mg` on every row and the weights on
    touched rows; with momentum, touched rows.

    Raises:
        ValueError: `momentum` is outside 0 to 1.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        name: str = "RMSprop",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("rho", rho)
        self._momentum = has_momentum(momentum)
        self._set_hyper("momentum", momentum)
        self.epsilon = epsilon_or_default(epsilon)
        self.centered = centered
        if self._momentum and centered:
            self._define(_momentum_centered, {"rms": 0.0, "momentum": 0.0, "mg": 0.0})
        elif self._momentum:
            self._define(_momentum, {"rms": 0.0, "momentum": 0.0})
        elif centered:
            self._define(_centered, {"rms": 0.0, "mg": 0.0}, every_row=("rms", "mg"))
        else:
            self._define(_plain, {"rms": 0.0}, every_row=("rms",))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        rho = self._real_hyper("rho")
        coefficients = {
            "learning_rate": learning_rate,
            "rho": rho,
            "one_minus_rho": 1 - rho,
            "epsilon": self.epsilon,
        }
        if self._momentum:
            coefficients["momentum"] = self._real_hyper("momentum")
        return coefficients

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("rho", "momentum"),
            "epsilon": self.epsilon,
            "centered": self.centered,
        }
