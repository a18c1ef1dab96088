"""Proximal steps: an l1 and an l2 penalty solved for, not differentiated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Slot, rule
from ..sparse import touched_rows

REGULARISED = {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.05}


@dataclass(frozen=True)
class ProximalGradientDescent(Optimizer):
    """Forward-backward splitting: a gradient step, then the penalty's proximal map.

    Duchi, Singer, *Efficient Learning using Forward-Backward Splitting*, NIPS 2009,
    sections 2 and 5 (l1 and squared l2 regularization).

    Args:
        learning_rate: ``[0, inf)``; TensorFlow's class has no default for it.
        l1_regularization_strength: weights within ``learning_rate`` times this of zero
            become zero; ``[0, inf)``.
        l2_regularization_strength: ``[0, inf)``.

    No slots. Without regularisation this is ``SGD``. A sparse gradient changes touched
    rows only: the penalty of a row waits until a gradient touches it.

    >>> proximal = ProximalGradientDescent(
    ...     learning_rate=0.5,
    ...     l1_regularization_strength=0.5,
    ...     l2_regularization_strength=2.0,
    ... )
    >>> proximal.run(np.array([1.0, 0.25]), [np.array([-2.5, 0.0])])[0].tolist()
    [1.0, 0.0]
    """

    learning_rate: Hyper = hyper(0.01, "[0, inf)")
    l1_regularization_strength: Hyper = hyper(0.0, "[0, inf)")
    l2_regularization_strength: Hyper = hyper(0.0, "[0, inf)")

    home: ClassVar[str] = "tf.compat.v1.train.ProximalGradientDescentOptimizer"
    paper: ClassVar[str] = "Duchi, Singer 2009"
    examples: ClassVar = ({}, REGULARISED)

    @rule(sparse=touched_rows)
    def proximal_descent(
        w, g, learning_rate, l1_regularization_strength, l2_regularization_strength
    ):
        z = w - learning_rate * g
        threshold = learning_rate * l1_regularization_strength
        shrunk = np.sign(z) * np.maximum(np.abs(z) - threshold, 0)
        w = shrunk / (1 + learning_rate * l2_regularization_strength)
        return w


@dataclass(frozen=True)
class ProximalAdagrad(Optimizer):
    """Forward-backward splitting with Adagrad's step size for every element.

    Duchi, Singer, *Efficient Learning using Forward-Backward Splitting*, NIPS 2009;
    Duchi, Hazan, Singer, *Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization*, JMLR 12, 2011, equation 4 (composite mirror descent).

    Args:
        learning_rate: ``[0, inf)``.
        initial_accumulator_value: where the sum of squares starts; ``[0, inf)``. There
            is no epsilon: from zero, a zero gradient gives NaN.
        l1_regularization_strength: ``[0, inf)``.
        l2_regularization_strength: ``[0, inf)``.

    Slots: ``accumulator`` (``n``), the sum of squared gradients. Without regularisation
    this is ``Adagrad`` with an epsilon of zero. A sparse gradient changes touched rows
    only: the penalty of a row waits until a gradient touches it.

    >>> proximal = ProximalAdagrad(
    ...     learning_rate=1.0,
    ...     initial_accumulator_value=9.0,
    ...     l1_regularization_strength=1.0,
    ...     l2_regularization_strength=5.0,
    ... )
    >>> w, state = proximal.run(np.array([2.0]), [np.array([4.0])])
    >>> w.round(12).tolist(), state.slots[0]["accumulator"].tolist()
    ([0.5], [25.0])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    initial_accumulator_value: float = hyper(0.1, "[0, inf)")
    l1_regularization_strength: Hyper = hyper(0.0, "[0, inf)")
    l2_regularization_strength: Hyper = hyper(0.0, "[0, inf)")

    home: ClassVar[str] = "tensorflow_addons.optimizers.ProximalAdagrad"
    paper: ClassVar[str] = "Duchi, Singer 2009; Duchi et al. 2011"
    examples: ClassVar = ({}, REGULARISED)

    @rule(n=Slot("accumulator", start="initial_accumulator_value"), sparse=touched_rows)
    def proximal_adagrad(
        w, g, n, learning_rate, l1_regularization_strength, l2_regularization_strength
    ):
        n = n + g**2
        step_size = learning_rate / np.sqrt(n)
        z = w - step_size * g
        threshold = step_size * l1_regularization_strength
        shrunk = np.sign(z) * np.maximum(np.abs(z) - threshold, 0)
        w = shrunk / (1 + step_size * l2_regularization_strength)
        return w, n
