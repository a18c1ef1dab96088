"""Conditional gradient: the TensorFlow side of
`reference/optimizers/conditional_gradient.py`."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from tf_impl.base import Definition, Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor
from tf_impl.updates import Rule


def _frobenius(w, g, learning_rate, reach, epsilon):
    return (learning_rate * w - reach / (tf.norm(g) + epsilon) * g,)


# How often to square three times. Then only the largest of two singular values is left,
# unless they are so close that rounding decides: (1 - 2**-24)**(2**30) is nothing.
ROUNDS = {tf.float32: 10, tf.float64: 20}


@functools.cache
def _nuclear(tall: bool) -> Rule:
    def nuclear(w, g, learning_rate, reach, epsilon):
        return (learning_rate * w - reach * _corner(g, tall),)

    return nuclear


def _corner(g: Tensor, tall: bool) -> Tensor:
    """Return `u v^T` of the largest singular value of `g`, in its shape.

    Squared again and again, the Gram matrix becomes the projection on `u` or `v`, at
    the price of products of matrices alone, which all compilers know.
    """
    shape = tf.shape(g)
    last = tf.concat([[1], shape], axis=0)[-1]
    largest = tf.reduce_max(tf.abs(g))
    usable = tf.math.is_finite(largest) & (largest > 0)
    scale = tf.where(usable, largest, tf.ones_like(largest))
    matrix = tf.reshape(tf.where(usable, g / scale, tf.zeros_like(g)), [-1, last])
    gram = tf.matmul(matrix, matrix, transpose_a=tall, transpose_b=not tall)
    projection = gram
    for _ in range(ROUNDS[g.dtype]):
        # Its largest eigenvalue is now 1 / root(rows) at least; the eighth power fits.
        projection = tf.math.divide_no_nan(projection, tf.norm(projection))
        for _ in range(3):
            projection = tf.matmul(projection, projection)
    projection = tf.math.divide_no_nan(projection, tf.linalg.trace(projection))
    value = tf.sqrt(tf.reduce_sum(projection * gram))
    pair = tf.matmul(*((matrix, projection) if tall else (projection, matrix)))
    pair = tf.reshape(tf.math.divide_no_nan(pair, value), shape)
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
        if ord not in ("fro", "nuclear"):
            raise ValueError(f"`ord` must be 'fro' or 'nuclear', not {ord!r}")
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("lambda_", lambda_)
        self.epsilon = epsilon_or_default(epsilon)
        self.ord = ord
        self._define(_frobenius, {}, elementwise=False)
        self._wide, self._tall = (
            self._defined(_nuclear(tall), {}, elementwise=False)
            for tall in (False, True)
        )

    def _definition_for(self, var: tf.Variable) -> Definition:
        if self.ord == "fro":
            return self._definition
        columns = var.shape[-1] if var.shape.rank else 1
        tall = var.shape.num_elements() > columns**2
        return self._tall if tall else self._wide

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
