"""SM3: maxima of rows, columns and so on in place of sums of squares of elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, hyper
from ..rule import Rule, Slot, rule
from ..sparse import every_row


def along(axis: int) -> Slot:
    """The accumulator of an axis: as long as the weight there, 1 elsewhere."""
    shape: Callable[[tuple[int, ...]], tuple[int, ...]] = lambda weight: tuple(  # noqa: E731
        size if i == axis else 1 for i, size in enumerate(weight)
    )
    return Slot(f"accumulator_{axis}", shape=shape)


@dataclass(frozen=True)
class SM3(Optimizer):
    """SM3-II with momentum.

    Anil, Gupta, Koren, Singer, *Memory-Efficient Adaptive Optimization*, 2019,
    arXiv:1901.11150, algorithm SM3-II; the sets are the slices along each axis.

    Args:
        learning_rate: ``[0, inf)``.
        momentum: how much of the average of directions is kept; ``[0, 1)``.
        epsilon: added under the root; ``[0, inf)``; the paper has none, and 0/0 = 0.

    Slots: ``momentum`` (``m``), of the weight's shape; ``accumulator_0`` and so on, one
    for each axis, as long as the axis; a weight of one axis or none has one of its own
    shape, and the rule is Adagrad's. Weights have four axes at most. A sparse gradient
    counts as the dense one with zeros elsewhere: the average of every row decays and
    moves the row. optax agrees.

    >>> sm3 = SM3(learning_rate=0.5, momentum=0.0, epsilon=0.0)
    >>> w, state = sm3.run(np.ones((1, 2)), [np.array([[2.0, 4.0]])])
    >>> w.tolist(), state.slots[0]["accumulator_0"].tolist()
    ([[0.5, 0.5]], [[16.0]])
    """

    learning_rate: Hyper = hyper(0.001, "[0, inf)")
    momentum: Hyper = hyper(0.9, "[0, 1)")
    epsilon: float = hyper(1e-8, "[0, inf)")

    elementwise: ClassVar[bool] = False
    home: ClassVar[str] = "optax.sm3"
    paper: ClassVar[str] = "Anil, Gupta, Koren, Singer 2019, arXiv:1901.11150"
    examples: ClassVar = ({}, {"epsilon": 0.0})

    @rule(m="momentum", v="accumulator_0", sparse=every_row)
    def one_axis(w, g, m, v, learning_rate, momentum, epsilon):
        v = v + g**2
        u = np.where(v == 0, 0, g / np.sqrt(v + epsilon))
        m = momentum * m + (1 - momentum) * u
        w = w - learning_rate * m
        return w, m, v

    @rule(m="momentum", v_0=along(0), v_1=along(1), sparse=every_row)
    def two_axes(w, g, m, v_0, v_1, learning_rate, momentum, epsilon):
        v = np.minimum(v_0, v_1) + g**2
        u = np.where(v == 0, 0, g / np.sqrt(v + epsilon))
        m = momentum * m + (1 - momentum) * u
        w = w - learning_rate * m
        v_0 = np.max(v, axis=1, keepdims=True)
        v_1 = np.max(v, axis=0, keepdims=True)
        return w, m, v_0, v_1

    @rule(m="momentum", v_0=along(0), v_1=along(1), v_2=along(2), sparse=every_row)
    def three_axes(w, g, m, v_0, v_1, v_2, learning_rate, momentum, epsilon):
        v = np.minimum(np.minimum(v_0, v_1), v_2) + g**2
        u = np.where(v == 0, 0, g / np.sqrt(v + epsilon))
        m = momentum * m + (1 - momentum) * u
        w = w - learning_rate * m
        v_0 = np.max(v, axis=(1, 2), keepdims=True)
        v_1 = np.max(v, axis=(0, 2), keepdims=True)
        v_2 = np.max(v, axis=(0, 1), keepdims=True)
        return w, m, v_0, v_1, v_2

    @rule(
        m="momentum",
        v_0=along(0),
        v_1=along(1),
        v_2=along(2),
        v_3=along(3),
        sparse=every_row,
    )
    def four_axes(w, g, m, v_0, v_1, v_2, v_3, learning_rate, momentum, epsilon):
        v = np.minimum(np.minimum(v_0, v_1), np.minimum(v_2, v_3)) + g**2
        u = np.where(v == 0, 0, g / np.sqrt(v + epsilon))
        m = momentum * m + (1 - momentum) * u
        w = w - learning_rate * m
        v_0 = np.max(v, axis=(1, 2, 3), keepdims=True)
        v_1 = np.max(v, axis=(0, 2, 3), keepdims=True)
        v_2 = np.max(v, axis=(0, 1, 3), keepdims=True)
        v_3 = np.max(v, axis=(0, 1, 2), keepdims=True)
        return w, m, v_0, v_1, v_2, v_3

    @property
    def selectable(self) -> tuple[Rule, ...]:
        return SM3.one_axis, SM3.two_axes, SM3.three_axes, SM3.four_axes

    @property
    def selected(self) -> Rule:
        return SM3.one_axis

    def selected_for(self, shape: tuple[int, ...]) -> Rule:
        if len(shape) > len(self.selectable):
            raise ValueError(f"SM3 takes weights of four axes at most, got {shape}")
        return self.selectable[max(len(shape), 1) - 1]
