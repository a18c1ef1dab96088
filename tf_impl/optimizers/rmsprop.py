"""RMSprop: the TensorFlow side of `reference/optimizers/rmsprop.py`."""

from __future__ import annotations

from functools import partial
from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.optimizers.sgd import has_momentum
from tf_impl.tensors import Tensor


def _variance(r, m):
    # Rounding can make a variance negative; a NaN stays one.
    return tf.maximum(r - tf.square(m), 0.0)


def _root(square, epsilon, inside):
    return tf.sqrt(square + epsilon) if inside else tf.sqrt(square) + epsilon


def _plain(w, g, r, learning_rate, rho, one_minus_rho, epsilon, inside):
    r = rho * r + one_minus_rho * tf.square(g)
    w = w - learning_rate * g / _root(r, epsilon, inside)
    return w, r


def _centered(w, g, r, m, learning_rate, rho, one_minus_rho, epsilon, inside):
    r = rho * r + one_minus_rho * tf.square(g)
    m = rho * m + one_minus_rho * g
    w = w - learning_rate * g / _root(_variance(r, m), epsilon, inside)
    return w, r, m


def _moved(w, g, a, root, learning_rate, momentum, rate_inside):
    if rate_inside:
        a = momentum * a + learning_rate * g / root
        return w - a, a
    a = momentum * a + g / root
    return w - learning_rate * a, a


def _momentum(
    w,
    g,
    r,
    a,
    learning_rate,
    rho,
    one_minus_rho,
    epsilon,
    momentum,
    inside,
    rate_inside,
):
    r = rho * r + one_minus_rho * tf.square(g)
    root = _root(r, epsilon, inside)
    w, a = _moved(w, g, a, root, learning_rate, momentum, rate_inside)
    return w, r, a


def _momentum_centered(
    w,
    g,
    r,
    a,
    m,
    learning_rate,
    rho,
    one_minus_rho,
    epsilon,
    momentum,
    inside,
    rate_inside,
):
    r = rho * r + one_minus_rho * tf.square(g)
    m = rho * m + one_minus_rho * g
    root = _root(_variance(r, m), epsilon, inside)
    w, a = _moved(w, g, a, root, learning_rate, momentum, rate_inside)
    return w, r, a, m


class RMSprop(Optimizer):
    """RMSprop (Tieleman and Hinton, 2012, lecture 6e; centered: Graves, 2013,
    arXiv:1308.0850, equations 38 to 45).

    Slots: `rms`, the average `r` of squared gradients; `momentum` (with momentum), the
    velocity `a`; `mg` (centered), the average `m` of gradients.

    Unlike Keras, the centered variance never falls below zero.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        rho: decay of the averages, 0 to 1, default 0.9.
        momentum: 0 to 1. Whether it is zero is decided when the optimizer is made.
        epsilon: 1e-7.
        centered: whether to divide by the deviation instead of the root mean square.
        epsilon_inside: whether epsilon is under the root, as in Keras 3 and optax, or
            outside, as in torch. `None` (default) is legacy Keras: outside without
            momentum, inside with it.
        rate_inside: whether the velocity has the learning rate inside, as in Keras and
            optax, or is multiplied by it, as in torch. Without momentum no effect.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: without momentum, `rms` and `mg` on every row and the weights on
    touched rows; with momentum, touched rows.

    Raises:
        ValueError: `momentum` is outside 0 to 1.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        rho: Any = 0.9,
        momentum: Any = 0.0,
        epsilon: float = 1e-7,
        centered: bool = False,
        name: str = "RMSprop",
        epsilon_inside: bool | None = None,
        rate_inside: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("rho", rho)
        self._momentum = has_momentum(momentum)
        self._set_hyper("momentum", momentum)
        self.epsilon = epsilon_or_default(epsilon)
        self.centered = centered
        self.epsilon_inside = epsilon_inside
        self.rate_inside = rate_inside
        inside = self._momentum if epsilon_inside is None else epsilon_inside
        names = ["rms", *["momentum"] * self._momentum, *["mg"] * centered]
        slots = dict.fromkeys(names, 0.0)
        if self._momentum:
            moving = partial(
                _momentum_centered if centered else _momentum,
                inside=inside,
                rate_inside=rate_inside,
            )
            self._define(moving, slots)
        else:
            still = partial(_centered if centered else _plain, inside=inside)
            self._define(still, slots, every_row=names)

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        rho = self._real_hyper("rho")
        coefficients = {
            "learning_rate": learning_rate,
            "rho": rho,
            "one_minus_rho": 1 - rho,
            "epsilon": self.epsilon,
        }
        if self._momentum:
            coefficients["momentum"] = self._real_hyper("momentum")
        return coefficients

    def get_config(self) -> dict[str, Any]:
        config = {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("rho", "momentum"),
            "epsilon": self.epsilon,
            "centered": self.centered,
        }
        if self.epsilon_inside is not None:
            config["epsilon_inside"] = self.epsilon_inside
        if not self.rate_inside:
            config["rate_inside"] = False
        return config
