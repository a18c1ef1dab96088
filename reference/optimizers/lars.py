"""LARS: momentum, with steps as long as a part of the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, rule
from ..sparse import every_row


@dataclass(frozen=True)
class LARS(Optimizer):
    """LARS.

    You, Gitman, Ginsburg, *Large Batch Training of Convolutional Networks*, 2017,
    arXiv:1708.03888, algorithm 1.

    Args:
        learning_rate: ``[0, inf)``.
        momentum: ``[0, 1]``.
        weight_decay_rate: added to the gradient, times the weight (L2); ``[0, inf)``.
        eeta: the trust coefficient, the length of a step as a part of the weight's, at
            learning rate 1; ``[0, inf)``; optax's ``trust_coefficient``.
        nesterov: look one momentum step ahead.
        classic_momentum: scale the gradient and collect what is scaled, learning rate
            included, as the paper and optax do; otherwise collect gradients and scale
            what is collected ("popular" momentum of tensorflow/models).

    Slot: ``momentum`` (``v``). Where a norm is zero the ratio is 1. The paper divides
    by ``norm(g) + weight_decay * norm(w)``; tensorflow/models and optax by the norm of
    the sum, as here. A sparse gradient counts as the dense one with zeros elsewhere:
    every row moves (tensorflow/models refuses one).

    >>> lars = LARS(learning_rate=0.5, momentum=0.5, eeta=1.0)
    >>> w, state = lars.run(np.array([3.0, 4.0]), [np.array([2.0, 0.0])])
    >>> w.tolist(), state.slots[0]["momentum"].tolist()
    ([0.5, 4.0], [2.5, 0.0])
    """

    learning_rate: Hyper = hyper(0.01, "[0, inf)")
    momentum: Hyper = hyper(0.9, "[0, 1]")
    weight_decay_rate: Hyper = hyper(0.0, "[0, inf)")
    eeta: Hyper = hyper(0.001, "[0, inf)")
    nesterov: bool = False
    classic_momentum: bool = True

    elementwise: ClassVar[bool] = False
    home: ClassVar[str] = "official.modeling.optimization.lars.LARS"
    paper: ClassVar[str] = "You, Gitman, Ginsburg 2017, arXiv:1708.03888"
    examples: ClassVar = (
        {"weight_decay_rate": 0.05, "nesterov": True},
        {"weight_decay_rate": 0.05, "classic_momentum": False},
    )

    @rule(v="momentum", sparse=every_row)
    def classic(w, g, v, learning_rate, momentum, weight_decay_rate, eeta):
        g = g + weight_decay_rate * w
        length = np.sqrt(np.sum(w**2))
        length_of_g = np.sqrt(np.sum(g**2))
        ratio = np.where(length_of_g > 0, eeta * length / length_of_g, 1)
        ratio = np.where(length > 0, ratio, 1)
        v = momentum * v + learning_rate * ratio * g
        w = w - v
        return w, v

    @rule(v="momentum", sparse=every_row)
    def classic_nesterov(w, g, v, learning_rate, momentum, weight_decay_rate, eeta):
        g = g + weight_decay_rate * w
        length = np.sqrt(np.sum(w**2))
        length_of_g = np.sqrt(np.sum(g**2))
        ratio = np.where(length_of_g > 0, eeta * length / length_of_g, 1)
        ratio = np.where(length > 0, ratio, 1)
        step = learning_rate * ratio * g
        v = momentum * v + step
        w = w - (momentum * v + step)
        return w, v

    @rule(v="momentum", sparse=every_row)
    def popular(w, g, v, learning_rate, momentum, weight_decay_rate, eeta):
        g = g + weight_decay_rate * w
        v = momentum * v + g
        length = np.sqrt(np.sum(w**2))
        length_of_v = np.sqrt(np.sum(v**2))
        ratio = np.where(length_of_v > 0, eeta * length / length_of_v, 1)
        ratio = np.where(length > 0, ratio, 1)
        w = w - learning_rate * ratio * v
        return w, v

    @rule(v="momentum", sparse=every_row)
    def popular_nesterov(w, g, v, learning_rate, momentum, weight_decay_rate, eeta):
        g = g + weight_decay_rate * w
        v = momentum * v + g
        u = momentum * v + g
        length = np.sqrt(np.sum(w**2))
        length_of_u = np.sqrt(np.sum(u**2))
        ratio = np.where(length_of_u > 0, eeta * length / length_of_u, 1)
        ratio = np.where(length > 0, ratio, 1)
        w = w - learning_rate * ratio * u
        return w, v

    @property
    def selected(self) -> Rule:
        if self.classic_momentum:
            return LARS.classic_nesterov if self.nesterov else LARS.classic
        return LARS.popular_nesterov if self.nesterov else LARS.popular
