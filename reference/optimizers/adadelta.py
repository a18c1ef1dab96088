"""Adadelta: step and gradient measured in running root mean squares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import rule
from ..sparse import touched_rows


@dataclass(frozen=True)
class Adadelta(Optimizer):
    """Adadelta.

    Zeiler, *ADADELTA: An Adaptive Learning Rate Method*, 2012, arXiv:1212.5701,
    algorithm 1; the paper has no learning rate (1.0 here).

    Args:
        learning_rate: factor on the paper's step; ``[0, inf)``.
        rho: decay of both averages; ``[0, 1]``.
        epsilon: under both roots, as in the paper; ``[0, inf)``.

    Slots: ``accum_grad`` (``n``), the average of squared gradients; ``accum_var``
    (``d``), the average of squared steps. The step ``u`` uses the new ``n`` and the old
    ``d``. A sparse gradient decays the averages of touched rows only.

    >>> adadelta = Adadelta(learning_rate=1.0, rho=0.0, epsilon=1.0)
    >>> w, state = adadelta.run(np.array([1.0]), [np.array([0.75])])
    >>> w.round(9).tolist(), state.slots[0]["accum_var"].round(9).tolist()
    ([0.4], [0.36])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    rho: Hyper = hyper(0.95, "[0, 1]")
    epsilon: float = hyper(1e-7, "[0, inf)")

    home: ClassVar[str] = "tf.keras.optimizers.legacy.Adadelta"
    paper: ClassVar[str] = "Zeiler 2012, arXiv:1212.5701"

    @rule(n="accum_grad", d="accum_var", sparse=touched_rows)
    def adadelta(w, g, n, d, learning_rate, rho, epsilon):
        n = rho * n + (1 - rho) * g**2
        u = np.sqrt(d + epsilon) / np.sqrt(n + epsilon) * g
        d = rho * d + (1 - rho) * u**2
        w = w - learning_rate * u
        return w, n, d
