"""Muon: momentum with its singular values made equal, for matrices."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from ..linalg import newton_schulz
from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, rule
from ..sparse import every_row


@dataclass(frozen=True)
class Muon(Optimizer):
    """Muon for weights of two axes, AdamW for others.

    Jordan et al., *Muon: An optimizer for hidden layers in neural networks*, 2024; the
    scale is that of Liu et al., *Muon is Scalable for LLM Training*, 2025,
    arXiv:2502.16982. AdamW: Loshchilov, Hutter 2017, arXiv:1711.05101.

    Args:
        learning_rate: ``[0, inf)``.
        adam_beta_1, adam_beta_2: decay of AdamW's moments; ``[0, 1)``.
        epsilon: added to AdamW's *uncorrected* root; ``[0, inf)``.
        muon_a, muon_b, muon_c: ``a s + b s^3 + c s^5`` is what becomes of a singular
            value ``s`` in a step of Newton and Schulz.
        adam_lr_ratio: AdamW's learning rate, as a part of the other; ``[0, inf)``.
        momentum: ``[0, 1]``.
        ns_steps: how many steps of Newton and Schulz; ``[1, inf)``.
        nesterov: look one momentum step ahead.
        rms_rate: the root mean square of a step where all singular values are 1, as a
            part of the learning rate, as torch's ``"match_rms_adamw"`` and optax'
            ``consistent_rms``; ``None``: steps are not scaled. torch's own scale is
            ``sqrt(max(1, rows / columns))``, optax' has columns over rows.
        weight_decay: decoupled, times the learning rate; ``[0, inf)``.
        adam_weight_decay: that of AdamW, also times the learning rate.

    Slots: ``momentum``, the sum of gradients that fades, or AdamW's first moment; for
    AdamW also ``velocity``, its second. torch averages gradients where this sums them,
    which the Newton-Schulz iteration cannot tell; it works in bfloat16, here in the
    precision of the weights. optax corrects the bias of Nesterov's momentum. A sparse
    gradient counts as the dense one with zeros elsewhere: every row decays and moves.

    >>> muon = Muon(0.5, muon_a=2.0, muon_b=0.0, muon_c=0.0, ns_steps=1, weight_decay=0)
    >>> w, state = muon.run(np.array([[1.0, 1.0]]), [np.array([[3.0, 4.0]])])
    >>> w.round(6).tolist()  # 1 - 0.5 * (0.2 * root(2)) * 2 * (3/5, 4/5)
    [[0.830294, 0.773726]]
    >>> state.slots[0]["momentum"].tolist()
    [[3.0, 4.0]]
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    adam_beta_1: Hyper = hyper(0.9, "[0, 1)")
    adam_beta_2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: float = hyper(1e-7, "[0, inf)")
    muon_a: float = hyper(3.4445, "(-inf, inf)")
    muon_b: float = hyper(-4.775, "(-inf, inf)")
    muon_c: float = hyper(2.0315, "(-inf, inf)")
    adam_lr_ratio: float = hyper(1.0, "[0, inf)")
    momentum: Hyper = hyper(0.95, "[0, 1]")
    ns_steps: float = hyper(5, "[1, inf)")
    nesterov: bool = True
    rms_rate: float | None = hyper(0.2, "[0, inf)")
    _: KW_ONLY
    weight_decay: Hyper = hyper(0.004, "[0, inf)")
    adam_weight_decay: Hyper = hyper(0.004, "[0, inf)")

    elementwise: ClassVar[bool] = False
    home: ClassVar[str] = "keras.optimizers.Muon"
    paper: ClassVar[str] = "Jordan et al. 2024; Liu et al. 2025, arXiv:2502.16982"
    examples: ClassVar = (
        {},
        {"nesterov": False, "rms_rate": None, "adam_lr_ratio": 0.5},
    )

    @rule(m="momentum", sparse=every_row)
    def muon_nesterov(
        w,
        g,
        m,
        learning_rate,
        weight_decay,
        momentum,
        muon_a,
        muon_b,
        muon_c,
        ns_steps,
        rms_rate,
    ):
        w = w - learning_rate * weight_decay * w
        m = momentum * m + g
        u = g + momentum * m
        step = newton_schulz(u, muon_a, muon_b, muon_c, ns_steps)
        scale = rms_rate * np.sqrt(max(w.shape))
        w = w - learning_rate * scale * step
        return w, m

    @rule(m="momentum", sparse=every_row)
    def muon(
        w,
        g,
        m,
        learning_rate,
        weight_decay,
        momentum,
        muon_a,
        muon_b,
        muon_c,
        ns_steps,
        rms_rate,
    ):
        w = w - learning_rate * weight_decay * w
        m = momentum * m + g
        step = newton_schulz(m, muon_a, muon_b, muon_c, ns_steps)
        scale = rms_rate * np.sqrt(max(w.shape))
        w = w - learning_rate * scale * step
        return w, m

    @rule(m="momentum", sparse=every_row)
    def unscaled_nesterov(
        w,
        g,
        m,
        learning_rate,
        weight_decay,
        momentum,
        muon_a,
        muon_b,
        muon_c,
        ns_steps,
    ):
        w = w - learning_rate * weight_decay * w
        m = momentum * m + g
        u = g + momentum * m
        step = newton_schulz(u, muon_a, muon_b, muon_c, ns_steps)
        w = w - learning_rate * step
        return w, m

    @rule(m="momentum", sparse=every_row)
    def unscaled(
        w,
        g,
        m,
        learning_rate,
        weight_decay,
        momentum,
        muon_a,
        muon_b,
        muon_c,
        ns_steps,
    ):
        w = w - learning_rate * weight_decay * w
        m = momentum * m + g
        step = newton_schulz(m, muon_a, muon_b, muon_c, ns_steps)
        w = w - learning_rate * step
        return w, m

    @rule(m="momentum", v="velocity", sparse=every_row)
    def adamw(
        w,
        g,
        m,
        v,
        t,
        learning_rate,
        adam_weight_decay,
        adam_lr_ratio,
        adam_beta_1,
        adam_beta_2,
        epsilon,
    ):
        w = w - learning_rate * adam_weight_decay * w
        m = adam_beta_1 * m + (1 - adam_beta_1) * g
        v = adam_beta_2 * v + (1 - adam_beta_2) * g**2
        rate = learning_rate * adam_lr_ratio
        step_size = rate * np.sqrt(1 - adam_beta_2**t) / (1 - adam_beta_1**t)
        w = w - step_size * m / (np.sqrt(v) + epsilon)
        return w, m, v

    @property
    def selectable(self) -> tuple[Rule, ...]:
        if self.rms_rate is None:
            muon = Muon.unscaled_nesterov if self.nesterov else Muon.unscaled
        else:
            muon = Muon.muon_nesterov if self.nesterov else Muon.muon
        return muon, Muon.adamw

    @property
    def selected(self) -> Rule:
        return self.selectable[0]

    def selected_for(self, shape: tuple[int, ...]) -> Rule:
        return self.selectable[len(shape) != 2]
