"""Yogi: Adam whose second moment changes by a controlled amount."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, Slot, rule
from ..sparse import EVERY, TOUCHED, every_row, rows

_V = Slot("v", start="initial_accumulator_value")


@dataclass(frozen=True)
class Yogi(Optimizer):
    """Yogi.

    Zaheer, Reddi, Sachan, Kale, Kumar, *Adaptive Methods for Nonconvex Optimization*,
    NeurIPS 2018, algorithm 2, with Adam's bias correction, which the paper lacks.

    Args:
        learning_rate: ``[0, inf)``.
        beta1: decay of the first moment; ``[0, 1)``. Whether it is zero is settled at
            construction: zero means no slot.
        beta2: ``1 - beta2`` is the largest relative change of the second moment;
            ``[0, 1)``.
        epsilon: added to the root; ``[0, inf)``.
        l1_regularization_strength, l2_regularization_strength: of a proximal step that
            follows, at the learning rate of each weight; ``[0, inf)``.
        initial_accumulator_value: where the second moment starts; ``[0, inf)``.
        activation: ``"sign"``, as in the paper, or ``"tanh"``, of ten times the
            difference.

    Slots: ``v``, the second moment; ``m``, the first, unless ``beta1`` is zero. A
    sparse gradient decays ``m`` of every row; ``v`` and weights change on touched rows.
    ``OptaxYogi`` is the form of optax.

    >>> yogi = Yogi(0.5, beta1=0.5, beta2=0.75, initial_accumulator_value=1.0)
    >>> w, state = yogi.run(np.array([1.0]), [np.array([2.0])])
    >>> state.slots[0]["v"].tolist(), state.slots[0]["m"].tolist()
    ([2.0], [1.0])
    """

    learning_rate: Hyper = hyper(0.01, "[0, inf)")
    beta1: Hyper = hyper(0.9, "[0, 1)")
    beta2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: Hyper = hyper(1e-3, "[0, inf)")
    l1_regularization_strength: Hyper = hyper(0.0, "[0, inf)")
    l2_regularization_strength: Hyper = hyper(0.0, "[0, inf)")
    initial_accumulator_value: float = hyper(1e-6, "[0, inf)")
    activation: str = "sign"

    home: ClassVar[str] = "tensorflow_addons.optimizers.Yogi"
    paper: ClassVar[str] = "Zaheer et al. 2018"
    examples: ClassVar = tuple(
        {
            "beta1": beta1,
            "activation": activation,
            "l1_regularization_strength": 0.01,
            "l2_regularization_strength": 0.05,
        }
        for beta1 in (0.9, 0.0)
        for activation in ("sign", "tanh")
    )

    @rule(v=_V, m="m", sparse=rows(m=EVERY, v=TOUCHED, w=TOUCHED))
    def yogi(
        w,
        g,
        v,
        m,
        t,
        learning_rate,
        beta1,
        beta2,
        epsilon,
        l1_regularization_strength,
        l2_regularization_strength,
    ):
        m = beta1 * m + (1 - beta1) * g
        v = v + (1 - beta2) * np.sign(g**2 - v) * g**2
        step_size = learning_rate * np.sqrt(1 - beta2**t) / (1 - beta1**t)
        rate = step_size / (np.sqrt(v) + epsilon)
        z = w - rate * m
        pull = rate * l1_regularization_strength
        shrunk = z - np.maximum(np.minimum(z, pull), -pull)
        w = shrunk / (1 + rate * l2_regularization_strength)
        return w, v, m

    @rule(v=_V, m="m", sparse=rows(m=EVERY, v=TOUCHED, w=TOUCHED))
    def soft_yogi(
        w,
        g,
        v,
        m,
        t,
        learning_rate,
        beta1,
        beta2,
        epsilon,
        l1_regularization_strength,
        l2_regularization_strength,
    ):
        m = beta1 * m + (1 - beta1) * g
        v = v + (1 - beta2) * np.tanh(10 * (g**2 - v)) * g**2
        step_size = learning_rate * np.sqrt(1 - beta2**t) / (1 - beta1**t)
        rate = step_size / (np.sqrt(v) + epsilon)
        z = w - rate * m
        pull = rate * l1_regularization_strength
        shrunk = z - np.maximum(np.minimum(z, pull), -pull)
        w = shrunk / (1 + rate * l2_regularization_strength)
        return w, v, m

    @rule(v=_V, sparse=rows(v=TOUCHED, w=TOUCHED))
    def yogi_without_momentum(
        w,
        g,
        v,
        t,
        learning_rate,
        beta2,
        epsilon,
        l1_regularization_strength,
        l2_regularization_strength,
    ):
        v = v + (1 - beta2) * np.sign(g**2 - v) * g**2
        rate = learning_rate * np.sqrt(1 - beta2**t) / (np.sqrt(v) + epsilon)
        z = w - rate * g
        pull = rate * l1_regularization_strength
        shrunk = z - np.maximum(np.minimum(z, pull), -pull)
        w = shrunk / (1 + rate * l2_regularization_strength)
        return w, v

    @rule(v=_V, sparse=rows(v=TOUCHED, w=TOUCHED))
    def soft_yogi_without_momentum(
        w,
        g,
        v,
        t,
        learning_rate,
        beta2,
        epsilon,
        l1_regularization_strength,
        l2_regularization_strength,
    ):
        v = v + (1 - beta2) * np.tanh(10 * (g**2 - v)) * g**2
        rate = learning_rate * np.sqrt(1 - beta2**t) / (np.sqrt(v) + epsilon)
        z = w - rate * g
        pull = rate * l1_regularization_strength
        shrunk = z - np.maximum(np.minimum(z, pull), -pull)
        w = shrunk / (1 + rate * l2_regularization_strength)
        return w, v

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.activation not in ("sign", "tanh"):
            raise ValueError(
                f"activation must be 'sign' or 'tanh', got {self.activation!r}"
            )

    @property
    def selected(self) -> Rule:
        soft = self.activation == "tanh"
        if callable(self.beta1) or self.beta1 != 0:
            return Yogi.soft_yogi if soft else Yogi.yogi
        return Yogi.soft_yogi_without_momentum if soft else Yogi.yogi_without_momentum


@dataclass(frozen=True)
class OptaxYogi(Optimizer):
    """Yogi as in optax: corrected moments, which both start above zero.

    Zaheer et al., *Adaptive Methods for Nonconvex Optimization*, NeurIPS 2018,
    algorithm 2.

    Args:
        learning_rate: ``[0, inf)``.
        beta_1: decay of the first moment; ``[0, 1)``.
        beta_2: ``1 - beta_2`` is the largest relative change of the second moment;
            ``[0, 1)``.
        epsilon: added to the *corrected* root; ``[0, inf)``.
        initial_accumulator_value: where *both* moments start, so that weights move
            before there was a gradient; ``[0, inf)``.

    Slots: ``m`` and ``v``, the moments. optax has no sparse gradients; here they act on
    every row.

    >>> yogi = OptaxYogi(0.5, 0.5, 0.75, 1.0, initial_accumulator_value=1.0)
    >>> w, state = yogi.run(np.array([1.0]), [np.array([0.0])])
    >>> w.round(9).tolist()  # 1 - 0.5 / (root of 4 + 1)
    [0.833333333]
    """

    learning_rate: Hyper = hyper(0.01, "[0, inf)")
    beta_1: Hyper = hyper(0.9, "[0, 1)")
    beta_2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: float = hyper(1e-3, "[0, inf)")
    initial_accumulator_value: float = hyper(1e-6, "[0, inf)")

    home: ClassVar[str] = "optax.yogi"
    paper: ClassVar[str] = "Zaheer et al. 2018"

    @rule(m=Slot("m", start="initial_accumulator_value"), v=_V, sparse=every_row)
    def optax_yogi(w, g, m, v, t, learning_rate, beta_1, beta_2, epsilon):
        m = beta_1 * m + (1 - beta_1) * g
        v = v - (1 - beta_2) * np.sign(v - g**2) * g**2
        m_hat = m / (1 - beta_1**t)
        v_hat = v / (1 - beta_2**t)
        w = w - learning_rate * m_hat / (np.sqrt(v_hat) + epsilon)
        return w, m, v
