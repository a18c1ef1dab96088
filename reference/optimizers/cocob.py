"""COCOB: betting on each coordinate, without a learning rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Slot, rule
from ..sparse import touched_rows


@dataclass(frozen=True)
class COCOB(Optimizer):
    """COCOB-Backprop: continuous coin betting.

    Orabona, Tommasi, *Training Deep Networks without Learning Rates Through Coin
    Betting*, 2017, arXiv:1705.07795, algorithm 2.

    Args:
        alpha: the larger, the less is bet in the first steps; ``[1, inf)``.
        learning_rate: factor on how far the weight follows its bet; 1, the default, is
            the paper's; ``[0, inf)``.
        epsilon: the least that the largest gradient can be; ``(0, inf)``.

    Slots: ``lr`` (``L``), the largest gradient, or epsilon, also where a slot of
    float16 holds 0 for that; ``grad_norm_sum`` (``G``), the sum of magnitudes;
    ``gradients_sum`` (``theta``), the sum of gradients; ``tilde_w`` (``b``), the bet:
    how far the weight is from its start; ``reward`` (``R``). The first step is ``1 /
    alpha`` against the sign of the gradient. A sparse gradient changes touched rows
    only; on others a zero gradient would change nothing but the bet's own rounding.
    Addons refuses it. optax.contrib.cocob keeps the first weights in place of the bet.

    >>> cocob = COCOB(alpha=4.0)
    >>> w, state = cocob.run(np.array([1.0]), [np.array([2.0])])
    >>> w.tolist(), state.slots[0]["lr"].tolist()
    ([0.75], [2.0])
    """

    alpha: float = hyper(100, "[1, inf)")
    learning_rate: Hyper = hyper(1.0, "[0, inf)")
    epsilon: float = hyper(1e-8, "(0, inf)")

    home: ClassVar[str] = "tensorflow_addons.optimizers.COCOB"
    paper: ClassVar[str] = "Orabona, Tommasi 2017, arXiv:1705.07795"
    examples: ClassVar = tuple(  # 1e-8 is 0 in float16
        {"alpha": alpha, "epsilon": 1e-7} for alpha in (100.0, 2.0)
    )

    @rule(
        L=Slot("lr", start="epsilon"),
        G="grad_norm_sum",
        theta="gradients_sum",
        b="tilde_w",
        R="reward",
        sparse=touched_rows,
    )
    def cocob(w, g, L, G, theta, b, R, learning_rate, alpha, epsilon):
        L = np.maximum(np.maximum(L, epsilon), np.abs(g))
        G = G + np.abs(g)
        R = np.maximum(R - g * b, 0)
        theta = theta + g
        bet = -theta / L * (L + R) / np.maximum(G + L, alpha * L)
        w = w + learning_rate * (bet - b)
        b = bet
        return w, L, G, theta, b, R
