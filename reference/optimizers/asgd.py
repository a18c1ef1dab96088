"""ASGD: gradient descent whose weights are averaged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import rule
from ..sparse import every_row


@dataclass(frozen=True)
class ASGD(Optimizer):
    """Averaged stochastic gradient descent, as in torch.

    Polyak, Juditsky, *Acceleration of Stochastic Approximation by Averaging*, SIAM J.
    Control and Optimization 30(4), 1992; rates as in Bottou, *Stochastic Gradient
    Descent Tricks*, 2012, section 3.6.

    Args:
        learning_rate: at the first step; ``[0, inf)``.
        lambd: the decay of the weights, and that of the learning rate; ``[0, inf)``.
        alpha: the power with which the learning rate falls; ``[0, inf)``.
        t0: steps after which averaging starts; until then the average is the weight
            itself; ``[0, inf)``.

    Slots: ``ax``, the average, which one evaluates. torch forms the rate of a step from
    the learning rate of the step before and keeps it in float32; it counts the steps
    of each weight, here all are counted. torch refuses sparse gradients; here they act
    on every row.

    >>> asgd = ASGD(learning_rate=0.5, lambd=0.0, t0=0.0)
    >>> ones = np.array([1.0])
    >>> w, state = asgd.run(ones, [ones, ones, ones])
    >>> w.tolist(), state.slots[0]["ax"].tolist()
    ([-0.5], [-0.25])
    """

    learning_rate: Hyper = hyper(0.01, "[0, inf)")
    lambd: Hyper = hyper(1e-4, "[0, inf)")
    alpha: Hyper = hyper(0.75, "[0, inf)")
    t0: Hyper = hyper(1e6, "[0, inf)")

    home: ClassVar[str] = "torch.optim.ASGD"
    paper: ClassVar[str] = "Polyak, Juditsky 1992"
    examples: ClassVar = ({"lambd": 0.01, "t0": 1.5},)

    @rule(ax="ax", sparse=every_row)
    def asgd(w, g, ax, t, learning_rate, lambd, alpha, t0):
        eta = learning_rate / (1 + lambd * learning_rate * (t - 1)) ** alpha
        w = w * (1 - lambd * eta) - eta * g
        ax = ax + (w - ax) / np.maximum(t - 1 - t0, 1)
        return w, ax
