"""Nadam: Adam with Nesterov momentum on a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Slot, rule, shared_rule
from ..sparse import EVERY, TOUCHED, rows


@dataclass(frozen=True)
class Nadam(Optimizer):
    """Nadam.

    Dozat, *Incorporating Nesterov Momentum into Adam*, ICLR workshop 2016, algorithm 2,
    with the warming momentum of section 3.2 of the longer report.

    Args:
        learning_rate: ``[0, inf)``. ``decay`` does not exist here: legacy Keras
            overwrites it by ``schedule_decay``.
        beta_1: the momentum that the schedule tends to; ``[0, 1)``.
        beta_2: decay of the second moment; ``[0, 1)``.
        epsilon: added to the *corrected* root; ``[0, inf)``.
        schedule_decay: how fast the momentum ``mu`` warms up; ``[0, inf)``; torch's
            ``momentum_decay``. optax has no schedule (the limit of a large value).

    Slots: ``m`` and ``v``, the moments. Shared: ``momentum_cache`` (``P``), the product
    of all ``mu`` so far; it advances once a step, whatever weights have gradients. A
    sparse gradient decays the moments of every row and moves touched rows only.

    >>> nadam = Nadam(learning_rate=0.5, beta_1=0.5, beta_2=0.0, epsilon=0.0)
    >>> w, state = nadam.run(np.array([1.0]), [np.array([2.0])])
    >>> round(state.shared["momentum_cache"], 6)  # 0.5 * (1 - 0.5 * 0.96**0.004)
    0.250041
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    beta_1: Hyper = hyper(0.9, "[0, 1)")
    beta_2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: float = hyper(1e-7, "[0, inf)")
    schedule_decay: float = hyper(0.004, "[0, inf)")

    constants: ClassVar = {"warmth": 0.96}
    home: ClassVar[str] = "tf.keras.optimizers.legacy.Nadam"
    paper: ClassVar[str] = "Dozat 2016"

    @shared_rule(P=Slot("momentum_cache", start=1.0), makes=("mu", "mu_next"))
    def shared(P, t, beta_1, schedule_decay, warmth):
        mu = beta_1 * (1 - 0.5 * warmth ** (schedule_decay * t))
        mu_next = beta_1 * (1 - 0.5 * warmth ** (schedule_decay * (t + 1)))
        P = P * mu
        return P, mu, mu_next

    @rule(m="m", v="v", sparse=rows(m=EVERY, v=EVERY, w=TOUCHED))
    def nadam(w, g, m, v, t, P, mu, mu_next, learning_rate, beta_1, beta_2, epsilon):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        g_hat = g / (1 - P)
        m_hat = m / (1 - P * mu_next)
        v_hat = v / (1 - beta_2**t)
        m_bar = (1 - mu) * g_hat + mu_next * m_hat
        w = w - learning_rate * m_bar / (np.sqrt(v_hat) + epsilon)
        return w, m, v

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.decay:
            raise ValueError(
                f"Nadam has no decay of the learning rate, got decay={self.decay}; "
                "schedule_decay warms its momentum"
            )
