"""Fromage: the TensorFlow side of `reference/optimizers/fromage.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.tensors import Tensor


def _fromage(w, g, learning_rate, kappa, min_norm):
    w_norm = tf.maximum(tf.norm(w), min_norm)
    g_norm = tf.maximum(tf.norm(g), min_norm)
    return (kappa * (w - learning_rate * (w_norm / g_norm) * g),)


class Fromage(Optimizer):
    """Fromage (Bernstein, Vahdat, Yue, Liu, 2020, arXiv:2002.03432, algorithm 1).

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.01.
        min_norm: norms below this count as this, 1e-6.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        min_norm: float = 1e-6,
        name: str = "Fromage",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self.min_norm = float(min_norm)
        self._define(_fromage, {}, every_row=("w",), elementwise=False)

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        return {
            "learning_rate": learning_rate,
            "kappa": 1 / tf.sqrt(1 + learning_rate**2),
            "min_norm": self.min_norm,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            "min_norm": self.min_norm,
        }
