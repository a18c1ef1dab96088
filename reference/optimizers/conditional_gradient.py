"""Conditional gradient: steps towards the corner of a ball of weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..linalg import leading_pair
from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, rule
from ..sparse import touched_rows

ORDS = ("fro", "nuclear")


@dataclass(frozen=True)
class ConditionalGradient(Optimizer):
    """Conditional gradient, or Frank-Wolfe.

    Ravi, Dinh, Lokhande, Singh, *Constrained Deep Learning using Conditional Gradient
    and Applications in Computer Vision*, 2018, arXiv:1803.06453.

    Args:
        learning_rate: how much of the weight is kept, so that 1 stands still;
            ``[0, 1]``.
        lambda_: the radius of the ball; ``[0, inf)``.
        epsilon: added to the Frobenius norm; ``[0, inf)``.
        ord: the norm of the ball: ``"fro"``, that of Frobenius, or ``"nuclear"``, the
            sum of singular values.

    No slots (TensorFlow Addons makes one and never uses it). With the nuclear norm the
    last axis of a weight stands against all others, and a weight of one axis is one
    row; a gradient of zeros has no corner and only shrinks the weight, where Addons
    takes whatever the decomposition gives. ``decay`` and schedules count, which Addons
    ignores or refuses. Two largest singular values that are equal leave the corner
    undecided: neighbouring gradients then give quite different steps. A sparse gradient
    changes touched rows only; norms and decomposition are those of the whole gradient.

    Raises:
        ValueError: ``ord`` is none of these.

    >>> fro = ConditionalGradient(learning_rate=0.5, lambda_=10.0, epsilon=0.0)
    >>> fro.run(np.array([1.0, 1.0]), [np.array([3.0, 4.0])])[0].tolist()
    [-2.5, -3.5]
    """

    learning_rate: Hyper = hyper(0.99, "[0, 1]")
    lambda_: Hyper = hyper(0.01, "[0, inf)")
    epsilon: float = hyper(1e-7, "[0, inf)")
    ord: str = "fro"

    elementwise: ClassVar[bool] = False
    home: ClassVar[str] = "tensorflow_addons.optimizers.ConditionalGradient"
    paper: ClassVar[str] = "Ravi, Dinh, Lokhande, Singh 2018, arXiv:1803.06453"
    examples: ClassVar = ({"epsilon": 0.25}, {"ord": "nuclear"})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ord not in ORDS:
            raise ValueError(f"ord must be one of {', '.join(ORDS)}, got {self.ord!r}")

    @rule(sparse=touched_rows)
    def frobenius(w, g, learning_rate, lambda_, epsilon):
        corner = g / (np.sqrt(np.sum(g**2)) + epsilon)
        w = learning_rate * w - (1 - learning_rate) * lambda_ * corner
        return w

    @rule(sparse=touched_rows)
    def nuclear(w, g, learning_rate, lambda_):
        matrix = g.reshape(-1, g.shape[-1]) if g.ndim else g.reshape(1, 1)
        corner = leading_pair(matrix).reshape(g.shape)
        w = learning_rate * w - (1 - learning_rate) * lambda_ * corner
        return w

    @property
    def selected(self) -> Rule:
        if self.ord == "nuclear":
            return ConditionalGradient.nuclear
        return ConditionalGradient.frobenius
