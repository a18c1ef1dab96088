"""The optimizers of `reference`, as TensorFlow `OptimizerV2` subclasses to train with.

Every class takes the constructor arguments, and has the slots, weight order and config,
of the class of the same name in the library that its docstring names: mostly
`tf.keras.optimizers.legacy` or TensorFlow Addons.
"""

from typing import Any

from tf_impl.base import Optimizer
from tf_impl.optimizers import found
from tf_impl.weight_decay import (
    DecoupledWeightDecayExtension,
    extend_with_decoupled_weight_decay,
    normalized_weight_decay,
)
from tf_impl.wrappers import found as found_wrappers

OPTIMIZERS: dict[str, type[Optimizer]] = found()
WRAPPERS: dict[str, type] = found_wrappers()

globals().update(OPTIMIZERS)
globals().update(WRAPPERS)

__all__ = [
    "OPTIMIZERS",
    "WRAPPERS",
    "DecoupledWeightDecayExtension",
    "Optimizer",
    "extend_with_decoupled_weight_decay",
    "normalized_weight_decay",
    *OPTIMIZERS,
    *WRAPPERS,
]


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"tf_impl has no {name}; its optimizers are {', '.join(OPTIMIZERS)}, its "
        f"wrappers {', '.join(WRAPPERS)}"
    )
