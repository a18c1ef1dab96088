"""Adamax: Adam with the infinity norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, rule
from ..sparse import touched_rows


@dataclass(frozen=True)
class Adamax(Optimizer):
    """Adamax.

    Kingma, Ba, *Adam: A Method for Stochastic Optimization*, 2014, arXiv:1412.6980,
    algorithm 2 (section 7.1).

    Args:
        learning_rate: ``[0, inf)``.
        beta_1: decay of the first moment; ``[0, 1)``.
        beta_2: decay of the weighted infinity norm; ``[0, 1)``.
        epsilon: added to the norm, so that a zero gradient moves nothing; the paper has
            none; ``[0, inf)``.
        epsilon_inside: epsilon is added to the gradient's magnitude, inside the
            maximum, as in torch and optax.

    Slots: ``m``, the first moment; ``v``, the infinity norm (the paper's ``u``). A
    sparse gradient changes touched rows only.

    >>> adamax = Adamax(learning_rate=0.5, beta_1=0.5, epsilon=0.0)
    >>> w, state = adamax.run(np.array([1.0]), [np.array([-2.0])])
    >>> w.tolist(), state.slots[0]["m"].tolist(), state.slots[0]["v"].tolist()
    ([1.5], [-1.0], [2.0])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    beta_1: Hyper = hyper(0.9, "[0, 1)")
    beta_2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: float = hyper(1e-7, "[0, inf)")
    epsilon_inside: bool = False

    home: ClassVar[str] = "tf.keras.optimizers.legacy.Adamax"
    paper: ClassVar[str] = "Kingma, Ba 2014, arXiv:1412.6980"
    examples: ClassVar = ({}, {"epsilon_inside": True})

    @rule(m="m", u="v", sparse=touched_rows)
    def adamax(w, g, m, u, t, learning_rate, beta_1, beta_2, epsilon):
        m = beta_1 * m + (1 - beta_1) * g
        u = np.maximum(beta_2 * u, np.abs(g))
        w = w - learning_rate / (1 - beta_1**t) * m / (u + epsilon)
        return w, m, u

    @rule(m="m", u="v", sparse=touched_rows)
    def adamax_epsilon_inside(w, g, m, u, t, learning_rate, beta_1, beta_2, epsilon):
        m = beta_1 * m + (1 - beta_1) * g
        u = np.maximum(beta_2 * u, np.abs(g) + epsilon)
        w = w - learning_rate / (1 - beta_1**t) * m / u
        return w, m, u

    @property
    def selected(self) -> Rule:
        if self.epsilon_inside:
            return Adamax.adamax_epsilon_inside
        return Adamax.adamax
