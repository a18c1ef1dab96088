"""Adafactor: the TensorFlow side of `reference/optimizers/adafactor.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Definition, Optimizer
from tf_impl.tensors import Tensor


def _rms(x: Tensor) -> Tensor:
    return tf.sqrt(tf.reduce_mean(tf.square(x)))


def _moved(
    w: Tensor, u: Tensor, rate: Tensor, smallest: Tensor, limit: Tensor
) -> Tensor:
    """Return `w`, moved along `u`, whose root mean square is `limit` at most."""
    length = rate * tf.maximum(smallest, _rms(w))
    # No division by `limit`: in functions, TensorFlow multiplies by its reciprocal.
    return w - length * limit / tf.maximum(limit, _rms(u)) * u


def _factored(
    w,
    g,
    r,
    c,
    rate,
    beta_2,
    one_minus_beta_2,
    epsilon_1,
    epsilon_2,
    clip_threshold,
):
    squares = tf.square(g) + epsilon_1
    r = beta_2 * r + one_minus_beta_2 * tf.reduce_mean(squares, axis=-1)
    c = beta_2 * c + one_minus_beta_2 * tf.reduce_mean(squares, axis=-2)
    # Roots first: r over its mean may be too small a number for float32.
    share = tf.sqrt(r) / tf.sqrt(tf.reduce_mean(r, axis=-1, keepdims=True))
    u = g / (share[..., tf.newaxis] * tf.sqrt(c)[..., tf.newaxis, :])
    return _moved(w, u, rate, epsilon_2, clip_threshold), r, c


def _unfactored(
    w,
    g,
    v,
    rate,
    beta_2,
    one_minus_beta_2,
    epsilon_1,
    epsilon_2,
    clip_threshold,
):
    v = beta_2 * v + one_minus_beta_2 * (tf.square(g) + epsilon_1)
    return _moved(w, g / tf.sqrt(v), rate, epsilon_2, clip_threshold), v


class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern, 2018, arXiv:1804.04235, algorithms 4 and 5).

    Takes the place of keras.optimizers.Adafactor, with the memory of the paper: a
    variable of two axes or more has the slots `r` and `c`, means over its last axis and
    over the last but one; others have `v`, of their own shape.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001; the largest
            step, as a part of the root mean square of the weights.
        beta_2_decay: second moments decay by `1 - t**beta_2_decay`, default -0.8.
        epsilon_1: added to squared gradients, 1e-30.
        epsilon_2: the least root mean square that weights count with, 1e-3.
        clip_threshold: the largest root mean square of a direction, 1.0.
        relative_step: whether the learning rate is at most `1 / sqrt(t)`; in Keras 3 it
            is in any case.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_2_decay: Any = -0.8,
        epsilon_1: float = 1e-30,
        epsilon_2: float = 1e-3,
        clip_threshold: float = 1.0,
        relative_step: bool = True,
        name: str = "Adafactor",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_2_decay", beta_2_decay)
        self.epsilon_1 = float(epsilon_1)
        self.epsilon_2 = float(epsilon_2)
        self.clip_threshold = float(clip_threshold)
        self.relative_step = relative_step
        self._factored = self._defined(
            _factored,
            {"r": 0.0, "c": 0.0},
            every_row=("w",),
            elementwise=False,
            shapes={
                "r": lambda shape: shape[:-1],
                "c": lambda shape: shape[:-2].concatenate(shape[-1:]),
            },
        )
        self._unfactored = self._defined(
            _unfactored, {"v": 0.0}, every_row=("w", "v"), elementwise=False
        )

    def _definition_for(self, var: tf.Variable) -> Definition:
        return self._factored if var.shape.rank >= 2 else self._unfactored

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        rate = learning_rate
        if self.relative_step:
            rate = tf.minimum(rate, 1 / tf.sqrt(t))
        one_minus_beta_2 = t ** self._real_hyper("beta_2_decay")
        return {
            "rate": rate,
            "beta_2": 1 - one_minus_beta_2,
            "one_minus_beta_2": one_minus_beta_2,
            "epsilon_1": self.epsilon_1,
            "epsilon_2": self.epsilon_2,
            "clip_threshold": self.clip_threshold,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta_2_decay"),
            "epsilon_1": self.epsilon_1,
            "epsilon_2": self.epsilon_2,
            "clip_threshold": self.clip_threshold,
            "relative_step": self.relative_step,
        }
