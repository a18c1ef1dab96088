"""SGDW: gradient descent with decoupled weight decay."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from ..optimizer import Hyper, hyper
from .sgd import SGD


@dataclass(frozen=True)
class SGDW(SGD):
    """Gradient descent, optionally with momentum, with decoupled weight decay.

    Loshchilov, Hutter, *Decoupled Weight Decay Regularization*, 2017, arXiv:1711.05101,
    algorithm 1. What remains of the arguments, and the slots, are those of ``SGD``.

    Args:
        learning_rate: step size, in weights per gradient; ``[0, inf)``; 0.001 as in
            TensorFlow Addons, where ``SGD`` has 0.01.
        weight_decay: the part of each weight that every step takes away, before the
            gradient's own step; ``[0, inf)``. The velocity does not see it.

    As in TensorFlow Addons, the decay is not multiplied by the learning rate, and a
    sparse gradient decays touched rows only; without momentum Addons forgets these too.
    Keras 3 and torch do otherwise on both counts: ``decay_rows="every_row",
    decay_times_learning_rate=True``; but what torch's SGD calls ``weight_decay`` is the
    L2 penalty, which the velocity sees.

    >>> sgdw = SGDW(learning_rate=0.5, weight_decay=0.25)
    >>> w, state = sgdw.run(np.array([1.0]), [np.array([1.0])])
    >>> w.tolist()  # 0.75 - 0.5
    [0.25]
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    _: KW_ONLY
    weight_decay: Hyper = hyper(1e-4, "[0, inf)")

    home: ClassVar[str] = "tensorflow_addons.optimizers.SGDW"
    paper: ClassVar[str] = "Loshchilov, Hutter 2017, arXiv:1711.05101"
    examples: ClassVar = (
        {},
        {
            "momentum": 0.9,
            "decay_rows": "every_row",
            "decay_times_learning_rate": True,
        },
    )
