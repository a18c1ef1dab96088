"""Lion: the sign of a momentum."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import rule
from ..sparse import every_row


@dataclass(frozen=True)
class Lion(Optimizer):
    """Lion.

    Chen et al., *Symbolic Discovery of Optimization Algorithms*, 2023,
    arXiv:2302.06675, program 1.

    Args:
        learning_rate: the step of every weight; ``[0, inf)``. tf_keras has 1e-4.
        beta_1: weight of the average in the direction; ``[0, 1]``.
        beta_2: decay of the average; ``[0, 1]``.

    Slots: ``m``, the average of gradients, as it was before this one when its sign is
    taken. Where average and gradient are zero, so is the sign. Weight decay is times
    the learning rate here, and on every row. A sparse gradient decays ``m`` of every
    row and moves every row.

    >>> lion = Lion(learning_rate=0.5, beta_1=0.5, beta_2=0.75)
    >>> w, state = lion.run(np.array([1.0]), [np.array([8.0]), np.array([-1.0])])
    >>> w.tolist(), state.slots[0]["m"].tolist()
    ([0.0], [1.25])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    beta_1: Hyper = hyper(0.9, "[0, 1]")
    beta_2: Hyper = hyper(0.99, "[0, 1]")
    decay_rows: str = field(default="every_row", kw_only=True)
    decay_times_learning_rate: bool = field(default=True, kw_only=True)

    home: ClassVar[str] = "keras.optimizers.Lion"
    paper: ClassVar[str] = "Chen et al. 2023, arXiv:2302.06675"

    @rule(m="m", sparse=every_row)
    def lion(w, g, m, learning_rate, beta_1, beta_2):
        w = w - learning_rate * np.sign(beta_1 * m + (1 - beta_1) * g)
        m = beta_2 * m + (1 - beta_2) * g
        return w, m
