"""Rprop: a step size of its own for every weight, grown and shrunk by signs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Slot, rule
from ..sparse import every_row


@dataclass(frozen=True)
class Rprop(Optimizer):
    """Resilient backpropagation, without weight backtracking (iRprop-).

    Riedmiller, Braun, *A direct adaptive method for faster backpropagation learning:
    the RPROP algorithm*, ICNN 1993; Igel, Huesken, *Empirical evaluation of the
    improved Rprop learning algorithms*, Neurocomputing 50, 2003, section 2.3.

    Args:
        learning_rate: the first step size; ``[0, inf)``. It is read when the state is
            made (of a schedule the first value); a later change has no effect.
        eta_minus: factor of the step size where the gradient changed its sign;
            ``(0, 1]``.
        eta_plus: factor where it kept its sign; ``[1, inf)``.
        min_step_size: ``[0, inf)``.
        max_step_size: ``(0, inf)``.

    Slots: ``prev`` (``p``), the last gradient, zero after a change of sign: a weight
    then waits for one step, and its step size for two; ``step_size`` (``s``).

    torch and optax take the same steps, but for two things. torch limits the step size
    at every step, as here; optax leaves one alone where the sign is not known to have
    stayed or changed, so that a first step may be longer than ``max_step_size``. Both
    take the sign of the product of two gradients, which underflows to zero where
    gradients are tiny; here it is the product of their signs. Neither has sparse
    gradients: a sparse one means the same as the dense one that it stands for, so that
    rows without a gradient forget the last one.

    >>> rprop = Rprop(learning_rate=0.5, eta_plus=2.0)
    >>> w, state = rprop.run(np.array([4.0]), [np.array([1.0]), np.array([9.0])])
    >>> w.tolist(), state.slots[0]["step_size"].tolist()
    ([2.5], [1.0])
    """

    learning_rate: Hyper = hyper(0.01, "[0, inf)")
    eta_minus: Hyper = hyper(0.5, "(0, 1]")
    eta_plus: Hyper = hyper(1.2, "[1, inf)")
    min_step_size: Hyper = hyper(1e-6, "[0, inf)")
    max_step_size: Hyper = hyper(50.0, "(0, inf)")

    home: ClassVar[str] = "optax.rprop"
    paper: ClassVar[str] = "Riedmiller, Braun 1993; Igel, Huesken 2003"
    examples: ClassVar = (
        {},
        {"eta_minus": 0.75, "min_step_size": 0.0078125, "max_step_size": 0.0125},
    )

    @rule(p="prev", s=Slot("step_size", start="learning_rate"), sparse=every_row)
    def rprop(w, g, p, s, eta_minus, eta_plus, min_step_size, max_step_size):
        turn = np.sign(g) * np.sign(p)
        s = np.where(turn > 0, eta_plus * s, np.where(turn < 0, eta_minus * s, s))
        s = np.minimum(np.maximum(s, min_step_size), max_step_size)
        p = np.where(turn < 0, 0, g)
        w = w - s * np.sign(p)
        return w, p, s
