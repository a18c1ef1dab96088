"""Adam with epsilon beside the corrected root, as in torch and optax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, rule
from ..sparse import every_row


@dataclass(frozen=True)
class CorrectedAdam(Optimizer):
    """Adam in the form of its algorithm 1, which torch and optax have.

    Kingma, Ba, *Adam: A Method for Stochastic Optimization*, 2014, arXiv:1412.6980,
    algorithm 1. AMSGrad: Reddi, Kale, Kumar, *On the Convergence of Adam and Beyond*,
    2018, arXiv:1904.09237, algorithm 2, which corrects nothing.

    Args:
        learning_rate: ``[0, inf)``.
        beta_1: decay of the first moment; ``[0, 1)``.
        beta_2: decay of the second moment; ``[0, 1)``.
        epsilon: added to the root of the *corrected* second moment; ``[0, inf)``. That
            of ``Adam`` is added to the uncorrected one, and is this times
            ``sqrt(1 - beta_2**t)``.
        epsilon_root: added under that root (optax' ``eps_root``); ``[0, inf)``.
        amsgrad: divide by the root of the largest second moment so far.
        correct_first: the largest of the *corrected* moments, as optax; torch corrects
            the largest of the moments. Without amsgrad it changes nothing.

    Slots: ``m`` and ``v``, the moments; ``vhat``, the maximum, with amsgrad. torch and
    optax have no sparse gradients here (``LazyAdam`` is torch's ``SparseAdam``); they
    act on every row.

    >>> adam = CorrectedAdam(0.5, beta_1=0.5, beta_2=0.75, epsilon=2.0)
    >>> w, state = adam.run(np.array([1.0]), [np.array([2.0])])
    >>> w.tolist()  # 1 - 0.5 * 2 / (2 + 2)
    [0.75]
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    beta_1: Hyper = hyper(0.9, "[0, 1)")
    beta_2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: float = hyper(1e-8, "[0, inf)")
    epsilon_root: float = hyper(0.0, "[0, inf)")
    amsgrad: bool = False
    correct_first: bool = False

    home: ClassVar[str] = "torch.optim.Adam"
    paper: ClassVar[str] = "Kingma, Ba 2014, arXiv:1412.6980"
    examples: ClassVar = (  # 1e-8 is 0 in float16
        {"epsilon": 1e-7, "epsilon_root": 1e-6},
        {"epsilon": 1e-7, "epsilon_root": 1e-6, "amsgrad": True},
        {
            "epsilon": 1e-7,
            "epsilon_root": 1e-6,
            "amsgrad": True,
            "correct_first": True,
        },
    )

    @rule(m="m", v="v", sparse=every_row)
    def corrected_adam(
        w, g, m, v, t, learning_rate, beta_1, beta_2, epsilon, epsilon_root
    ):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        m_hat = m / (1 - beta_1**t)
        v_hat = v / (1 - beta_2**t)
        w = w - learning_rate * m_hat / (np.sqrt(v_hat + epsilon_root) + epsilon)
        return w, m, v

    @rule(m="m", v="v", largest="vhat", sparse=every_row)
    def corrected_amsgrad(
        w, g, m, v, largest, t, learning_rate, beta_1, beta_2, epsilon, epsilon_root
    ):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        largest = np.maximum(largest, v)
        m_hat = m / (1 - beta_1**t)
        v_hat = largest / (1 - beta_2**t)
        w = w - learning_rate * m_hat / (np.sqrt(v_hat + epsilon_root) + epsilon)
        return w, m, v, largest

    @rule(m="m", v="v", largest="vhat", sparse=every_row)
    def amsgrad_of_corrected(
        w, g, m, v, largest, t, learning_rate, beta_1, beta_2, epsilon, epsilon_root
    ):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        m_hat = m / (1 - beta_1**t)
        v_hat = v / (1 - beta_2**t)
        largest = np.maximum(largest, v_hat)
        w = w - learning_rate * m_hat / (np.sqrt(largest + epsilon_root) + epsilon)
        return w, m, v, largest

    @property
    def selected(self) -> Rule:
        if not self.amsgrad:
            return CorrectedAdam.corrected_adam
        if self.correct_first:
            return CorrectedAdam.amsgrad_of_corrected
        return CorrectedAdam.corrected_amsgrad
