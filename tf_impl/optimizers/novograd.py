"""NovoGrad: the TensorFlow side of `reference/optimizers/novograd.py`."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor
from tf_impl.updates import Rule


@functools.cache
def _novograd(grad_averaging: bool, amsgrad: bool) -> Rule:
    def novograd(
        w,
        g,
        m,
        v,
        *vhat,
        learning_rate,
        beta_1,
        one_minus_beta_1,
        beta_2,
        one_minus_beta_2,
        epsilon,
        weight_decay,
    ):
        first = tf.equal(v, 0)
        norm_squared = tf.reduce_sum(tf.square(g))
        average = beta_2 * v + one_minus_beta_2 * norm_squared
        v = tf.where(first, norm_squared, average)
        largest = tf.maximum(vhat[0], v) if amsgrad else v
        direction = g / (tf.sqrt(largest) + epsilon) + weight_decay * w
        if grad_averaging:
            one = tf.ones_like(one_minus_beta_1)
            direction = tf.where(first, one, one_minus_beta_1) * direction
        m = beta_1 * m - learning_rate * direction
        return (w + m, m, v, largest) if amsgrad else (w + m, m, v)

    return novograd


class NovoGrad(Optimizer):
    """NovoGrad (Ginsburg et al., 2019, arXiv:1905.11286, algorithm 1).

    Replaces tensorflow_addons.optimizers.NovoGrad.

    Slots: `m`, the velocity, learning rate included; `v`, one number for each variable,
    the average of the gradient's squared norm; `vhat` (amsgrad), the largest `v` so
    far, also one number, which Addons repeats over the variable's shape.

    `v` starts at the squared norm of the variable's first gradient that is not zero,
    however late that comes.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        beta_1, beta_2: decay of `m` and `v`, 0 to below 1, defaults 0.9 and 0.999.
        epsilon: outside the root, 1e-7.
        weight_decay: 0 or more, default 0: added to the direction, times the weights.
        grad_averaging: whether directions after the first enter with `1 - beta_1`.
        amsgrad: whether to divide by the largest `v` so far.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-7,
        weight_decay: Any = 0.0,
        grad_averaging: bool = False,
        amsgrad: bool = False,
        name: str = "NovoGrad",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self._set_hyper("weight_decay", weight_decay)
        self.epsilon = epsilon_or_default(epsilon)
        self.grad_averaging = grad_averaging
        self.amsgrad = amsgrad
        scalars = ["v", "vhat"] if amsgrad else ["v"]
        self._define(
            _novograd(grad_averaging, amsgrad),
            dict.fromkeys(["m", *scalars], 0.0),
            elementwise=False,
            shapes={name: lambda shape: () for name in scalars},
        )

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("beta_1")
        beta_2 = self._real_hyper("beta_2")
        return {
            "learning_rate": learning_rate,
            "beta_1": beta_1,
            "one_minus_beta_1": 1 - beta_1,
            "beta_2": beta_2,
            "one_minus_beta_2": 1 - beta_2,
            "epsilon": self.epsilon,
            "weight_decay": self._real_hyper("weight_decay"),
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta_1", "beta_2"),
            "epsilon": self.epsilon,
            **self._hyper_config("weight_decay"),
            "grad_averaging": self.grad_averaging,
            "amsgrad": self.amsgrad,
        }
