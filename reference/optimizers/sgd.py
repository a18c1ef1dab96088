"""Gradient descent, with classical and Nesterov momentum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, rule
from ..sparse import touched_rows


@dataclass(frozen=True)
class SGD(Optimizer):
    """Gradient descent, optionally with momentum.

    Polyak, *Some methods of speeding up the convergence of iteration methods*, 1964;
    Sutskever et al., *On the importance of initialization and momentum in deep
    learning*, ICML 2013, section 2 (equations 1 to 4, Nesterov rewritten for the
    look-ahead point, which is what ``w`` holds).

    Args:
        learning_rate: step size, in weights per gradient; ``[0, inf)``.
        momentum: the part of the last velocity that is kept; ``[0, 1]``. Whether it is
            zero is settled at construction: zero means no slot.
        nesterov: use Nesterov's form. Without momentum it changes nothing.

    Slots: ``momentum`` (``a``), the velocity; it contains the learning rate, so that a
    change of the learning rate does not rescale the past. This is the convention of
    Keras; torch and optax keep the learning rate outside (``a = momentum * a + g``,
    ``w = w - learning_rate * a``): equal while the learning rate is constant. A sparse
    gradient changes touched rows only: elsewhere the velocity waits.

    >>> import numpy as np
    >>> sgd = SGD(learning_rate=0.5, momentum=0.5)
    >>> w, state = sgd.run(np.array([1.0]), [np.array([1.0]), np.array([1.0])])
    >>> w.tolist(), state.slots[0]["momentum"].tolist()
    ([-0.25], [-0.75])
    """

    learning_rate: Hyper = hyper(0.01, "[0, inf)")
    momentum: Hyper = hyper(0.0, "[0, 1]")
    nesterov: bool = False

    home: ClassVar[str] = "tf.keras.optimizers.legacy.SGD"
    paper: ClassVar[str] = "Polyak 1964; Sutskever et al. 2013"
    examples: ClassVar[tuple[dict[str, Any], ...]] = (
        {},
        {"momentum": 0.9},
        {"momentum": 0.9, "nesterov": True},
    )

    @rule(sparse=touched_rows)
    def descent(w, g, learning_rate):
        w = w - learning_rate * g
        return w

    @rule(a="momentum", sparse=touched_rows)
    def classical_momentum(w, g, a, learning_rate, momentum):
        a = momentum * a - learning_rate * g
        w = w + a
        return w, a

    @rule(a="momentum", sparse=touched_rows)
    def nesterov_momentum(w, g, a, learning_rate, momentum):
        a = momentum * a - learning_rate * g
        w = w + momentum * a - learning_rate * g
        return w, a

    @property
    def selected(self) -> Rule:
        if not callable(self.momentum) and self.momentum == 0:
            return SGD.descent
        return SGD.nesterov_momentum if self.nesterov else SGD.classical_momentum
