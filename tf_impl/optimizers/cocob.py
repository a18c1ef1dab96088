"""COCOB: the TensorFlow side of `reference/optimizers/cocob.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor


def _cocob(w, g, largest, total, theta, bet, reward, alpha, learning_rate, epsilon):
    size = tf.abs(g)
    # A float16 slot holds 0 where it should hold that number.
    largest = tf.maximum(tf.maximum(largest, epsilon), size)
    total = total + size
    theta = theta + g
    reward = tf.maximum(reward - g * bet, 0)
    wealth = largest + reward
    share = theta / tf.maximum(total + largest, alpha * largest)
    new_bet = -share * (wealth / largest)
    w = w + learning_rate * (new_bet - bet)
    return w, largest, total, theta, new_bet, reward


class COCOB(Optimizer):
    """COCOB-Backprop (Orabona and Tommasi, 2017, arXiv:1705.07795, algorithm 2).

    Replaces tensorflow_addons.optimizers.COCOB, which gives NaN for zero gradients in
    float16, has no learning rate for callbacks, and refuses sparse gradients.

    Slots: `lr`, the largest gradient so far; `grad_norm_sum`, the sum of magnitudes;
    `gradients_sum`; `tilde_w`, the bet; `reward`.

    Args:
        alpha: at least 1, default 100: how little is bet at first.
        use_locking: has no effect.
        learning_rate: factor on the change of the bet, 1.
        epsilon: where `lr` starts, and the least that it counts as, 1e-8.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows.

    Raises:
        ValueError: `alpha` is less than 1.
    """

    def __init__(
        self,
        alpha: float = 100,
        use_locking: bool = False,
        name: str = "COCOB",
        learning_rate: Any = 1.0,
        epsilon: float = 1e-8,
        **kwargs: Any,
    ) -> None:
        if not callable(alpha) and not tf.is_tensor(alpha) and alpha < 1:
            raise ValueError(f"`alpha` must be at least 1, not {alpha!r}")
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("alpha", alpha)
        self.epsilon = epsilon_or_default(epsilon)
        self._use_locking = use_locking
        self._define(
            _cocob,
            {
                "lr": self.epsilon,
                "grad_norm_sum": 0.0,
                "gradients_sum": 0.0,
                "tilde_w": 0.0,
                "reward": 0.0,
            },
        )

    def _create_slots(self, var_list: Any) -> None:
        for var in var_list:  # in Addons' order, which weights are kept in
            super()._create_slots([var])

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        return {
            "alpha": self._real_hyper("alpha"),
            "learning_rate": learning_rate,
            "epsilon": self.epsilon,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("alpha", "learning_rate"),
            "use_locking": self._use_locking,
            "decay": self._initial_decay,
            "epsilon": self.epsilon,
        }
