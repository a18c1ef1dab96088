"""Adam and AMSGrad."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, rule
from ..sparse import every_row


@dataclass(frozen=True)
class Adam(Optimizer):
    """Adam.

    Kingma, Ba, *Adam: A Method for Stochastic Optimization*, 2014, arXiv:1412.6980, in
    the efficient form at the end of section 2. AMSGrad: Reddi, Kale, Kumar, *On the
    Convergence of Adam and Beyond*, 2018, arXiv:1904.09237, algorithm 2.

    Args:
        learning_rate: bound on the step of each weight, roughly; ``[0, inf)``.
        beta_1: decay of the first moment; ``[0, 1)``.
        beta_2: decay of the second moment; ``[0, 1)``.
        epsilon: added to the root of the *uncorrected* second moment ("epsilon hat" of
            the paper); ``[0, inf)``. torch and optax add it to the corrected root:
            their epsilon is ours divided by ``sqrt(1 - beta_2**t)``.
        amsgrad: divide by the root of the largest second moment so far. The maximum is
            taken over uncorrected moments, as Keras and torch do; optax corrects first.

    Slots: ``m`` and ``v``, the moments; ``vhat``, the maximum, with amsgrad. A sparse
    gradient decays the moments of every row and moves every row;
    ``sparse="touched_rows"`` is LazyAdam.

    >>> adam = Adam(learning_rate=0.5, beta_1=0.5, beta_2=0.75, epsilon=0.0)
    >>> w, state = adam.run(np.array([1.0]), [np.array([2.0])])
    >>> w.tolist(), state.slots[0]["m"].tolist(), state.slots[0]["v"].tolist()
    ([0.5], [1.0], [1.0])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    beta_1: Hyper = hyper(0.9, "[0, 1)")
    beta_2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: float = hyper(1e-7, "[0, inf)")
    amsgrad: bool = False

    home: ClassVar[str] = "tf.keras.optimizers.legacy.Adam"
    paper: ClassVar[str] = "Kingma, Ba 2014, arXiv:1412.6980"
    examples: ClassVar = ({}, {"amsgrad": True})

    @rule(m="m", v="v", sparse=every_row)
    def adam(w, g, m, v, t, learning_rate, beta_1, beta_2, epsilon):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        step_size = learning_rate * np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
        w = w - step_size * m / (np.sqrt(v) + epsilon)
        return w, m, v

    @rule(m="m", v="v", v_hat="vhat", sparse=every_row)
    def amsgrad_rule(w, g, m, v, v_hat, t, learning_rate, beta_1, beta_2, epsilon):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        v_hat = np.maximum(v_hat, v)
        step_size = learning_rate * np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
        w = w - step_size * m / (np.sqrt(v_hat) + epsilon)
        return w, m, v, v_hat

    @property
    def selected(self) -> Rule:
        return Adam.amsgrad_rule if self.amsgrad else Adam.adam
