"""Adadelta: the TensorFlow side of `reference/optimizers/adadelta.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor


def _adadelta(w, g, n, d, learning_rate, rho, one_minus_rho, epsilon):
    n = rho * n + one_minus_rho * tf.square(g)
    u = tf.sqrt(d + epsilon) / tf.sqrt(n + epsilon) * g
    d = rho * d + one_minus_rho * tf.square(u)
    w = w - learning_rate * u
    return w, n, d


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012, arXiv:1212.5701, algorithm 1).

    Slots: `accum_grad`, the average `n` of squared gradients; `accum_var`, the average
    `d` of squared updates (before the learning rate).

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001 (paper: 1).
        rho: decay of both averages, 0 to 1, default 0.95.
        epsilon: added inside both roots, 1e-7.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.95,
        epsilon: float = 1e-7,
        name: str = "Adadelta",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("rho", rho)
        self.epsilon = epsilon_or_default(epsilon)
        self._define(
            _adadelta,
            {"accum_grad": 0.0, "accum_var": 0.0},
            in_turn=("w", "accum_var", "accum_grad"),
        )

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        rho = self._real_hyper("rho")
        return {
            "learning_rate": learning_rate,
            "rho": rho,
            "one_minus_rho": 1 - rho,
            "epsilon": self.epsilon,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("rho"),
            "epsilon": self.epsilon,
        }
