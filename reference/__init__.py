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

from . import schedules
from .gradients import IndexedSlices, deduplicate
from .optimizer import Optimizer, State
from .optimizers.adadelta import Adadelta
from .optimizers.adagrad import Adagrad
from .optimizers.adam import Adam
from .optimizers.adamax import Adamax
from .optimizers.ftrl import Ftrl
from .optimizers.nadam import Nadam
from .optimizers.rmsprop import RMSprop
from .optimizers.sgd import SGD
from .sparse import every_row, rows, touched_rows

__version__ = "0.1.0"

OPTIMIZERS: dict[str, type[Optimizer]] = {
    cls.__name__: cls
    for cls in (SGD, Adagrad, Adadelta, RMSprop, Adam, Adamax, Nadam, Ftrl)
}
"""Every optimizer that is specified, by name."""

__all__ = [
    "OPTIMIZERS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "Adamax",
    "Ftrl",
    "IndexedSlices",
    "Nadam",
    "Optimizer",
    "RMSprop",
    "State",
    "deduplicate",
    "every_row",
    "rows",
    "schedules",
    "touched_rows",
]
