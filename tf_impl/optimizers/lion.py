"""Lion: the TensorFlow side of `reference/optimizers/lion.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import EVERY_ROW, Optimizer
from tf_impl.tensors import Tensor


def _lion(w, g, m, learning_rate, beta_1, one_minus_beta_1, beta_2, one_minus_beta_2):
    w = w - learning_rate * tf.sign(beta_1 * m + one_minus_beta_1 * g)
    m = beta_2 * m + one_minus_beta_2 * g
    return w, m


class Lion(Optimizer):
    """Lion (Chen et al., 2023, arXiv:2302.06675, program 1), as in Keras 3.

    Slot `m`: the average of gradients.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        beta_1: weight of `m` beside the gradient in the direction, default 0.9.
        beta_2: decay of `m`, default 0.99.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.
    """

    _DECAY_ROWS = EVERY_ROW
    _DECAY_TIMES_LEARNING_RATE = True

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.99,
        name: str = "Lion",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self._define(_lion, {"m": 0.0}, every_row=("w", "m"))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("beta_1")
        beta_2 = self._real_hyper("beta_2")
        return {
            "learning_rate": learning_rate,
            "beta_1": beta_1,
            "one_minus_beta_1": 1 - beta_1,
            "beta_2": beta_2,
            "one_minus_beta_2": 1 - beta_2,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta_1", "beta_2"),
        }
