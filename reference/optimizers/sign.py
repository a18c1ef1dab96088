"""Descent by signs: of the gradient, or of its average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import rule
from ..sparse import every_row, touched_rows


@dataclass(frozen=True)
class SignSGD(Optimizer):
    """Descent by the sign of the gradient.

    Bernstein, Wang, Azizzadenesheli, Anandkumar, *signSGD: Compressed Optimisation for
    Non-Convex Problems*, ICML 2018, arXiv:1802.04434, algorithm 1 for one worker.

    Args:
        learning_rate: the length of every step; ``[0, inf)``.

    No slots. A weight whose gradient is zero stays. The home library has no sparse
    gradients; touched rows are the same as every row.

    >>> signsgd = SignSGD(learning_rate=0.5)
    >>> signsgd.run(np.array([1.0, 1.0]), [np.array([1e-9, -7.0])])[0].tolist()
    [0.5, 1.5]
    """

    learning_rate: Hyper = hyper(0.01, "[0, inf)")

    home: ClassVar[str] = "optax.sign_sgd"
    paper: ClassVar[str] = "Bernstein et al. 2018, arXiv:1802.04434"

    @rule(sparse=touched_rows)
    def sign_descent(w, g, learning_rate):
        w = w - learning_rate * np.sign(g)
        return w


@dataclass(frozen=True)
class Signum(Optimizer):
    """Descent by the sign of the average of gradients.

    Bernstein, Wang, Azizzadenesheli, Anandkumar, *signSGD: Compressed Optimisation for
    Non-Convex Problems*, ICML 2018, arXiv:1802.04434, algorithm 2.

    Args:
        learning_rate: the length of every step; ``[0, inf)``.
        beta: decay of the average; ``[0, 1)``; zero is ``SignSGD``.

    Slots: ``m``, the average of gradients; it needs no correction of its bias, which
    has no sign. The home library has no sparse gradients: a sparse one means the same
    as the dense one that it stands for, so that rows without a gradient go on moving.

    >>> signum = Signum(learning_rate=0.5, beta=0.5)
    >>> w, state = signum.run(np.array([1.0]), [np.array([4.0]), np.array([-1.0])])
    >>> w.tolist(), state.slots[0]["m"].tolist()
    ([0.0], [0.5])
    """

    learning_rate: Hyper = hyper(0.01, "[0, inf)")
    beta: Hyper = hyper(0.9, "[0, 1)")

    home: ClassVar[str] = "optax.signum"
    paper: ClassVar[str] = "Bernstein et al. 2018, arXiv:1802.04434"

    @rule(m="m", sparse=every_row)
    def signum(w, g, m, learning_rate, beta):
        m = beta * m + (1 - beta) * g
        w = w - learning_rate * np.sign(m)
        return w, m
