"""LAMB: Adam's direction, as long as the weights."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, rule
from ..sparse import every_row


@dataclass(frozen=True)
class LAMB(Optimizer):
    """LAMB.

    You et al., *Large Batch Optimization for Deep Learning: Training BERT in 76
    minutes*, 2019, arXiv:1904.00962, algorithm 2 with ``phi`` the identity.

    Args:
        learning_rate: the length of a step, as a part of the weight's; ``[0, inf)``.
        beta_1: decay of the first moment; ``[0, 1)``.
        beta_2: decay of the second moment; ``[0, 1)``.
        epsilon: added to the *corrected* root; ``[0, inf)``; Keras 3 has 1e-7.
        weight_decay: ``[0, inf)``.
        decay_first: take ``learning_rate * weight_decay`` off the weights before the
            step, as Keras 3 does, instead of adding the decay to the direction.
        layer_adaptation: make the direction as long as the weight. Without it the ratio
            is 1: AdamW, with epsilon added to the corrected root. Addons does this to
            weights whose names ``exclude_from_layer_adaptation`` has.

    Slots: ``m`` and ``v``, the moments. A norm is that of the whole weight, whatever
    its rank; where one is zero the ratio is 1. A sparse gradient counts as the dense
    one with zeros elsewhere: every row decays and moves. TensorFlow Addons, optax and
    tensorflow/models agree.

    >>> lamb = LAMB(learning_rate=0.5, beta_1=0.5, beta_2=0.75, epsilon=1.0)
    >>> w, state = lamb.run(np.array([3.0, 4.0]), [np.array([2.0, 0.0])])
    >>> w.tolist()  # 3 - 0.5 * 5
    [0.5, 4.0]
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    beta_1: Hyper = hyper(0.9, "[0, 1)")
    beta_2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: float = hyper(1e-6, "[0, inf)")
    decay_first: bool = False
    layer_adaptation: bool = True
    _: KW_ONLY
    weight_decay: Hyper = hyper(0.0, "[0, inf)")

    elementwise: ClassVar[bool] = False
    home: ClassVar[str] = "tensorflow_addons.optimizers.LAMB"
    paper: ClassVar[str] = "You et al. 2019, arXiv:1904.00962"
    examples: ClassVar = (
        {"weight_decay": 0.05},
        {"weight_decay": 0.05, "decay_first": True},
        {"weight_decay": 0.05, "layer_adaptation": False},
    )

    @rule(m="m", v="v", sparse=every_row)
    def lamb(w, g, m, v, t, learning_rate, beta_1, beta_2, epsilon, weight_decay):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        m_hat = m / (1 - beta_1**t)
        v_hat = v / (1 - beta_2**t)
        u = m_hat / (np.sqrt(v_hat) + epsilon) + weight_decay * w
        length = np.sqrt(np.sum(w**2))
        length_of_u = np.sqrt(np.sum(u**2))
        ratio = np.where(length_of_u > 0, length / length_of_u, 1)
        ratio = np.where(length > 0, ratio, 1)
        w = w - learning_rate * ratio * u
        return w, m, v

    @rule(m="m", v="v", sparse=every_row)
    def decayed_first(
        w, g, m, v, t, learning_rate, beta_1, beta_2, epsilon, weight_decay
    ):
        w = w - learning_rate * weight_decay * w
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        m_hat = m / (1 - beta_1**t)
        v_hat = v / (1 - beta_2**t)
        u = m_hat / (np.sqrt(v_hat) + epsilon)
        length = np.sqrt(np.sum(w**2))
        length_of_u = np.sqrt(np.sum(u**2))
        ratio = np.where(length_of_u > 0, length / length_of_u, 1)
        ratio = np.where(length > 0, ratio, 1)
        w = w - learning_rate * ratio * u
        return w, m, v

    @rule(m="m", v="v", sparse=every_row)
    def unadapted(w, g, m, v, t, learning_rate, beta_1, beta_2, epsilon, weight_decay):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        m_hat = m / (1 - beta_1**t)
        v_hat = v / (1 - beta_2**t)
        u = m_hat / (np.sqrt(v_hat) + epsilon) + weight_decay * w
        w = w - learning_rate * u
        return w, m, v

    @property
    def selected(self) -> Rule:
        if not self.layer_adaptation:
            return LAMB.unadapted
        return LAMB.decayed_first if self.decay_first else LAMB.lamb
