"""AddSign and PowerSign: longer steps where gradient and average agree in sign."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import rule
from ..sparse import EVERY, TOUCHED, rows


@dataclass(frozen=True)
class AddSign(Optimizer):
    """AddSign.

    Bello, Zoph, Vasudevan, Le, *Neural Optimizer Search with Reinforcement Learning*,
    ICML 2017, arXiv:1709.07417: ``(alpha + f(t) sign(g) sign(m)) g``.

    Args:
        learning_rate: ``[0, inf)``.
        alpha: the factor of the gradient where signs have no say; ``[0, inf)``.
        beta: decay of the average; ``[0, 1)``.
        sign_decay: the weight ``f(t)`` of the signs; ``[0, 1]``. A number, or a
            schedule: the paper's linear, cosine and restart decays are
            ``PolynomialDecay(1.0, steps, end_learning_rate=0.0)``,
            ``CosineDecay(1.0, steps)`` and
            ``CosineDecayRestarts(1.0, steps, t_mul=1.0)``.

    Slots: ``m``, the average of gradients. The gradient's own sign against that of an
    average with it: they agree at the first step always. A sparse gradient decays the
    average of every row; a weight without gradient stays.

    >>> addsign = AddSign(learning_rate=0.5, beta=0.75)
    >>> w, state = addsign.run(np.array([1.0]), [np.array([4.0]), np.array([-0.5])])
    >>> w.tolist(), state.slots[0]["m"].tolist()
    ([-3.0], [0.625])
    """

    learning_rate: Hyper = hyper(0.1, "[0, inf)")
    alpha: Hyper = hyper(1.0, "[0, inf)")
    beta: Hyper = hyper(0.9, "[0, 1)")
    sign_decay: Hyper = hyper(1.0, "[0, 1]")

    home: ClassVar[str] = "tf.raw_ops.ResourceApplyAddSign"
    paper: ClassVar[str] = "Bello et al. 2017, arXiv:1709.07417"
    examples: ClassVar = ({}, {"alpha": 0.25, "sign_decay": 0.75})

    @rule(m="m", sparse=rows(m=EVERY, w=TOUCHED))
    def add_sign(w, g, m, learning_rate, alpha, beta, sign_decay):
        m = beta * m + (1 - beta) * g
        agreement = np.sign(g) * np.sign(m)
        w = w - learning_rate * (alpha + sign_decay * agreement) * g
        return w, m


@dataclass(frozen=True)
class PowerSign(Optimizer):
    """PowerSign.

    Bello, Zoph, Vasudevan, Le, *Neural Optimizer Search with Reinforcement Learning*,
    ICML 2017, arXiv:1709.07417: ``base**(f(t) sign(g) sign(m)) g``.

    Args:
        learning_rate: ``[0, inf)``.
        base: ``(0, inf)``; the paper's is ``e``.
        beta: decay of the average; ``[0, 1)``.
        sign_decay: the weight ``f(t)`` of the signs; ``[0, 1]``; a number, or a
            schedule, as in ``AddSign``.

    Slots: ``m``, the average of gradients. A sparse gradient decays the average of
    every row; a weight without gradient stays.

    >>> powersign = PowerSign(learning_rate=0.5, base=2.0, beta=0.75)
    >>> w, state = powersign.run(np.array([1.0]), [np.array([4.0]), np.array([-1.0])])
    >>> w.tolist(), state.slots[0]["m"].tolist()
    ([-2.75], [0.5])
    """

    learning_rate: Hyper = hyper(0.1, "[0, inf)")
    base: Hyper = hyper(math.e, "(0, inf)")
    beta: Hyper = hyper(0.9, "[0, 1)")
    sign_decay: Hyper = hyper(1.0, "[0, 1]")

    home: ClassVar[str] = "tf.raw_ops.ResourceApplyPowerSign"
    paper: ClassVar[str] = "Bello et al. 2017, arXiv:1709.07417"
    examples: ClassVar = ({}, {"base": 2.0, "sign_decay": 0.5})

    @rule(m="m", sparse=rows(m=EVERY, w=TOUCHED))
    def power_sign(w, g, m, learning_rate, base, beta, sign_decay):
        m = beta * m + (1 - beta) * g
        agreement = np.sign(g) * np.sign(m)
        w = w - learning_rate * base ** (sign_decay * agreement) * g
        return w, m
