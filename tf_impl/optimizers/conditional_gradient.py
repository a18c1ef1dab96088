"""Conditional gradient: the TensorFlow side of
`reference/optimizers/conditional_gradient.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor


def _frobenius(w, g, learning_rate, reach, epsilon):
    return (learning_rate * w - reach / (tf.norm(g) + epsilon) * g,)


def _nuclear(w, g, learning_rate, reach, epsilon):
    return (learning_rate * w - reach * _top_singular_pair(g),)


def _top_singular_pair(g: Tensor) -> Tensor:
    """Return `u v^T` of the largest singular value of `g`, in its shape."""
    shape = tf.shape(g)
    last = tf.concat([[1], shape], axis=0)[-1]
    largest = tf.reduce_max(tf.abs(g))
    usable = tf.math.is_finite(largest) & (largest > 0)
    scale = tf.where(usable, largest, tf.ones_like(largest))
    matrix = tf.where(usable, g / scale, tf.zeros_like(g))
    _, u, v = tf.linalg.svd(tf.reshape(matrix, [-1, last]))
    pair = tf.reshape(u[:, :1] * v[:, 0], shape)
    # Zero times zero is zero, and times what is not finite NaN.
    return tf.where(usable, pair, tf.zeros_like(g) * largest)


class ConditionalGradient(Optimizer):
    """Conditional gradient, or Frank-Wolfe (Ravi, Dinh, Lokhande, Singh, 2018,
    arXiv:1803.06453).

    Replaces tensorflow_addons.optimizers.ConditionalGradient, whose slot
    `conditional_gradient`, never used, is left out; `decay` and schedules count here.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0 to 1: how much of
            the weights is kept. 0.99.
        lambda_: radius of the ball, 0.01.
        epsilon: added to the Frobenius norm, 1e-7.
        ord: `"fro"` or `"nuclear"`.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows; norms and singular vectors are those of the whole
    gradient.

    Raises:
        ValueError: `ord` is none of these.
    """

    def __init__(
        self,
        learning_rate: Any = 0.99,
        lambda_: Any = 0.01,
        epsilon: float = 1e-7,
        ord: str = "fro",
        name: str = "ConditionalGradient",
        **kwargs: Any,
    ) -> None:
        rules = {"fro": _frobenius, "nuclear": _nuclear}
        if ord not in rules:
            raise ValueError(f"`ord` must be 'fro' or 'nuclear', not {ord!r}")
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("lambda_", lambda_)
        self.epsilon = epsilon_or_default(epsilon)
        self.ord = ord
        self._define(rules[ord], {}, elementwise=False)

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        return {
            "learning_rate": learning_rate,
            "reach": (1 - learning_rate) * self._real_hyper("lambda_"),
            "epsilon": self.epsilon,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("lambda_"),
            "epsilon": self.epsilon,
            "ord": self.ord,
        }
