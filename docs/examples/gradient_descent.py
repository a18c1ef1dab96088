"""The least that an `OptimizerV2` subclass must have: plain gradient descent.

No slot, no coefficient of its own, duplicates left to the base class.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

try:  # TensorFlow 2.16 and later, with the package tf-keras
    from tf_keras.optimizers.legacy import Optimizer
except ImportError:  # TensorFlow 2.11 to 2.15
    Optimizer = tf.keras.optimizers.legacy.Optimizer


class GradientDescent(Optimizer):
    """``w = w - learning_rate * g``.

    Args:
        learning_rate: float, tensor, callable or `LearningRateSchedule`.
        name: name of the optimizer.
        **kwargs: `clipnorm`, `clipvalue`, `global_clipnorm`: see the base class.
    """

    _HAS_AGGREGATE_GRAD = True

    def __init__(
        self, learning_rate: Any = 0.01, name: str = "GradientDescent", **kwargs: Any
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", learning_rate)

    def _resource_apply_dense(
        self, grad: tf.Tensor, var: tf.Variable, apply_state: dict
    ) -> Any:
        lr = apply_state[var.device, var.dtype.base_dtype]["lr_t"]
        return var.assign_sub(lr * grad)

    def _resource_apply_sparse(
        self, grad: tf.Tensor, var: tf.Variable, indices: tf.Tensor, apply_state: dict
    ) -> Any:
        lr = apply_state[var.device, var.dtype.base_dtype]["lr_t"]
        return tf.raw_ops.ResourceScatterAdd(
            resource=var.handle, indices=indices, updates=-lr * grad
        )

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "learning_rate": self._serialize_hyperparameter("learning_rate"),
        }
