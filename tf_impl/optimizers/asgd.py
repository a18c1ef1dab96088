"""ASGD: the TensorFlow side of `reference/optimizers/asgd.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.tensors import Tensor


def _asgd(w, g, ax, kept, eta, mu, is_average):
    w = kept * w - eta * g
    ax = tf.where(is_average > 0, ax + mu * (w - ax), w)
    return w, ax


class ASGD(Optimizer):
    """Averaged gradient descent (Polyak and Juditsky, 1992, SIAM J. Control and
    Optimization 30), as in torch.

    Slot `ax`: the average of the weights after step `t0`, before that the weights.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.01.
        lambd: decay of the weights, times the rate, and of the rate, 1e-4.
        alpha: the power of the rate's decay, 0.75.
        t0: the step at which averaging starts, 1e6.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        lambd: Any = 1e-4,
        alpha: Any = 0.75,
        t0: Any = 1e6,
        name: str = "ASGD",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("lambd", lambd)
        self._set_hyper("alpha", alpha)
        self._set_hyper("t0", t0)
        self._define(_asgd, {"ax": 0.0}, every_row=("w", "ax"))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        lambd, alpha = self._real_hyper("lambd"), self._real_hyper("alpha")
        eta = learning_rate * (1 + lambd * learning_rate * (t - 1)) ** -alpha
        averaged = t - 1 - self._real_hyper("t0")
        return {
            "kept": 1 - lambd * eta,
            "eta": eta,
            "mu": 1 / tf.maximum(averaged, 1),
            "is_average": averaged - 1,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("lambd", "alpha", "t0"),
        }
