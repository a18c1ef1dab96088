"""Stochastic gradient descent: the TensorFlow side of `reference/optimizers/sgd.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.tensors import Tensor


def _plain(w, g, learning_rate):
    w = w - learning_rate * g
    return (w,)


def _momentum(w, g, a, learning_rate, momentum):
    a = momentum * a - learning_rate * g
    w = w + a
    return w, a


def _nesterov(w, g, a, learning_rate, momentum):
    a = momentum * a - learning_rate * g
    w = w + momentum * a - learning_rate * g
    return w, a


def _plain_kernel(w, g, learning_rate):
    return tf.raw_ops.ResourceApplyGradientDescent(var=w, alpha=learning_rate, delta=g)


def _momentum_kernel(w, g, a, learning_rate, momentum):
    return tf.raw_ops.ResourceApplyKerasMomentum(
        var=w, accum=a, lr=learning_rate, grad=g, momentum=momentum
    )


def _nesterov_kernel(w, g, a, learning_rate, momentum):
    return tf.raw_ops.ResourceApplyKerasMomentum(
        var=w,
        accum=a,
        lr=learning_rate,
        grad=g,
        momentum=momentum,
        use_nesterov=True,
    )


class SGD(Optimizer):
    """Gradient descent, with heavy-ball or Nesterov momentum.

    Slot `momentum` (only with momentum): the velocity `a`, which has the learning rate
    inside, as in Keras; torch.optim.SGD keeps it outside.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.01.
        momentum: 0 to 1. Whether it is zero is decided when the optimizer is made.
        nesterov: whether the gradient step comes after the momentum step (Sutskever et
            al., 2013, section 2); nothing without momentum.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows.

    Raises:
        ValueError: `momentum` is outside 0 to 1.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: Any = 0.0,
        nesterov: bool = False,
        name: str = "SGD",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._momentum = has_momentum(momentum)
        self._set_hyper("momentum", momentum)
        self.nesterov = nesterov
        if self._momentum and nesterov:
            self._define(_nesterov, {"momentum": 0.0}, kernel=_nesterov_kernel)
        elif self._momentum:
            self._define(_momentum, {"momentum": 0.0}, kernel=_momentum_kernel)
        else:
            self._define(_plain, {}, kernel=_plain_kernel)

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        coefficients = {"learning_rate": learning_rate}
        if self._momentum:
            coefficients["momentum"] = self._real_hyper("momentum")
        return coefficients

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("momentum"),
            "nesterov": self.nesterov,
        }


def has_momentum(momentum: Any) -> bool:
    """Return whether there is momentum: any number but zero, or what may become one.

    Raises:
        ValueError: a number outside 0 to 1.
    """
    if callable(momentum) or isinstance(momentum, tf.Tensor | tf.Variable):
        return True
    if not 0 <= momentum <= 1:
        raise ValueError(
            "`momentum` must be between [0, 1]. "
            f"Received: momentum={momentum} (of type {type(momentum)})."
        )
    return momentum > 0
