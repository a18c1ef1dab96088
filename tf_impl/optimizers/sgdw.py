"""SGDW: the TensorFlow side of `reference/optimizers/sgdw.py`."""

from __future__ import annotations

from typing import Any

from tf_impl.optimizers.sgd import SGD
from tf_impl.weight_decay import DecoupledWeightDecayExtension


class SGDW(DecoupledWeightDecayExtension, SGD):
    """Gradient descent with decoupled weight decay (Loshchilov and Hutter, 2017,
    arXiv:1711.05101, algorithm 1).

    Replaces tensorflow_addons.optimizers.SGDW: the first argument is the weight decay,
    which the learning rate does not multiply.

    Args:
        weight_decay: number, schedule or callable: the part of the weights that each
            step takes away, before the gradient's own step.
        learning_rate: as in `tf_impl.SGD`, but 0.001.
        momentum, nesterov: as in `tf_impl.SGD`.
        name, sparse, exclude_from_weight_decay, **kwargs: as in
            `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows, without momentum too, where Addons decays none.
    """

    def __init__(
        self,
        weight_decay: Any = 1e-4,
        learning_rate: Any = 0.001,
        momentum: Any = 0.0,
        nesterov: bool = False,
        name: str = "SGDW",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            weight_decay,
            learning_rate=learning_rate,
            momentum=momentum,
            nesterov=nesterov,
            name=name,
            **kwargs,
        )
