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
        epsilon: ``[0, inf)``.
        centered: divide by the running standard deviation instead of the root mean
            square. The variance ``r - m**2`` is never negative in exact arithmetic but
            is after rounding; here it is limited to zero from below. Keras, torch and
            optax take the root of the negative number: NaN after some constant
            gradients.
        epsilon_inside: whether epsilon is under the root (Keras 3, the newer tf_keras,
            optax, which calls it ``eps_in_sqrt``) or added to it (torch). ``None`` is
            legacy Keras: **without momentum it is added to the root, with momentum it
            moves under the root**. No equation says so: at ``g = 1e-6`` the first step
            is 760 times smaller with a momentum of 1e-30 than with none.
        rate_inside: whether the learning rate is in the velocity (Keras, optax) or
            multiplies it (torch), which differs once the rate changes. Without momentum
            it has no effect.

    Slots: ``rms`` (``r``), the average of squares; ``momentum`` (``a``), the velocity;
    ``mg`` (``m``), the average, when centered. Without momentum a sparse gradient
    decays the averages of every row; the newer Keras classes do with it what they do
    with the dense one, ``sparse="every_row"``.

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
    epsilon_inside: bool | None = None
    rate_inside: bool = True

    home: ClassVar[str] = "tf.keras.optimizers.legacy.RMSprop"
    paper: ClassVar[str] = "Tieleman, Hinton 2012; Graves 2013, arXiv:1308.0850"
    examples: ClassVar = (
        {},
        {"centered": True},
        {"momentum": 0.8},
        {"momentum": 0.8, "centered": True},
        {"epsilon_inside": True},
        {"epsilon_inside": True, "centered": True},
        {"momentum": 0.8, "epsilon_inside": False},
        {"momentum": 0.8, "epsilon_inside": False, "centered": True},
        {"momentum": 0.8, "rate_inside": False},
        {"momentum": 0.8, "rate_inside": False, "centered": True},
        {"momentum": 0.8, "epsilon_inside": False, "rate_inside": False},
        {
            "momentum": 0.8,
            "epsilon_inside": False,
            "rate_inside": False,
            "centered": True,
        },
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

    @rule(r="rms", sparse=rows(r=EVERY, w=TOUCHED))
    def rmsprop_epsilon_inside(w, g, r, learning_rate, rho, epsilon):
        r = rho * r + (1 - rho) * g**2
        w = w - learning_rate * g / np.sqrt(r + epsilon)
        return w, r

    @rule(r="rms", m="mg", sparse=rows(r=EVERY, m=EVERY, w=TOUCHED))
    def centered_rmsprop_epsilon_inside(w, g, r, m, learning_rate, rho, epsilon):
        r = rho * r + (1 - rho) * g**2
        m = rho * m + (1 - rho) * g
        variance = np.maximum(r - m**2, 0)
        w = w - learning_rate * g / np.sqrt(variance + epsilon)
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

    @rule(r="rms", a="momentum", sparse=touched_rows)
    def rmsprop_momentum_epsilon_outside(
        w, g, r, a, learning_rate, rho, momentum, epsilon
    ):
        r = rho * r + (1 - rho) * g**2
        a = momentum * a + learning_rate * g / (np.sqrt(r) + epsilon)
        w = w - a
        return w, r, a

    @rule(r="rms", a="momentum", m="mg", sparse=touched_rows)
    def centered_rmsprop_momentum_epsilon_outside(
        w, g, r, a, m, learning_rate, rho, momentum, epsilon
    ):
        r = rho * r + (1 - rho) * g**2
        m = rho * m + (1 - rho) * g
        variance = np.maximum(r - m**2, 0)
        a = momentum * a + learning_rate * g / (np.sqrt(variance) + epsilon)
        w = w - a
        return w, r, a, m

    @rule(r="rms", a="momentum", sparse=touched_rows)
    def rmsprop_momentum_rate_outside(
        w, g, r, a, learning_rate, rho, momentum, epsilon
    ):
        r = rho * r + (1 - rho) * g**2
        a = momentum * a + g / np.sqrt(r + epsilon)
        w = w - learning_rate * a
        return w, r, a

    @rule(r="rms", a="momentum", m="mg", sparse=touched_rows)
    def centered_rmsprop_momentum_rate_outside(
        w, g, r, a, m, learning_rate, rho, momentum, epsilon
    ):
        r = rho * r + (1 - rho) * g**2
        m = rho * m + (1 - rho) * g
        variance = np.maximum(r - m**2, 0)
        a = momentum * a + g / np.sqrt(variance + epsilon)
        w = w - learning_rate * a
        return w, r, a, m

    @rule(r="rms", a="momentum", sparse=touched_rows)
    def rmsprop_momentum_epsilon_and_rate_outside(
        w, g, r, a, learning_rate, rho, momentum, epsilon
    ):
        r = rho * r + (1 - rho) * g**2
        a = momentum * a + g / (np.sqrt(r) + epsilon)
        w = w - learning_rate * a
        return w, r, a

    @rule(r="rms", a="momentum", m="mg", sparse=touched_rows)
    def centered_rmsprop_momentum_epsilon_and_rate_outside(
        w, g, r, a, m, learning_rate, rho, momentum, epsilon
    ):
        r = rho * r + (1 - rho) * g**2
        m = rho * m + (1 - rho) * g
        variance = np.maximum(r - m**2, 0)
        a = momentum * a + g / (np.sqrt(variance) + epsilon)
        w = w - learning_rate * a
        return w, r, a, m

    @property
    def selected(self) -> Rule:
        moving = callable(self.momentum) or self.momentum != 0
        inside = moving if self.epsilon_inside is None else self.epsilon_inside
        if not moving and inside:
            plain = RMSprop.rmsprop_epsilon_inside
            centered = RMSprop.centered_rmsprop_epsilon_inside
        elif not moving:
            plain = RMSprop.rmsprop
            centered = RMSprop.centered_rmsprop
        elif inside and self.rate_inside:
            plain = RMSprop.rmsprop_momentum
            centered = RMSprop.centered_rmsprop_momentum
        elif inside:
            plain = RMSprop.rmsprop_momentum_rate_outside
            centered = RMSprop.centered_rmsprop_momentum_rate_outside
        elif self.rate_inside:
            plain = RMSprop.rmsprop_momentum_epsilon_outside
            centered = RMSprop.centered_rmsprop_momentum_epsilon_outside
        else:
            plain = RMSprop.rmsprop_momentum_epsilon_and_rate_outside
            centered = RMSprop.centered_rmsprop_momentum_epsilon_and_rate_outside
        return centered if self.centered else plain
