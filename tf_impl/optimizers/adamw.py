"""AdamW: the TensorFlow side of `reference/optimizers/adamw.py`."""

from __future__ import annotations

from typing import Any

from tf_impl.optimizers.adam import Adam
from tf_impl.weight_decay import DecoupledWeightDecayExtension


class AdamW(DecoupledWeightDecayExtension, Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2017, arXiv:1711.05101,
    algorithm 2).

    Replaces tensorflow_addons.optimizers.AdamW: the first argument is the weight decay,
    which the learning rate does not multiply. For the numbers of Keras 3, torch and
    optax: `decay_times_learning_rate=True, decay_rows="every_row"`.

    Args:
        weight_decay: number, schedule or callable: the part of the weights that each
            step takes away, before Adam's own step.
        learning_rate, beta_1, beta_2, epsilon, amsgrad: as in `tf_impl.Adam`.
        name, sparse, exclude_from_weight_decay, **kwargs: as in
            `tf_impl.base.Optimizer`.

    Sparse gradients: Adam's step on every row, the decay on touched rows.
    """

    def __init__(
        self,
        weight_decay: Any = 1e-4,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        name: str = "AdamW",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            beta_1=beta_1,
            beta_2=beta_2,
            epsilon=epsilon,
            amsgrad=amsgrad,
            name=name,
            **kwargs,
        )
