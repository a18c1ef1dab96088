"""Adagrad: the step shrinks with the sum of all squared gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, Slot, rule
from ..sparse import touched_rows


@dataclass(frozen=True)
class Adagrad(Optimizer):
    """Adagrad.

    Duchi, Hazan, Singer, *Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization*, JMLR 12, 2011, figure 1 (diagonal matrices).

    Args:
        learning_rate: ``[0, inf)``.
        initial_accumulator_value: where the sum of squares starts; ``[0, inf)``.
        epsilon: added to the root, ``sqrt(n) + epsilon``; ``[0, inf)``. Legacy Keras
            and torch put it there.
        epsilon_inside: epsilon is under the root, as in Keras 3 and optax.

    Slots: ``accumulator`` (``n``), the sum of squared gradients. A sparse gradient
    changes touched rows, which is all that the dense rule does with zeros elsewhere.

    >>> adagrad = Adagrad(learning_rate=1.0, initial_accumulator_value=9.0, epsilon=0.0)
    >>> w, state = adagrad.run(np.array([1.0]), [np.array([4.0])])
    >>> w.round(12).tolist(), state.slots[0]["accumulator"].tolist()
    ([0.2], [25.0])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    initial_accumulator_value: float = hyper(0.1, "[0, inf)")
    epsilon: float = hyper(1e-7, "[0, inf)")
    epsilon_inside: bool = False

    home: ClassVar[str] = "tf.keras.optimizers.legacy.Adagrad"
    paper: ClassVar[str] = "Duchi et al. 2011"
    examples: ClassVar = (
        {},
        {"initial_accumulator_value": 0.0},
        {"initial_accumulator_value": 0.0, "epsilon_inside": True},
    )

    @rule(n=Slot("accumulator", start="initial_accumulator_value"), sparse=touched_rows)
    def adagrad(w, g, n, learning_rate, epsilon):
        n = n + g**2
        w = w - learning_rate * g / (np.sqrt(n) + epsilon)
        return w, n

    @rule(n=Slot("accumulator", start="initial_accumulator_value"), sparse=touched_rows)
    def adagrad_epsilon_inside(w, g, n, learning_rate, epsilon):
        n = n + g**2
        w = w - learning_rate * g / np.sqrt(n + epsilon)
        return w, n

    @property
    def selected(self) -> Rule:
        if self.epsilon_inside:
            return Adagrad.adagrad_epsilon_inside
        return Adagrad.adagrad
