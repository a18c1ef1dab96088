"""Adafactor: second moments of rows and of columns in place of those of elements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, Slot, rule
from ..sparse import every_row


def without_last(weight: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a mean over the last axis."""
    return weight[:-1]


def without_second_last(weight: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of a mean over the last axis but one."""
    return (*weight[:-2], weight[-1])


@dataclass(frozen=True)
class Adafactor(Optimizer):
    """Adafactor.

    Shazeer, Stern, *Adafactor: Adaptive Learning Rates with Sublinear Memory Cost*,
    2018, arXiv:1804.04235, algorithms 4 and 5 with section 8's learning rate.

    Args:
        learning_rate: the largest step, as a part of the weight's root mean square;
            ``[0, inf)``.
        beta_2_decay: the second moment decays by ``1 - t**beta_2_decay`` at step ``t``;
            ``(-inf, 0]``.
        epsilon_1: added to squared gradients; ``[0, inf)``.
        epsilon_2: the least root mean square that a weight counts with; ``[0, inf)``.
        clip_threshold: the largest root mean square of a direction; ``(0, inf)``.
        relative_step: the learning rate is at most ``1 / sqrt(t)``. Keras 3 applies
            that bound whatever its ``relative_step`` says, and torch always; optax
            never.

    Slots: a weight of two axes or more has ``r`` and ``c``, the means of squares over
    its last axis and over the last but one (Keras 3 keeps a third, ``v``, of the
    weight's own shape, which saves nothing); any other has ``v``, of its own shape.
    optax factors the two largest axes, and only if both have 128 entries. A sparse
    gradient counts as the dense one with zeros elsewhere: every row decays and moves.

    >>> adafactor = Adafactor(learning_rate=0.5)
    >>> w, state = adafactor.run(np.array([[1.0, -1.0]]), [np.array([[4.0, 0.0]])])
    >>> w.round(6).tolist()  # 4 / (root(8) / root(8) * root(16)) = 1, within 1 of rms
    [[0.5, -1.0]]
    >>> state.slots[0]["r"].tolist(), state.slots[0]["c"].tolist()
    ([8.0], [16.0, 1e-30])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    beta_2_decay: Hyper = hyper(-0.8, "(-inf, 0]")
    epsilon_1: float = hyper(1e-30, "[0, inf)")
    epsilon_2: float = hyper(1e-3, "[0, inf)")
    clip_threshold: float = hyper(1.0, "(0, inf)")
    relative_step: bool = True

    elementwise: ClassVar[bool] = False
    home: ClassVar[str] = "keras.optimizers.Adafactor"
    paper: ClassVar[str] = "Shazeer, Stern 2018, arXiv:1804.04235"
    examples: ClassVar = (
        {"learning_rate": 0.75, "clip_threshold": 0.625},
        {"learning_rate": 0.75, "clip_threshold": 0.625, "relative_step": False},
    )

    @rule(
        r=Slot("r", shape=without_last),
        c=Slot("c", shape=without_second_last),
        sparse=every_row,
    )
    def factored(
        w,
        g,
        r,
        c,
        t,
        learning_rate,
        beta_2_decay,
        epsilon_1,
        epsilon_2,
        clip_threshold,
    ):
        beta_2 = 1 - t**beta_2_decay
        square = g**2 + epsilon_1
        r = beta_2 * r + (1 - beta_2) * np.mean(square, axis=-1)
        c = beta_2 * c + (1 - beta_2) * np.mean(square, axis=-2)
        of_row = np.sqrt(r) / np.sqrt(np.mean(r, axis=-1, keepdims=True))
        u = g / (of_row[..., None] * np.sqrt(c)[..., None, :])
        u = u / np.maximum(1, np.sqrt(np.mean(u**2)) / clip_threshold)
        rho = np.minimum(learning_rate, 1 / np.sqrt(t))
        alpha = np.maximum(epsilon_2, np.sqrt(np.mean(w**2))) * rho
        w = w - alpha * u
        return w, r, c

    @rule(v="v", sparse=every_row)
    def unfactored(
        w,
        g,
        v,
        t,
        learning_rate,
        beta_2_decay,
        epsilon_1,
        epsilon_2,
        clip_threshold,
    ):
        beta_2 = 1 - t**beta_2_decay
        v = beta_2 * v + (1 - beta_2) * (g**2 + epsilon_1)
        u = g / np.sqrt(v)
        u = u / np.maximum(1, np.sqrt(np.mean(u**2)) / clip_threshold)
        rho = np.minimum(learning_rate, 1 / np.sqrt(t))
        alpha = np.maximum(epsilon_2, np.sqrt(np.mean(w**2))) * rho
        w = w - alpha * u
        return w, v

    @rule(
        r=Slot("r", shape=without_last),
        c=Slot("c", shape=without_second_last),
        sparse=every_row,
    )
    def factored_at_rate(
        w,
        g,
        r,
        c,
        t,
        learning_rate,
        beta_2_decay,
        epsilon_1,
        epsilon_2,
        clip_threshold,
    ):
        beta_2 = 1 - t**beta_2_decay
        square = g**2 + epsilon_1
        r = beta_2 * r + (1 - beta_2) * np.mean(square, axis=-1)
        c = beta_2 * c + (1 - beta_2) * np.mean(square, axis=-2)
        of_row = np.sqrt(r) / np.sqrt(np.mean(r, axis=-1, keepdims=True))
        u = g / (of_row[..., None] * np.sqrt(c)[..., None, :])
        u = u / np.maximum(1, np.sqrt(np.mean(u**2)) / clip_threshold)
        alpha = np.maximum(epsilon_2, np.sqrt(np.mean(w**2))) * learning_rate
        w = w - alpha * u
        return w, r, c

    @rule(v="v", sparse=every_row)
    def unfactored_at_rate(
        w,
        g,
        v,
        t,
        learning_rate,
        beta_2_decay,
        epsilon_1,
        epsilon_2,
        clip_threshold,
    ):
        beta_2 = 1 - t**beta_2_decay
        v = beta_2 * v + (1 - beta_2) * (g**2 + epsilon_1)
        u = g / np.sqrt(v)
        u = u / np.maximum(1, np.sqrt(np.mean(u**2)) / clip_threshold)
        alpha = np.maximum(epsilon_2, np.sqrt(np.mean(w**2))) * learning_rate
        w = w - alpha * u
        return w, v

    @property
    def selectable(self) -> tuple[Rule, ...]:
        if self.relative_step:
            return Adafactor.factored, Adafactor.unfactored
        return Adafactor.factored_at_rate, Adafactor.unfactored_at_rate

    @property
    def selected(self) -> Rule:
        return self.selectable[0]

    def selected_for(self, shape: tuple[int, ...]) -> Rule:
        return self.selectable[len(shape) < 2]
