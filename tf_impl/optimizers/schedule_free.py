"""Averaging: the TensorFlow side of `reference/optimizers/schedule_free.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import EVERY_ROW, Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor, compute_dtype


def _schedule_free(
    w,
    g,
    offset,
    v,
    learning_rate,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    bias_2,
    share,
    epsilon,
):
    v = beta_2 * v + one_minus_beta_2 * tf.square(g)
    x = w - one_minus_beta_1 / beta_1 * offset
    z = w + offset - learning_rate * g / (tf.sqrt(v / bias_2) + epsilon)
    x = x + share * (z - x)
    return one_minus_beta_1 * z + beta_1 * x, beta_1 * (z - x), v


class ScheduleFreeAdamW(Optimizer):
    """Schedule-free AdamW (Defazio et al., 2024, arXiv:2405.15682, algorithm 1), as in
    Keras 3: each point counts alike in the average.

    The variables are where gradients are taken; their averages, `averaged(var)`, are
    what one evaluates.

    Slots: `offset`, how far the point that takes Adam's steps is from the variable;
    `velocity`, the average of squared gradients.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.0025.
        beta_1: where variables are between that point (0) and the average (1), above 0,
            default 0.9.
        beta_2: decay of `velocity`, 0 to below 1, default 0.999.
        epsilon: outside the root of the corrected `velocity`, 1e-8.
        warmup_steps: steps over which the learning rate rises, 0.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.
    """

    _DECAY_ROWS = EVERY_ROW
    _DECAY_TIMES_LEARNING_RATE = True

    def __init__(
        self,
        learning_rate: Any = 0.0025,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-8,
        warmup_steps: Any = 0,
        name: str = "ScheduleFreeAdamW",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self._set_hyper("warmup_steps", warmup_steps)
        self.epsilon = epsilon_or_default(epsilon)
        slots = {"offset": 0.0, "velocity": 0.0}
        self._define(_schedule_free, slots, every_row=("w", *slots))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("beta_1")
        beta_2 = self._real_hyper("beta_2")
        warmup = tf.maximum(self._real_hyper("warmup_steps"), 1)
        return {
            "learning_rate": learning_rate * tf.minimum(t / warmup, 1),
            "beta_1": beta_1,
            "one_minus_beta_1": 1 - beta_1,
            "beta_2": beta_2,
            "one_minus_beta_2": 1 - beta_2,
            "bias_2": 1 - beta_2**t,
            "share": 1 / t,
            "epsilon": self.epsilon,
        }

    def averaged(self, var: tf.Variable) -> Tensor:
        """Return the average that belongs to a variable of this optimizer.

        Raises:
            KeyError: the variable has not been trained yet.
        """
        dtype = compute_dtype(var.dtype)
        beta_1 = tf.cast(self._real_hyper("beta_1"), dtype)
        offset = tf.cast(self.get_slot(var, "offset"), dtype)
        average = tf.cast(var, dtype) - (1 - beta_1) / beta_1 * offset
        return tf.cast(average, var.dtype)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta_1", "beta_2"),
            "epsilon": self.epsilon,
            **self._hyper_config("warmup_steps"),
        }
