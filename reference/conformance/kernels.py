"""Rules that only TensorFlow's raw training operations have.

Each is a rule of the catalogue with other lines, written out because a kernel follows
it; nobody should train by them. They are judged by, not listed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..optimizers.adagrad import Adagrad
from ..optimizers.adam import Adam
from ..optimizers.ftrl import Ftrl
from ..optimizers.rmsprop import RMSprop
from ..rule import Rule, Slot, rule
from ..sparse import every_row, touched_rows


@dataclass(frozen=True)
class NesterovAdam(Adam):
    """``ApplyAdam(use_nesterov=True)``: a fourth Nadam.

    The momentum is constant and both its parts have the bias correction of Adam, that
    of the present step, where Dozat's algorithm corrects ``m`` by that of the next.
    """

    @rule(m="m", v="v", sparse=every_row)
    def nesterov_adam(w, g, m, v, t, learning_rate, beta_1, beta_2, epsilon):
        m = beta_1 * m + (1 - beta_1) * g
        v = beta_2 * v + (1 - beta_2) * g**2
        step_size = learning_rate * np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
        m_bar = beta_1 * m + (1 - beta_1) * g
        w = w - step_size * m_bar / (np.sqrt(v) + epsilon)
        return w, m, v

    @property
    def selected(self) -> Rule:
        return NesterovAdam.nesterov_adam


@dataclass(frozen=True)
class HeldAdagrad(Adagrad):
    """``ApplyAdagrad(update_slots=False)``: the sum of squares stays as it is."""

    @rule(n=Slot("accumulator", start="initial_accumulator_value"), sparse=touched_rows)
    def held_adagrad(w, g, n, learning_rate, epsilon):
        w = w - learning_rate * g / (np.sqrt(n) + epsilon)
        return w, n

    @property
    def selected(self) -> Rule:
        return HeldAdagrad.held_adagrad


@dataclass(frozen=True)
class InsideRMSprop(RMSprop):
    """``ApplyRMSProp``: epsilon is under the root without momentum too."""

    @property
    def selected(self) -> Rule:
        return RMSprop.rmsprop_momentum


@dataclass(frozen=True)
class ScaledFtrl(Optimizer):
    """``ApplyFtrl(multiply_linear_by_lr=True)``: ``linear`` times the learning rate.

    The same weights as ``Ftrl``'s while the learning rate is constant, and no division
    by it, so that it may be zero.
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    learning_rate_power: Hyper = hyper(-0.5, "(-inf, 0]")
    initial_accumulator_value: float = hyper(0.1, "[0, inf)")
    l1_regularization_strength: Hyper = hyper(0.0, "[0, inf)")
    l2_regularization_strength: Hyper = hyper(0.0, "[0, inf)")
    l2_shrinkage_regularization_strength: float = hyper(0.0, "[0, inf)")

    home: ClassVar[str] = "tf.raw_ops.ResourceApplyFtrlV2"
    paper: ClassVar[str] = Ftrl.paper

    @rule(
        n=Slot("accumulator", start="initial_accumulator_value"),
        z="linear",
        sparse=touched_rows,
    )
    def scaled_ftrl(
        w,
        g,
        n,
        z,
        learning_rate,
        learning_rate_power,
        l1_regularization_strength,
        l2_regularization_strength,
        l2_shrinkage_regularization_strength,
    ):
        g_shrunk = g + 2 * l2_shrinkage_regularization_strength * w
        root = n**-learning_rate_power
        n = n + g**2
        new_root = n**-learning_rate_power
        z = z + learning_rate * g_shrunk - (new_root - root) * w
        threshold = learning_rate * l1_regularization_strength
        pull = np.sign(z) * threshold - z
        shrunk = pull / (new_root + 2 * learning_rate * l2_regularization_strength)
        w = np.where(np.abs(z) <= threshold, 0, shrunk)
        return w, n, z
