"""NovoGrad: one second moment for each weight."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, Slot, rule
from ..sparse import touched_rows


def scalar(weight: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a number that belongs to a weight."""
    return ()


@dataclass(frozen=True)
class NovoGrad(Optimizer):
    """NovoGrad.

    Ginsburg et al., *Stochastic Gradient Methods with Layer-wise Adaptive Moments for
    Training of Deep Networks*, 2019, arXiv:1905.11286, algorithm 1.

    Args:
        learning_rate: ``[0, inf)``.
        beta_1: decay of the first moment; ``[0, 1)``; the paper has 0.95.
        beta_2: decay of the second moment; ``[0, 1)``; the paper has 0.98.
        epsilon: added to the root; ``[0, inf)``.
        weight_decay: added to the scaled gradient, times the weight; ``[0, inf)``.
        grad_averaging: let the scaled gradient enter with ``1 - beta_1``, after the
            first step.
        amsgrad: divide by the root of the largest second moment so far.

    Slots: ``m``, of the weight's shape, from which the learning rate is not taken out,
    as in TensorFlow Addons: a new rate tells on later gradients only; ``v``, one number
    for each weight; ``vhat``, its maximum, with amsgrad (Addons repeats the number over
    the weight's shape). ``v`` starts at the first gradient that is not zero: it is the
    weight's first step that is special, whenever that comes. Addons asks the
    optimizer's step count, so that a weight first seen later takes a step
    ``1 / sqrt(1 - beta_2)`` times as long. A sparse gradient changes ``m`` and the
    weight on touched rows.

    >>> novograd = NovoGrad(learning_rate=0.5, epsilon=0.0)
    >>> w, state = novograd.run(np.array([1.0, 1.0]), [np.array([3.0, 4.0])])
    >>> w.round(3).tolist(), float(state.slots[0]["v"])
    ([0.7, 0.6], 25.0)
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    beta_1: Hyper = hyper(0.9, "[0, 1)")
    beta_2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: float = hyper(1e-7, "[0, inf)")
    grad_averaging: bool = False
    amsgrad: bool = False
    _: KW_ONLY
    weight_decay: Hyper = hyper(0.0, "[0, inf)")

    elementwise: ClassVar[bool] = False
    home: ClassVar[str] = "tensorflow_addons.optimizers.NovoGrad"
    paper: ClassVar[str] = "Ginsburg et al. 2019, arXiv:1905.11286"
    examples: ClassVar = (
        {"weight_decay": 0.05},
        {"weight_decay": 0.05, "grad_averaging": True, "amsgrad": True},
    )

    @rule(m="m", v=Slot("v", shape=scalar), sparse=touched_rows)
    def novograd(w, g, m, v, learning_rate, beta_1, beta_2, epsilon, weight_decay):
        square = np.sum(g**2)
        v = np.where(v > 0, beta_2 * v + (1 - beta_2) * square, square)
        g_hat = g / (np.sqrt(v) + epsilon) + weight_decay * w
        m = beta_1 * m - learning_rate * g_hat
        w = w + m
        return w, m, v

    @rule(m="m", v=Slot("v", shape=scalar), sparse=touched_rows)
    def averaging(w, g, m, v, learning_rate, beta_1, beta_2, epsilon, weight_decay):
        square = np.sum(g**2)
        part = np.where(v > 0, 1 - beta_1, 1)
        v = np.where(v > 0, beta_2 * v + (1 - beta_2) * square, square)
        g_hat = g / (np.sqrt(v) + epsilon) + weight_decay * w
        m = beta_1 * m - learning_rate * part * g_hat
        w = w + m
        return w, m, v

    @rule(
        m="m",
        v=Slot("v", shape=scalar),
        v_hat=Slot("vhat", shape=scalar),
        sparse=touched_rows,
    )
    def novograd_amsgrad(
        w, g, m, v, v_hat, learning_rate, beta_1, beta_2, epsilon, weight_decay
    ):
        square = np.sum(g**2)
        v = np.where(v > 0, beta_2 * v + (1 - beta_2) * square, square)
        v_hat = np.maximum(v_hat, v)
        g_hat = g / (np.sqrt(v_hat) + epsilon) + weight_decay * w
        m = beta_1 * m - learning_rate * g_hat
        w = w + m
        return w, m, v, v_hat

    @rule(
        m="m",
        v=Slot("v", shape=scalar),
        v_hat=Slot("vhat", shape=scalar),
        sparse=touched_rows,
    )
    def averaging_amsgrad(
        w, g, m, v, v_hat, learning_rate, beta_1, beta_2, epsilon, weight_decay
    ):
        square = np.sum(g**2)
        part = np.where(v > 0, 1 - beta_1, 1)
        v = np.where(v > 0, beta_2 * v + (1 - beta_2) * square, square)
        v_hat = np.maximum(v_hat, v)
        g_hat = g / (np.sqrt(v_hat) + epsilon) + weight_decay * w
        m = beta_1 * m - learning_rate * part * g_hat
        w = w + m
        return w, m, v, v_hat

    @property
    def selected(self) -> Rule:
        if self.amsgrad:
            return (
                NovoGrad.averaging_amsgrad
                if self.grad_averaging
                else NovoGrad.novograd_amsgrad
            )
        return NovoGrad.averaging if self.grad_averaging else NovoGrad.novograd
