"""NadamW: Nadam with decoupled weight decay."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from ..optimizer import Hyper, hyper
from .nadam import Nadam


@dataclass(frozen=True)
class NadamW(Nadam):
    """Nadam with decoupled weight decay.

    Dozat, *Incorporating Nesterov Momentum into Adam*, ICLR workshop 2016; Loshchilov,
    Hutter, *Decoupled Weight Decay Regularization*, 2017, arXiv:1711.05101. What
    remains of the arguments, and the slots, are those of ``Nadam``.

    Args:
        weight_decay: the part of each weight that every step takes away, before Nadam's
            own step; ``[0, inf)``.

    As in keras-adamw, the decay is not multiplied by the learning rate, and a sparse
    gradient decays every row, though Nadam's step moves touched rows only. There the
    dense step has another momentum, and epsilon under the root. torch's ``NAdam`` with
    ``decoupled_weight_decay`` and optax' ``nadamw`` (whose momentum has no schedule)
    say ``decay_times_learning_rate=True``.

    >>> nadamw = NadamW(0.0, weight_decay=0.25)
    >>> w, state = nadamw.run(np.array([1.0]), [np.array([2.0])])
    >>> w.tolist()
    [0.75]
    """

    _: KW_ONLY
    weight_decay: Hyper = hyper(1e-4, "[0, inf)")
    decay_rows: str = "every_row"

    home: ClassVar[str] = "keras_adamw.NadamW"
    paper: ClassVar[str] = "Dozat 2016; Loshchilov, Hutter 2017, arXiv:1711.05101"
