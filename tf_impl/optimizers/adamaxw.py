"""AdamaxW: the TensorFlow side of `reference/optimizers/adamaxw.py`."""

from __future__ import annotations

from typing import Any

from tf_impl.optimizers.adamax import Adamax
from tf_impl.weight_decay import EVERY_ROW, DecoupledWeightDecayExtension


class AdamaxW(DecoupledWeightDecayExtension, Adamax):
    """Adamax with decoupled weight decay (Kingma and Ba, 2014, arXiv:1412.6980,
    algorithm 2; Loshchilov and Hutter, 2017, arXiv:1711.05101).

    Args:
        weight_decay: number, schedule or callable: this times the learning rate is the
            part of the weights that each step takes away, before Adamax' own step, as
            in optax.adamaxw.
        learning_rate, beta_1, beta_2, epsilon: as in `tf_impl.Adamax`.
        name, sparse, exclude_from_weight_decay, **kwargs: as in
            `tf_impl.base.Optimizer`.

    Sparse gradients: the decay on every row, all else on touched rows.
    """

    _DECAY_ROWS = EVERY_ROW
    _DECAY_TIMES_LEARNING_RATE = True

    def __init__(
        self,
        weight_decay: Any = 1e-4,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-7,
        name: str = "AdamaxW",
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
