"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from ..optimizer import Hyper, hyper
from .adam import Adam


@dataclass(frozen=True)
class AdamW(Adam):
    """Adam with decoupled weight decay.

    Loshchilov, Hutter, *Decoupled Weight Decay Regularization*, 2017, arXiv:1711.05101,
    algorithm 2. What remains of the arguments, and the slots, are those of ``Adam``,
    with its epsilon: torch and optax add theirs to the corrected root.

    Args:
        weight_decay: the part of each weight that every step takes away, before Adam's
            own step; ``[0, inf)``.

    As in TensorFlow Addons, the decay is not multiplied by the learning rate, and a
    sparse gradient decays touched rows only, though Adam's step moves every row. Keras
    3, torch and optax do otherwise on both counts: ``decay_rows="every_row",
    decay_times_learning_rate=True``.

    >>> adamw = AdamW(0.5, 0.5, 0.75, 0.0, weight_decay=0.25)
    >>> w, state = adamw.run(np.array([1.0]), [np.array([2.0])])
    >>> w.tolist()  # 0.75 - 0.5
    [0.25]
    """

    _: KW_ONLY
    weight_decay: Hyper = hyper(1e-4, "[0, inf)")

    home: ClassVar[str] = "tensorflow_addons.optimizers.AdamW"
    paper: ClassVar[str] = "Loshchilov, Hutter 2017, arXiv:1711.05101"
    examples: ClassVar = (
        {},
        {"decay_rows": "every_row", "decay_times_learning_rate": True},
    )
