"""The oracle for optimizers: every update rule, specified in NumPy.

>>> import numpy as np, reference
>>> adam = reference.Adam(learning_rate=0.1)
>>> w = np.array([1.0, 2.0])
>>> state = adam.init(w)
>>> w, state = adam.step(w, np.array([0.5, 0.0]), state)
>>> w.round(5).tolist()
[0.9, 2.0]
"""

from __future__ import annotations

from typing import Any

from . import schedules
from .gradients import IndexedSlices, deduplicate
from .optimizer import Driver, Optimizer, State
from .optimizers import found
from .sparse import every_row, rows, touched_rows
from .wrapper import Wrapper
from .wrappers import found as found_wrappers

__version__ = "0.1.0"

OPTIMIZERS: dict[str, type[Optimizer]] = found()
"""Every optimizer that is specified, by name; each is also an attribute of the package,
as ``reference.Adam``."""

WRAPPERS: dict[str, type[Driver]] = found_wrappers()
"""Every wrapper around optimizers, by name; each is also an attribute of the package,
as ``reference.Lookahead``."""

globals().update(OPTIMIZERS)
globals().update(WRAPPERS)

__all__ = [
    "OPTIMIZERS",
    "WRAPPERS",
    "IndexedSlices",
    "Optimizer",
    "State",
    "Wrapper",
    "deduplicate",
    "every_row",
    "rows",
    "schedules",
    "touched_rows",
    *OPTIMIZERS,
    *WRAPPERS,
]


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"reference has no {name}; its optimizers are {', '.join(OPTIMIZERS)}, its "
        f"wrappers {', '.join(WRAPPERS)}"
    )
