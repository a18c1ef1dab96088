"""Momentum with the learning rate outside the velocity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, rule
from ..sparse import touched_rows


@dataclass(frozen=True)
class Momentum(Optimizer):
    """Gradient descent with momentum, in the convention of TensorFlow 1.

    Polyak, *Some methods of speeding up the convergence of iteration methods*, 1964;
    Sutskever et al., *On the importance of initialization and momentum in deep
    learning*, ICML 2013, section 2, for Nesterov's form.

    Args:
        learning_rate: step size, in weights per gradient; ``[0, inf)``. TensorFlow's
            class has no default for it, nor for ``momentum``.
        momentum: the part of the last velocity that is kept; ``[0, 1]``.
        use_nesterov: use Nesterov's form.

    Slots: ``momentum`` (``a``), the velocity in units of the gradient. A new learning
    rate rescales the past too; torch and optax do the same. Keras' ``SGD`` has the
    learning rate inside: the weights are equal while the learning rate is constant.
    A sparse gradient changes touched rows only.

    >>> import numpy as np
    >>> momentum = Momentum(learning_rate=0.5, momentum=0.5)
    >>> ones = np.array([1.0])
    >>> w, state = momentum.run(ones, [ones, ones])
    >>> w.tolist(), state.slots[0]["momentum"].tolist()
    ([-0.25], [1.5])
    """

    learning_rate: Hyper = hyper(0.01, "[0, inf)")
    momentum: Hyper = hyper(0.9, "[0, 1]")
    use_nesterov: bool = False

    home: ClassVar[str] = "tf.compat.v1.train.MomentumOptimizer"
    paper: ClassVar[str] = "Polyak 1964; Sutskever et al. 2013"
    examples: ClassVar = ({}, {"use_nesterov": True})

    @rule(a="momentum", sparse=touched_rows)
    def classical(w, g, a, learning_rate, momentum):
        a = momentum * a + g
        w = w - learning_rate * a
        return w, a

    @rule(a="momentum", sparse=touched_rows)
    def nesterov(w, g, a, learning_rate, momentum):
        a = momentum * a + g
        w = w - learning_rate * (g + momentum * a)
        return w, a

    @property
    def selected(self) -> Rule:
        return Momentum.nesterov if self.use_nesterov else Momentum.classical
