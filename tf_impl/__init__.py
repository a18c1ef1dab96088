"""The optimizers of `reference`, as TensorFlow `OptimizerV2` subclasses to train with.

Every class takes the constructor arguments, and has the slots, weight order and config,
of the class of the same name in the library that its docstring names: mostly
`tf.keras.optimizers.legacy` or TensorFlow Addons.
"""

from typing import Any

from tf_impl.base import Optimizer
from tf_impl.optimizers import found

OPTIMIZERS: dict[str, type[Optimizer]] = found()

globals().update(OPTIMIZERS)

__all__ = ["OPTIMIZERS", "Optimizer", *OPTIMIZERS]


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"tf_impl has no {name}; its optimizers are {', '.join(OPTIMIZERS)}"
    )
