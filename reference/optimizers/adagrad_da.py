"""AdagradDA: Adagrad as dual averaging, for sparse linear models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Slot, rule
from ..sparse import touched_rows


@dataclass(frozen=True)
class AdagradDA(Optimizer):
    """Adagrad with regularised dual averaging.

    Duchi, Hazan, Singer, *Adaptive Subgradient Methods for Online Learning and
    Stochastic Optimization*, JMLR 12, 2011, equation 3 (primal-dual subgradient
    method) and section 5.1 for l1, times ``t``: sums in place of averages.

    Args:
        learning_rate: ``[0, inf)``; TensorFlow's class has no default for it.
        initial_gradient_squared_accumulator_value: where the sum of squares starts;
            ``(0, inf)``.
        l1_regularization_strength: ``[0, inf)``.
        l2_regularization_strength: ``[0, inf)``.

    Slots: ``gradient_accumulator`` (``s``), the sum of gradients;
    ``gradient_squared_accumulator`` (``n``), that of their squares. **The weight is a
    function of ``s``, ``n`` and the step count alone**: the first gradient, even a zero
    one, discards the initial weight, and a zero gradient shrinks the weight further. A
    sparse gradient changes touched rows only, so that others keep what they had. The
    step count ``t`` is that of the optimizer (TensorFlow's ``global_step`` plus one):
    a row that is touched rarely is still penalised for every step.

    >>> adagrad_da = AdagradDA(
    ...     learning_rate=1.0,
    ...     initial_gradient_squared_accumulator_value=9.0,
    ...     l1_regularization_strength=1.0,
    ...     l2_regularization_strength=1.0,
    ... )
    >>> w, state = adagrad_da.run(np.array([7.0]), [np.array([4.0])])
    >>> w.tolist(), state.slots[0]["gradient_accumulator"].tolist()
    ([-0.5], [4.0])
    """

    learning_rate: Hyper = hyper(0.01, "[0, inf)")
    initial_gradient_squared_accumulator_value: float = hyper(0.1, "(0, inf)")
    l1_regularization_strength: Hyper = hyper(0.0, "[0, inf)")
    l2_regularization_strength: Hyper = hyper(0.0, "[0, inf)")

    home: ClassVar[str] = "tf.compat.v1.train.AdagradDAOptimizer"
    paper: ClassVar[str] = "Duchi et al. 2011"
    examples: ClassVar = (
        {},
        {"l1_regularization_strength": 0.01, "l2_regularization_strength": 0.05},
    )

    @rule(
        s="gradient_accumulator",
        n=Slot(
            "gradient_squared_accumulator",
            start="initial_gradient_squared_accumulator_value",
        ),
        sparse=touched_rows,
    )
    def adagrad_da(
        g,
        s,
        n,
        t,
        learning_rate,
        l1_regularization_strength,
        l2_regularization_strength,
    ):
        s = s + g
        n = n + g**2
        threshold = l1_regularization_strength * t
        shrunk = np.sign(s) * np.maximum(np.abs(s) - threshold, 0)
        curvature = np.sqrt(n) + learning_rate * l2_regularization_strength * t
        w = -learning_rate * shrunk / curvature
        return w, s, n
