"""Fromage: steps as long as the weights, on a sphere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import rule
from ..sparse import every_row


@dataclass(frozen=True)
class Fromage(Optimizer):
    """Fromage, the Frobenius matched gradient descent.

    Bernstein, Vahdat, Yue, Liu, *On the distance between two neural networks and the
    stability of learning*, 2020, arXiv:2002.03432, algorithm 1.

    Args:
        learning_rate: the length of a step, as a part of the weight's; ``[0, inf)``.
        min_norm: norms below this count as this; ``(0, inf)``; the paper has none.

    No slots. With a zero gradient the weight shrinks all the same. A sparse gradient
    counts as the dense one with zeros elsewhere: every row shrinks. optax agrees.

    >>> fromage = Fromage(learning_rate=0.75)
    >>> w, _ = fromage.run(np.array([3.0, 4.0]), [np.array([2.0, 0.0])])
    >>> w.tolist()  # (3 - 0.75 * 5) / 1.25, 4 / 1.25
    [-0.6000000000000001, 3.2]
    """

    learning_rate: Hyper = hyper(0.01, "[0, inf)")
    min_norm: float = hyper(1e-6, "(0, inf)")

    elementwise: ClassVar[bool] = False
    home: ClassVar[str] = "optax.fromage"
    paper: ClassVar[str] = "Bernstein et al. 2020, arXiv:2002.03432"
    examples: ClassVar = ({}, {"min_norm": 1.0})

    @rule(sparse=every_row)
    def fromage(w, g, learning_rate, min_norm):
        length = np.maximum(np.sqrt(np.sum(w**2)), min_norm)
        length_of_g = np.maximum(np.sqrt(np.sum(g**2)), min_norm)
        kappa = 1 / np.sqrt(1 + learning_rate**2)
        w = kappa * (w - learning_rate * length / length_of_g * g)
        return w
