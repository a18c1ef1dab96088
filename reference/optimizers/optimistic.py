"""Optimistic methods: the direction, and how it has changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, rule
from ..sparse import every_row


@dataclass(frozen=True)
class OptimisticGradientDescent(Optimizer):
    """Optimistic gradient descent, as in optax.

    Mokhtari, Ozdaglar, Pattathil, *A Unified Analysis of Extra-gradient and Optimistic
    Gradient Methods for Saddle Point Problems*, 2019, arXiv:1901.08511, section 5.

    Args:
        learning_rate: ``[0, inf)``.
        alpha: factor of the gradient; ``[0, inf)``.
        beta: factor of its change; ``[0, inf)``. Zero is ``SGD``.

    Slots: ``previous_gradient`` (``p``). At the first step there is no change. optax
    has no sparse gradients; here they act on every row, where one that was touched
    before and is not now goes back by the last change.

    >>> descent = OptimisticGradientDescent(learning_rate=0.5)
    >>> w, _ = descent.run(np.array([1.0]), [np.array([1.0]), np.array([2.0])])
    >>> w.tolist()  # 1 - 0.5 * 1 - 0.5 * (2 + 1)
    [-1.0]
    """

    learning_rate: Hyper = hyper(0.01, "[0, inf)")
    alpha: Hyper = hyper(1.0, "[0, inf)")
    beta: Hyper = hyper(1.0, "[0, inf)")

    home: ClassVar[str] = "optax.optimistic_gradient_descent"
    paper: ClassVar[str] = "Mokhtari et al. 2019, arXiv:1901.08511"
    examples: ClassVar = ({"alpha": 0.9, "beta": 0.7},)

    @rule(p="previous_gradient", sparse=every_row)
    def optimistic(w, g, p, t, learning_rate, alpha, beta):
        change = np.where(t > 1, g - p, 0)
        w = w - learning_rate * (alpha * g + beta * change)
        p = g
        return w, p


@dataclass(frozen=True)
class OptimisticAdam(Optimizer):
    """Optimistic Adam, as in optax (``optimistic_adam_v2``).

    Daskalakis, Ilyas, Syrgkanis, Zeng, *Training GANs with Optimism*, 2017,
    arXiv:1711.00141, algorithm 1.

    Args:
        learning_rate: ``[0, inf)``.
        alpha: factor of Adam's direction; ``[0, inf)``.
        beta: factor of its change; ``[0, inf)``.
        beta_1: decay of the first moment; ``[0, 1)``.
        beta_2: decay of the second moment; ``[0, 1)``.
        epsilon: added to the *corrected* root; ``[0, inf)``.
        nesterov: the direction is that of ``Nadam`` without its schedule, as optax has
            it; the paper has Adam's.

    Slots: ``m`` and ``v``, the moments; ``direction`` (``d``), the one before. At the
    first step there is no change. optax' older ``optimistic_adam`` has its ``optimism``
    in place of ``learning_rate * beta``. optax has no sparse gradients; here they act
    on every row.

    >>> adam = OptimisticAdam(0.5, beta_1=0.5, beta_2=0.75, epsilon=0.0, nesterov=False)
    >>> w, state = adam.run(np.array([1.0]), [np.array([2.0])])
    >>> w.tolist(), state.slots[0]["direction"].tolist()
    ([0.5], [1.0])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    alpha: Hyper = hyper(1.0, "[0, inf)")
    beta: Hyper = hyper(1.0, "[0, inf)")
    beta_1: Hyper = hyper(0.9, "[0, 1)")
    beta_2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: float = hyper(1e-8, "[0, inf)")
    nesterov: bool = True

    home: ClassVar[str] = "optax.optimistic_adam_v2"
    paper: ClassVar[str] = "Daskalakis et al. 2017, arXiv:1711.00141"
    examples: ClassVar = (  # 1e-8 is 0 in float16
        {"alpha": 0.9, "beta": 0.7, "epsilon": 1e-7},
        {"alpha": 0.9, "beta": 0.7, "epsilon": 1e-7, "nesterov": False},
    )

    @rule(m="m", v="v", d="direction", sparse=every_row)
    def optimistic_adam(
        w, g, m, v, d, t, learning_rate, alpha, beta, beta_1, beta_2, epsilon
    ):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        m_hat = m / (1 - beta_1**t)
        v_hat = v / (1 - beta_2**t)
        u = m_hat / (np.sqrt(v_hat) + epsilon)
        change = np.where(t > 1, u - d, 0)
        w = w - learning_rate * (alpha * u + beta * change)
        d = u
        return w, m, v, d

    @rule(m="m", v="v", d="direction", sparse=every_row)
    def optimistic_nadam(
        w, g, m, v, d, t, learning_rate, alpha, beta, beta_1, beta_2, epsilon
    ):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        m_hat = m / (1 - beta_1 ** (t + 1))
        g_hat = g / (1 - beta_1**t)
        v_hat = v / (1 - beta_2**t)
        u = (beta_1 * m_hat + (1 - beta_1) * g_hat) / (np.sqrt(v_hat) + epsilon)
        change = np.where(t > 1, u - d, 0)
        w = w - learning_rate * (alpha * u + beta * change)
        d = u
        return w, m, v, d

    @property
    def selected(self) -> Rule:
        if self.nesterov:
            return OptimisticAdam.optimistic_nadam
        return OptimisticAdam.optimistic_adam
