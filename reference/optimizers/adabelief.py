"""AdaBelief: Adam whose second moment is how far gradients are from expectation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..optimizer import Arithmetic, Hyper, Optimizer, hyper
from ..rule import Rule, rule
from ..sparse import EVERY, TOUCHED, rows
from .rectified_adam import warmed_up

_SPARSE = rows(m=EVERY, v=EVERY, v_hat=EVERY, w=TOUCHED)


@dataclass(frozen=True)
class AdaBelief(Optimizer):
    """AdaBelief, rectified as RAdam or not.

    Zhuang et al., *AdaBelief Optimizer: Adapting Stepsizes by the Belief in Observed
    Gradients*, 2020, arXiv:2010.07468, algorithm 2.

    Args:
        learning_rate: ``[0, inf)``.
        beta_1: decay of the first moment; ``[0, 1)``.
        beta_2: decay of the second moment; ``[0, 1)``.
        epsilon: added to ``v`` at every step, where it adds up to
            ``epsilon / (1 - beta_2)``, and to the corrected root; ``[0, inf)``.
        amsgrad: divide by the root of the largest second moment so far.
        rectify: as ``RectifiedAdam``, which the paper does not; then its first steps,
            five with usual ``beta_2``, are momentum.
        sma_threshold, total_steps, warmup_proportion, min_lr: as ``RectifiedAdam``.

    Weight decay is times the learning rate here. Slots: ``m``, the first moment; ``v``,
    the second moment of ``g - m``; ``vhat``, the maximum, with amsgrad. A sparse
    gradient decays ``m`` and ``v`` of every row, but to ``v`` of rows that it does not
    touch adds neither their ``m**2`` nor epsilon; it moves and decays the weights of
    touched rows. optax.adabelief is ``rectify=False``, with a second epsilon of its own
    for ``v``.

    >>> belief = AdaBelief(0.5, beta_1=0.5, beta_2=0.75, epsilon=0.0, rectify=False)
    >>> w, state = belief.run(np.array([1.0]), [np.array([2.0])])
    >>> w.tolist(), state.slots[0]["m"].tolist(), state.slots[0]["v"].tolist()
    ([0.0], [1.0], [0.25])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    beta_1: Hyper = hyper(0.9, "[0, 1)")
    beta_2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: float = hyper(1e-14, "[0, inf)")
    amsgrad: bool = False
    rectify: bool = True
    sma_threshold: Hyper = hyper(5.0, "[4, inf)")
    total_steps: float = hyper(0, "[0, inf)")
    warmup_proportion: float = hyper(0.1, "[0, 1]")
    min_lr: float = hyper(0.0, "[0, inf)")
    decay_times_learning_rate: bool = field(default=True, kw_only=True)

    home: ClassVar[str] = "tensorflow_addons.optimizers.AdaBelief"
    paper: ClassVar[str] = "Zhuang et al. 2020, arXiv:2010.07468"
    examples: ClassVar = tuple(
        # The default epsilon is 0 in float16.
        {"epsilon": 1e-6, "weight_decay": 0.01, "rectify": rectify, "amsgrad": amsgrad}
        for rectify in (True, False)
        for amsgrad in (False, True)
    )

    @rule(m="m", v="v", sparse=_SPARSE)
    def adabelief(w, g, m, v, t, touched, learning_rate, beta_1, beta_2, epsilon):
        m = beta_1 * m + (1 - beta_1) * g
        surprise = (1 - beta_2) * (g - m) ** 2 + epsilon
        v = beta_2 * v + np.where(touched, surprise, 0)
        m_hat = m / (1 - beta_1**t)
        root = np.sqrt(v / (1 - beta_2**t))
        u = m_hat / (root + epsilon)
        w = w - learning_rate * u
        return w, m, v

    @rule(m="m", v="v", v_hat="vhat", sparse=_SPARSE)
    def adabelief_amsgrad(
        w,
        g,
        m,
        v,
        v_hat,
        t,
        touched,
        learning_rate,
        beta_1,
        beta_2,
        epsilon,
    ):
        m = beta_1 * m + (1 - beta_1) * g
        surprise = (1 - beta_2) * (g - m) ** 2 + epsilon
        v = beta_2 * v + np.where(touched, surprise, 0)
        v_hat = np.maximum(v_hat, v)
        m_hat = m / (1 - beta_1**t)
        root = np.sqrt(v_hat / (1 - beta_2**t))
        u = m_hat / (root + epsilon)
        w = w - learning_rate * u
        return w, m, v, v_hat

    @rule(m="m", v="v", sparse=_SPARSE)
    def rectified(
        w,
        g,
        m,
        v,
        t,
        touched,
        learning_rate,
        beta_1,
        beta_2,
        epsilon,
        sma_threshold,
    ):
        m = beta_1 * m + (1 - beta_1) * g
        surprise = (1 - beta_2) * (g - m) ** 2 + epsilon
        v = beta_2 * v + np.where(touched, surprise, 0)
        m_hat = m / (1 - beta_1**t)
        root = np.sqrt(v / (1 - beta_2**t))
        rho_inf = 2 / (1 - beta_2) - 1
        rho = rho_inf - 2 * t * beta_2**t / (1 - beta_2**t)
        variance = (rho_inf - 4) * (rho_inf - 2) * rho
        r = np.sqrt(np.divide((rho - 4) * (rho - 2) * rho_inf, variance))
        u = np.where(rho >= sma_threshold, r * m_hat / (root + epsilon), m_hat)
        w = w - learning_rate * u
        return w, m, v

    @rule(m="m", v="v", v_hat="vhat", sparse=_SPARSE)
    def rectified_amsgrad(
        w,
        g,
        m,
        v,
        v_hat,
        t,
        touched,
        learning_rate,
        beta_1,
        beta_2,
        epsilon,
        sma_threshold,
    ):
        m = beta_1 * m + (1 - beta_1) * g
        surprise = (1 - beta_2) * (g - m) ** 2 + epsilon
        v = beta_2 * v + np.where(touched, surprise, 0)
        v_hat = np.maximum(v_hat, v)
        m_hat = m / (1 - beta_1**t)
        root = np.sqrt(v_hat / (1 - beta_2**t))
        rho_inf = 2 / (1 - beta_2) - 1
        rho = rho_inf - 2 * t * beta_2**t / (1 - beta_2**t)
        variance = (rho_inf - 4) * (rho_inf - 2) * rho
        r = np.sqrt(np.divide((rho - 4) * (rho - 2) * rho_inf, variance))
        u = np.where(rho >= sma_threshold, r * m_hat / (root + epsilon), m_hat)
        w = w - learning_rate * u
        return w, m, v, v_hat

    @property
    def selected(self) -> Rule:
        if self.rectify:
            return AdaBelief.rectified_amsgrad if self.amsgrad else AdaBelief.rectified
        return AdaBelief.adabelief_amsgrad if self.amsgrad else AdaBelief.adabelief

    def coefficients(self, iterations: int, arithmetic: Arithmetic) -> dict[str, Any]:
        named = super().coefficients(iterations, arithmetic)
        return warmed_up(named) if self.total_steps else named
