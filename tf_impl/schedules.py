"""Schedules beyond those of Keras."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from tf_impl.legacy_keras import LearningRateSchedule, keras
from tf_impl.tensors import Tensor, cast


@keras.utils.register_keras_serializable(package="tf_impl")
class CosineAnnealing(LearningRateSchedule):
    """Half a cosine in each cycle of steps, down to `eta_min` at its last.

    What keras-adamw does with `use_cosine_annealing`; give it to `schedule_multiplier`,
    which multiplies the learning rate and the weight decay of any optimizer.
    `keras.optimizers.schedules.CosineDecayRestarts(1.0, ...)`, whose cycles may grow,
    can be given there too.

    Args:
        total_iterations: steps of a cycle, at least 2.
        eta_min, eta_max: last and first factor of a cycle, at least 0.

    Raises:
        ValueError: an argument is outside its domain.
    """

    def __init__(
        self, total_iterations: int, eta_min: float = 0.0, eta_max: float = 1.0
    ) -> None:
        super().__init__()
        if not (total_iterations >= 2 and eta_min >= 0 and eta_max >= 0):
            raise ValueError(
                "`total_iterations` must be at least 2, `eta_min` and `eta_max` at "
                f"least 0, not {(total_iterations, eta_min, eta_max)}"
            )
        self.total_iterations = total_iterations
        self.eta_min = eta_min
        self.eta_max = eta_max

    def __call__(self, step: Any) -> Tensor:
        step = cast(step, tf.float64)
        place = tf.math.floormod(step, self.total_iterations)
        angle = math.pi / (self.total_iterations - 1) * place
        middle, height = (self.eta_max + self.eta_min) / 2, self.eta_max - self.eta_min
        return middle + height / 2 * tf.cos(angle)

    def get_config(self) -> dict[str, Any]:
        return {
            "total_iterations": self.total_iterations,
            "eta_min": self.eta_min,
            "eta_max": self.eta_max,
        }
