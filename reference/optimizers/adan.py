"""Adan: Nesterov momentum from differences of gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import rule
from ..sparse import every_row


@dataclass(frozen=True)
class Adan(Optimizer):
    """Adan, as in the code of its authors.

    Xie, Zhou, Li, Lin, Yan, *Adan: Adaptive Nesterov Momentum Algorithm for Faster
    Optimizing Deep Models*, 2022, arXiv:2208.06677, algorithm 1, whose ``beta`` is one
    minus ours, with bias corrections.

    Args:
        learning_rate: ``[0, inf)``.
        beta_1: decay of the average of gradients; ``[0, 1)``.
        beta_2: decay of the average of differences, and the factor of a difference
            beside a gradient; ``[0, 1)``. optax has ``1 - beta_2`` as that factor: no
            value makes the two equal.
        beta_3: decay of the average of squares; ``[0, 1)``.
        epsilon: added to the corrected root; ``[0, inf)``.

    Slots: ``m``, the average of gradients; ``v``, that of differences; ``n``, that of
    squares; ``previous_gradient`` (``p``). At the first step the difference is zero.
    The authors' decay divides the weights after the step; with ``no_prox`` theirs is
    the decay of every optimizer here, times the learning rate. A sparse gradient acts
    on every row: on rows that it does not touch the gradient is zero, and differs from
    the one before.

    >>> adan = Adan(0.5, beta_1=0.5, beta_2=0.5, beta_3=0.5, epsilon=0.0)
    >>> w, state = adan.run(np.array([1.0]), [np.array([2.0])])
    >>> w.tolist(), state.slots[0]["n"].tolist()
    ([0.5], [2.0])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    beta_1: Hyper = hyper(0.98, "[0, 1)")
    beta_2: Hyper = hyper(0.92, "[0, 1)")
    beta_3: Hyper = hyper(0.99, "[0, 1)")
    epsilon: float = hyper(1e-8, "[0, inf)")

    home: ClassVar[str] = "github.com/sail-sg/Adan"
    paper: ClassVar[str] = "Xie et al. 2022, arXiv:2208.06677"
    examples: ClassVar = ({"epsilon": 1e-7},)  # 1e-8 is 0 in float16

    @rule(m="m", v="v", n="n", p="previous_gradient", sparse=every_row)
    def adan(w, g, m, v, n, p, t, learning_rate, beta_1, beta_2, beta_3, epsilon):
        d = np.where(t > 1, g - p, 0)
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * d
        n = beta_3 * n + (1 - beta_3) * (g + beta_2 * d) ** 2
        p = g
        m_hat = m / (1 - beta_1**t)
        v_hat = v / (1 - beta_2**t)
        n_hat = n / (1 - beta_3**t)
        u = (m_hat + beta_2 * v_hat) / (np.sqrt(n_hat) + epsilon)
        w = w - learning_rate * u
        return w, m, v, n, p
