"""Momentum: the TensorFlow side of `reference/optimizers/momentum.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.optimizers.sgd import has_momentum
from tf_impl.tensors import Tensor


def _classical(w, g, a, learning_rate, momentum):
    a = momentum * a + g
    w = w - learning_rate * a
    return w, a


def _nesterov(w, g, a, learning_rate, momentum):
    a = momentum * a + g
    w = w - learning_rate * (g + momentum * a)
    return w, a


def _classical_kernel(w, g, a, learning_rate, momentum):
    return tf.raw_ops.ResourceApplyMomentum(
        var=w, accum=a, lr=learning_rate, grad=g, momentum=momentum
    )


def _nesterov_kernel(w, g, a, learning_rate, momentum):
    return tf.raw_ops.ResourceApplyMomentum(
        var=w,
        accum=a,
        lr=learning_rate,
        grad=g,
        momentum=momentum,
        use_nesterov=True,
    )


class Momentum(Optimizer):
    """Gradient descent with heavy-ball or Nesterov momentum, as
    `tf.compat.v1.train.MomentumOptimizer` has it.

    Slot `momentum`: the velocity `a`, without the learning rate, which `SGD` has
    inside; a new learning rate takes effect on the past gradients too.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.01.
        momentum: 0 to 1, default 0.9.
        use_nesterov: whether the gradient step comes after the momentum step (Sutskever
            et al., 2013, section 2).
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows.

    Raises:
        ValueError: `momentum` is outside 0 to 1.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: Any = 0.9,
        use_nesterov: bool = False,
        name: str = "Momentum",
        **kwargs: Any,
    ) -> None:
        has_momentum(momentum)
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("momentum", momentum)
        self.use_nesterov = use_nesterov
        if use_nesterov:
            self._define(_nesterov, {"momentum": 0.0}, kernel=_nesterov_kernel)
        else:
            self._define(_classical, {"momentum": 0.0}, kernel=_classical_kernel)

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        return {
            "learning_rate": learning_rate,
            "momentum": self._real_hyper("momentum"),
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("momentum"),
            "use_nesterov": self.use_nesterov,
        }
