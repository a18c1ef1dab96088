"""AdamaxW: Adamax with decoupled weight decay."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from ..optimizer import Hyper, hyper
from .adamax import Adamax


@dataclass(frozen=True)
class AdamaxW(Adamax):
    """Adamax with decoupled weight decay.

    Kingma, Ba, *Adam: A Method for Stochastic Optimization*, 2014, arXiv:1412.6980,
    algorithm 2; Loshchilov, Hutter, *Decoupled Weight Decay Regularization*, 2017,
    arXiv:1711.05101. What remains of the arguments, and the slots, are those of
    ``Adamax``, with its epsilon: optax puts it inside the maximum.

    Args:
        weight_decay: this times the learning rate is the part of each weight that every
            step takes away, before Adamax' own step; ``[0, inf)``.

    As in optax, the decay is multiplied by the learning rate, and a sparse gradient
    decays every row; Adamax' step moves touched rows only.

    >>> adamaxw = AdamaxW(0.5, 0.5, epsilon=0.0, weight_decay=0.5)
    >>> w, state = adamaxw.run(np.array([1.0]), [np.array([2.0])])
    >>> w.tolist()  # 0.75 - 0.5
    [0.25]
    """

    _: KW_ONLY
    weight_decay: Hyper = hyper(1e-4, "[0, inf)")
    decay_rows: str = "every_row"
    decay_times_learning_rate: bool = True

    home: ClassVar[str] = "optax.adamaxw"
    paper: ClassVar[str] = "Kingma, Ba 2014, arXiv:1412.6980"
