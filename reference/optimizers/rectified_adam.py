"""RAdam: Adam that starts as momentum, until its second moment can be trusted."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..optimizer import Arithmetic, Hyper, Optimizer, hyper
from ..rule import Rule, rule
from ..sparse import EVERY, TOUCHED, every_row, rows


@dataclass(frozen=True)
class RectifiedAdam(Optimizer):
    """RAdam as in TensorFlow Addons.

    Liu, Jiang, He, Chen, Liu, Gao, Han, *On the Variance of the Adaptive Learning Rate
    and Beyond*, 2019, arXiv:1908.03265, algorithm 2.

    Args:
        learning_rate: ``[0, inf)``.
        beta_1: decay of the first moment; ``[0, 1)``.
        beta_2: decay of the second moment; ``[0, 1)``.
        epsilon: added to the *corrected* root; ``[0, inf)``.
        amsgrad: divide by the root of the largest second moment so far.
        sma_threshold: the step is rectified from this length ``rho`` of the average on,
            and plain momentum before; ``[4, inf)``; the paper has ``rho > 4``.
        total_steps: with a number above zero, the learning rate rises for a part of
            them and then falls to ``min_lr``; ``[0, inf)``.
        warmup_proportion: the part of ``total_steps`` in which it rises; ``[0, 1]``.
        min_lr: the learning rate after ``total_steps``; ``[0, inf)``.

    Weight decay is times the learning rate here. Slots: ``m`` and ``v``, the moments;
    ``vhat``, the maximum, with amsgrad. A sparse gradient decays the moments of every
    row, and moves and decays the weights of touched rows only. optax.radam has the same
    rule.

    >>> radam = RectifiedAdam(learning_rate=0.5, beta_1=0.5, epsilon=0.0)
    >>> w, state = radam.run(np.array([1.0]), [np.array([2.0])])
    >>> w.tolist(), state.slots[0]["m"].tolist()  # momentum: the first step is g
    ([0.0], [1.0])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    beta_1: Hyper = hyper(0.9, "[0, 1)")
    beta_2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: float = hyper(1e-7, "[0, inf)")
    amsgrad: bool = False
    sma_threshold: Hyper = hyper(5.0, "[4, inf)")
    total_steps: float = hyper(0, "[0, inf)")
    warmup_proportion: float = hyper(0.1, "[0, 1]")
    min_lr: float = hyper(0.0, "[0, inf)")
    decay_times_learning_rate: bool = field(default=True, kw_only=True)

    home: ClassVar[str] = "tensorflow_addons.optimizers.RectifiedAdam"
    paper: ClassVar[str] = "Liu et al. 2019, arXiv:1908.03265"
    examples: ClassVar = (
        {"weight_decay": 0.01},
        {
            "amsgrad": True,
            "weight_decay": 0.01,
            "total_steps": 7,
            "warmup_proportion": 0.3,
            "min_lr": 1e-4,
        },
    )

    @rule(m="m", v="v", sparse=rows(m=EVERY, v=EVERY, w=TOUCHED))
    def rectified_adam(
        w,
        g,
        m,
        v,
        t,
        learning_rate,
        beta_1,
        beta_2,
        epsilon,
        sma_threshold,
    ):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        m_hat = m / (1 - beta_1**t)
        root = np.sqrt(v / (1 - beta_2**t))
        rho_inf = 2 / (1 - beta_2) - 1
        rho = rho_inf - 2 * t * beta_2**t / (1 - beta_2**t)
        variance = (rho_inf - 4) * (rho_inf - 2) * rho
        r = np.sqrt(np.divide((rho - 4) * (rho - 2) * rho_inf, variance))
        u = np.where(rho >= sma_threshold, r * m_hat / (root + epsilon), m_hat)
        w = w - learning_rate * u
        return w, m, v

    @rule(
        m="m",
        v="v",
        v_hat="vhat",
        sparse=rows(m=EVERY, v=EVERY, v_hat=EVERY, w=TOUCHED),
    )
    def rectified_amsgrad(
        w,
        g,
        m,
        v,
        v_hat,
        t,
        learning_rate,
        beta_1,
        beta_2,
        epsilon,
        sma_threshold,
    ):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
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
        if self.amsgrad:
            return RectifiedAdam.rectified_amsgrad
        return RectifiedAdam.rectified_adam

    def coefficients(self, iterations: int, arithmetic: Arithmetic) -> dict[str, Any]:
        named = super().coefficients(iterations, arithmetic)
        return warmed_up(named) if self.total_steps else named


def warmed_up(named: dict[str, Any]) -> dict[str, Any]:
    """With the learning rate of a rise and fall over ``total_steps``, both linear."""
    t, rate, least = named["t"], named["learning_rate"], named["min_lr"]
    rise = named["total_steps"] * named["warmup_proportion"]
    fall = np.maximum(named["total_steps"] - rise, 1)
    rising = rate * t / np.maximum(rise, 1)
    falling = rate + (least - rate) * np.minimum(t - rise, fall) / fall
    return {**named, "learning_rate": np.where(t <= rise, rising, falling)}


@dataclass(frozen=True)
class RAdam(Optimizer):
    """RAdam as in torch.

    Liu et al., *On the Variance of the Adaptive Learning Rate and Beyond*, 2019,
    arXiv:1908.03265, algorithm 2. ``RectifiedAdam`` is the form of Addons and optax.

    Args:
        learning_rate: ``[0, inf)``.
        beta_1: decay of the first moment; ``[0, 1)``.
        beta_2: decay of the second moment; ``[0, 1)``.
        epsilon: added to the root of the *uncorrected* second moment, where
            ``RectifiedAdam`` adds it to the corrected one; ``[0, inf)``.

    Slots: ``m`` and ``v``, the moments. The step is rectified where ``rho > 5``. torch
    refuses sparse gradients; here they act on every row.

    >>> radam = RAdam(learning_rate=0.5, beta_1=0.5, epsilon=0.0)
    >>> w, state = radam.run(np.array([1.0]), [np.array([2.0])])
    >>> w.tolist(), state.slots[0]["m"].tolist()
    ([0.0], [1.0])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    beta_1: Hyper = hyper(0.9, "[0, 1)")
    beta_2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: float = hyper(1e-8, "[0, inf)")

    home: ClassVar[str] = "torch.optim.RAdam"
    paper: ClassVar[str] = "Liu et al. 2019, arXiv:1908.03265"
    examples: ClassVar = ({"epsilon": 1e-7},)  # 1e-8 is 0 in float16

    @rule(m="m", v="v", sparse=every_row)
    def radam(w, g, m, v, t, learning_rate, beta_1, beta_2, epsilon):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        m_hat = m / (1 - beta_1**t)
        rho_inf = 2 / (1 - beta_2) - 1
        rho = rho_inf - 2 * t * beta_2**t / (1 - beta_2**t)
        variance = (rho_inf - 4) * (rho_inf - 2) * rho
        r = np.sqrt(np.divide((rho - 4) * (rho - 2) * rho_inf, variance))
        r_hat = r * np.sqrt(1 - beta_2**t)
        u = np.where(rho > 5, r_hat * m_hat / (np.sqrt(v) + epsilon), m_hat)
        w = w - learning_rate * u
        return w, m, v
