"""Adan: the TensorFlow side of `reference/optimizers/adan.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor


def _adan(
    w,
    g,
    m,
    v,
    n,
    previous,
    is_first,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    beta_3,
    one_minus_beta_3,
    rate_of_m,
    rate_of_v,
    bias_of_n,
    epsilon,
):
    change = tf.where(is_first > 0, tf.zeros_like(g), g - previous)
    m = beta_1 * m + one_minus_beta_1 * g
    v = beta_2 * v + one_minus_beta_2 * change
    n = beta_3 * n + one_minus_beta_3 * tf.square(g + beta_2 * change)
    w = w - (rate_of_m * m + rate_of_v * v) / (tf.sqrt(n / bias_of_n) + epsilon)
    return w, m, v, n, g


class Adan(Optimizer):
    """Adan (Xie et al., 2022, arXiv:2208.06677, algorithm 1), as its authors' code.

    Slots: `m`, the average of gradients; `v`, that of their changes; `n`, that of
    squares; `previous_gradient`.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        beta_1, beta_2, beta_3: decay of `m`, `v` and `n`, 0 to below 1, defaults 0.98,
            0.92 and 0.99.
        epsilon: outside the root of the corrected `n`, 1e-8.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.98,
        beta_2: Any = 0.92,
        beta_3: Any = 0.99,
        epsilon: float = 1e-8,
        name: str = "Adan",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self._set_hyper("beta_3", beta_3)
        self.epsilon = epsilon_or_default(epsilon)
        slots = dict.fromkeys(("m", "v", "n", "previous_gradient"), 0.0)
        self._define(_adan, slots, every_row=("w", *slots))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1, beta_2, beta_3 = (
            self._real_hyper(f"beta_{number}") for number in (1, 2, 3)
        )
        return {
            "is_first": tf.cast(tf.equal(t, 1), t.dtype),
            "beta_1": beta_1,
            "one_minus_beta_1": 1 - beta_1,
            "beta_2": beta_2,
            "one_minus_beta_2": 1 - beta_2,
            "beta_3": beta_3,
            "one_minus_beta_3": 1 - beta_3,
            "rate_of_m": learning_rate / (1 - beta_1**t),
            "rate_of_v": learning_rate * beta_2 / (1 - beta_2**t),
            "bias_of_n": 1 - beta_3**t,
            "epsilon": self.epsilon,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta_1", "beta_2", "beta_3"),
            "epsilon": self.epsilon,
        }
