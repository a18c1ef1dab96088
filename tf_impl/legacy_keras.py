"""The Keras that has `OptimizerV2`: the one place that knows where it is."""

from __future__ import annotations

import importlib
from typing import Any

import tensorflow as tf


def _find_keras() -> Any:
    """Return the Keras whose `optimizers.legacy` this TensorFlow trains with.

    TensorFlow 2.11 to 2.15 has it as `tf.keras`; later ones have Keras 3 there, which
    lost `OptimizerV2`, and the package tf-keras goes on with it.
    """
    major, minor = (int(part) for part in tf.__version__.split(".")[:2])
    if (major, minor) < (2, 16):
        return tf.keras
    try:
        return importlib.import_module("tf_keras")
    except ImportError as error:
        raise ImportError(
            f"tf_impl needs the package tf-keras with TensorFlow {tf.__version__}"
        ) from error


keras = _find_keras()
OptimizerV2: Any = keras.optimizers.legacy.Optimizer
LearningRateSchedule: Any = keras.optimizers.schedules.LearningRateSchedule
# `keras.backend` lacks `track_variable`.
backend: Any = importlib.import_module(OptimizerV2.__module__).backend
