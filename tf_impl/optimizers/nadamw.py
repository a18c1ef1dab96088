"""NadamW: the TensorFlow side of `reference/optimizers/nadamw.py`."""

from __future__ import annotations

from typing import Any

from tf_impl.optimizers.nadam import Nadam
from tf_impl.weight_decay import EVERY_ROW, DecoupledWeightDecayExtension


class NadamW(DecoupledWeightDecayExtension, Nadam):
    """Nadam with decoupled weight decay (Dozat, 2016; Loshchilov and Hutter, 2017,
    arXiv:1711.05101).

    For those who come from keras_adamw.NadamW. The first argument is the weight decay,
    which the learning rate does not multiply; `schedule_multiplier` anneals both.

    Args:
        weight_decay: number, schedule or callable: the part of the weights that each
            step takes away, before Nadam's own step.
        learning_rate, beta_1, beta_2, epsilon: as in `tf_impl.Nadam`.
        name, sparse, exclude_from_weight_decay, **kwargs: as in
            `tf_impl.base.Optimizer`; `schedule_decay` as in `tf_impl.Nadam`.

    Sparse gradients: `m`, `v` and the decay on every row, Nadam's step on touched rows.
    """

    _DECAY_ROWS = EVERY_ROW

    def __init__(
        self,
        weight_decay: Any = 1e-4,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-7,
        name: str = "NadamW",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            name=name,
            **kwargs,
        )
