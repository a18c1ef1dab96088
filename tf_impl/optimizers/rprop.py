"""Rprop: the TensorFlow side of `reference/optimizers/rprop.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.legacy_keras import LearningRateSchedule
from tf_impl.tensors import Tensor, cast


def _rprop(w, g, prev, step_size, eta_minus, eta_plus, min_step_size, max_step_size):
    # Not the sign of the product, which underflows.
    product = tf.sign(g) * tf.sign(prev)
    turned = product < 0
    eta = tf.where(
        product > 0, eta_plus, tf.where(turned, eta_minus, tf.ones_like(eta_minus))
    )
    step_size = tf.clip_by_value(step_size * eta, min_step_size, max_step_size)
    g = tf.where(turned, tf.zeros_like(g), g)
    w = w - step_size * tf.sign(g)
    return w, g, step_size


class Rprop(Optimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993, ICNN) without weight
    backtracking: iRprop- (Igel and Huesken, 2003, Neurocomputing 50).

    Takes the arguments of `optax.rprop`.

    Slots: `prev`, the last gradient, or zero where it had just changed its sign;
    `step_size`, which starts at the learning rate.

    Args:
        learning_rate: first step size: number, schedule, callable or scalar tensor,
            0.01. It is read when the slots of a variable are made, before its first
            step.
        eta_minus: factor of the step size after a change of sign, default 0.5.
        eta_plus: factor after none, default 1.2.
        min_step_size, max_step_size: the range of step sizes, 1e-6 to 50.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row, as the dense gradient with zeros elsewhere.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        eta_minus: Any = 0.5,
        eta_plus: Any = 1.2,
        min_step_size: Any = 1e-6,
        max_step_size: Any = 50.0,
        name: str = "Rprop",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("eta_minus", eta_minus)
        self._set_hyper("eta_plus", eta_plus)
        self._set_hyper("min_step_size", min_step_size)
        self._set_hyper("max_step_size", max_step_size)
        self._define(
            _rprop,
            {"prev": 0.0, "step_size": 0.0},
            every_row=("w", "prev", "step_size"),
        )

    def _add_slot(self, var: tf.Variable, slot: str, definition: Any) -> None:
        if slot == "step_size":
            self.add_slot(var, slot, self._first_step_size)
        else:
            super()._add_slot(var, slot, definition)

    def _first_step_size(self, shape: Any, dtype: tf.DType) -> Tensor:
        rate = self._get_hyper("learning_rate")
        if isinstance(rate, LearningRateSchedule):
            rate = rate(0)
        return tf.fill(shape, tf.cast(cast(rate, tf.float64), dtype))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        names = ("eta_minus", "eta_plus", "min_step_size", "max_step_size")
        return {name: self._real_hyper(name) for name in names}

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config(
                "eta_minus", "eta_plus", "min_step_size", "max_step_size"
            ),
        }
