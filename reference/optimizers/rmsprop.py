"""RMSprop, plain and centered, with and without momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, rule
from ..sparse import EVERY, TOUCHED, rows, touched_rows


@dataclass(frozen=True)
class RMSprop(Optimizer):
    """RMSprop.

    Tieleman, Hinton, *Lecture 6.5: rmsprop*, Coursera, 2012; centered: Graves,
    *Generating Sequences With Recurrent Neural Networks*, 2013, arXiv:1308.0850,
    equations 38 to 45.

    Args:
        learning_rate: ``[0, inf)``.
        rho: decay of the averages; ``[0, 1]``.
        momentum: the part of the last step that is kept; ``[0, 1]``. Whether it is zero
            is settled at construction: zero means no slot.
        epsilon: ``[0, inf)``. **Without momentum it is added to the root, with momentum
            it moves under the root**, as in legacy Keras. No equation says so: at
            ``g = 1e-6`` the first step is 760 times smaller with a momentum of 1e-30
            than with none. torch has it outside, Keras 3 and optax inside, always.
        centered: divide by the running standard deviation instead of the root mean
            square. The variance ``r - m**2`` is never negative in exact arithmetic but
            is after rounding; here it is limited to zero from below. Legacy Keras takes
            the root of the negative number and gives NaN after some constant gradients.

    Slots: ``rms`` (``r``), the average of squares; ``momentum`` (``a``), the velocity,
    with the learning rate inside; ``mg`` (``m``), the average, when centered.
    Without momentum a sparse gradient decays the averages of every row.

    >>> rmsprop = RMSprop(learning_rate=1.0, rho=0.75, epsilon=1.0)
    >>> w, state = rmsprop.run(np.array([1.0]), [np.array([2.0])])
    >>> w.tolist(), state.slots[0]["rms"].tolist()
    ([0.0], [1.0])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    rho: Hyper = hyper(0.9, "[0, 1]")
    momentum: Hyper = hyper(0.0, "[0, 1]")
    epsilon: float = hyper(1e-7, "[0, inf)")
    centered: bool = False

    home: ClassVar[str] = "tf.keras.optimizers.legacy.RMSprop"
    paper: ClassVar[str] = "Tieleman, Hinton 2012; Graves 2013, arXiv:1308.0850"
    examples: ClassVar = (
        {},
        {"centered": True},
        {"momentum": 0.8},
        {"momentum": 0.8, "centered": True},
    )

    @rule(r="rms", sparse=rows(r=EVERY, w=TOUCHED))
    def rmsprop(w, g, r, learning_rate, rho, epsilon):
        r = rho * r + (1 - rho) * g**2
        w = w - learning_rate * g / (np.sqrt(r) + epsilon)
        return w, r

    @rule(r="rms", m="mg", sparse=rows(r=EVERY, m=EVERY, w=TOUCHED))
    def centered_rmsprop(w, g, r, m, learning_rate, rho, epsilon):
        r = rho * r + (1 - rho) * g**2
        m = rho * m + (1 - rho) * g
        variance = np.maximum(r - m**2, 0)
        w = w - learning_rate * g / (np.sqrt(variance) + epsilon)
        return w, r, m

    @rule(r="rms", a="momentum", sparse=touched_rows)
    def rmsprop_momentum(w, g, r, a, learning_rate, rho, momentum, epsilon):
        r = rho * r + (1 - rho) * g**2
        a = momentum * a + learning_rate * g / np.sqrt(r + epsilon)
        w = w - a
        return w, r, a

    @rule(r="rms", a="momentum", m="mg", sparse=touched_rows)
    def centered_rmsprop_momentum(w, g, r, a, m, learning_rate, rho, momentum, epsilon):
        r = rho * r + (1 - rho) * g**2
        m = rho * m + (1 - rho) * g
        variance = np.maximum(r - m**2, 0)
        a = momentum * a + learning_rate * g / np.sqrt(variance + epsilon)
        w = w - a
        return w, r, a, m

    @property
    def selected(self) -> Rule:
        if callable(self.momentum) or self.momentum != 0:
            if self.centered:
                return RMSprop.centered_rmsprop_momentum
            return RMSprop.rmsprop_momentum
        return RMSprop.centered_rmsprop if self.centered else RMSprop.rmsprop
