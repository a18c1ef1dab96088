"""Adamax: the TensorFlow side of `reference/optimizers/adamax.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor


def _adamax(w, g, m, u, step_size, beta_1, one_minus_beta_1, beta_2, epsilon):
    m = beta_1 * m + one_minus_beta_1 * g
    u = tf.maximum(beta_2 * u, tf.abs(g))
    w = w - step_size * m / (u + epsilon)
    return w, m, u


def _adamax_inside(w, g, m, u, step_size, beta_1, one_minus_beta_1, beta_2, epsilon):
    m = beta_1 * m + one_minus_beta_1 * g
    u = tf.maximum(beta_2 * u, tf.abs(g) + epsilon)
    w = w - step_size * m / u
    return w, m, u


class Adamax(Optimizer):
    """Adamax (Kingma and Ba, 2014, arXiv:1412.6980, algorithm 2).

    Slots: `m`, the average of gradients; `v`, the paper's `u`, their largest magnitude,
    decaying.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        beta_1, beta_2: decay of `m` and `u`, 0 to below 1, defaults 0.9 and 0.999.
        epsilon: added to `u`, 1e-7 (paper: 0).
        epsilon_inside: whether it is added to the magnitude of the gradient instead, as
            in torch and optax.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-7,
        name: str = "Adamax",
        epsilon_inside: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self.epsilon = epsilon_or_default(epsilon)
        self.epsilon_inside = epsilon_inside
        rule = _adamax_inside if epsilon_inside else _adamax
        self._define(rule, {"m": 0.0, "v": 0.0})

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("beta_1")
        return {
            "step_size": learning_rate / (1 - beta_1**t),
            "beta_1": beta_1,
            "one_minus_beta_1": 1 - beta_1,
            "beta_2": self._real_hyper("beta_2"),
            "epsilon": self.epsilon,
        }

    def get_config(self) -> dict[str, Any]:
        config = {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta_1", "beta_2"),
            "epsilon": self.epsilon,
        }
        if self.epsilon_inside:
            config["epsilon_inside"] = True
        return config
