"""Gradient accumulation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..gradients import Array, IndexedSlices, deduplicate
from ..optimizer import Arithmetic, Constraint, State, hyper
from ..optimizers.adagrad import Adagrad
from ..optimizers.adam import Adam
from ..rule import Slot
from ..wrapper import ACCUMULATION, Wrapper, _together, lines


@dataclass(frozen=True)
class GradientAccumulation(Wrapper):
    """One step for several gradients: the step of one large batch.

    Each ``gradient_accumulation_steps`` calls of ``step`` make one step of the inner
    optimizer with the mean of their gradients, which is the gradient of the mean loss
    of as large a batch. No other call changes weights, inner slots or ``iterations``.

    Args:
        optimizer: the inner optimizer.
        gradient_accumulation_steps: calls that make a step; an integer from 1. With 1
            it is the inner optimizer.

    Slots: ``accumulated_gradient``, the sum so far; ``accumulated_rows``, of the shape
    of the weight's first dimension: 1 on the rows that had a gradient, so that the mean
    of sparse gradients is sparse. Shared: ``micro_steps``, calls since the last step.

    Raises:
        ValueError: in ``step``: a weight has no gradient now but had one since the last
            step.

    >>> import reference
    >>> two = GradientAccumulation(reference.SGD(learning_rate=1.0), 2)
    >>> w, state = two.run(np.array([1.0]), [np.array([2.0])])
    >>> w.tolist(), state.iterations
    ([1.0], 0)
    >>> w, state = two.step(w, np.array([-1.0]), state)
    >>> w.tolist(), state.iterations
    ([0.5], 1)
    """

    gradient_accumulation_steps: int = hyper(2, "[1, inf)")

    place: ClassVar[int] = ACCUMULATION
    adds: ClassVar[dict[str, Slot]] = {
        "accumulated_gradient": Slot("accumulated_gradient"),
        "accumulated_rows": Slot("accumulated_rows", shape=lambda shape: shape[:1]),
    }
    home: ClassVar[str] = "keras.optimizers.Optimizer"
    paper: ClassVar[str] = ""
    examples: ClassVar = (
        {"optimizer": Adam(), "gradient_accumulation_steps": 2},
        {"optimizer": Adagrad(clipnorm=2.0), "gradient_accumulation_steps": 3},
    )

    @lines(total="accumulated_gradient")
    def add(g, total):
        total = total + g
        return total

    @lines(makes=("g",))
    def mean(g, gradient_accumulation_steps):
        g = g / gradient_accumulation_steps
        return g

    def advance(
        self,
        weights: Sequence[Array],
        gradients: Sequence[Array | IndexedSlices | None],
        state: State,
        arithmetic: Arithmetic,
        constraints: Sequence[Constraint | None] = (),
    ) -> tuple[list[Array], State]:
        inner, own = self._apart(state)
        micro_steps = int(state.shared["micro_steps"]) + 1
        for i, g in enumerate(gradients):
            if g is None:
                _refuse_if_begun(i, own[i]["accumulated_rows"])
            else:
                own[i] = self._added(g, own[i], arithmetic)
        new = list(weights)
        if micro_steps == self.gradient_accumulation_steps:
            means = [
                None if g is None else self._mean(g, slots, arithmetic)
                for g, slots in zip(gradients, own, strict=True)
            ]
            new, inner = self.optimizer.advance(
                weights, means, inner, arithmetic, constraints
            )
            own = [{n: _filled(s, 0.0, arithmetic) for n, s in o.items()} for o in own]
            micro_steps = 0
        after = _together(inner, own)
        return new, replace(after, shared={**after.shared, "micro_steps": micro_steps})

    def _added(
        self, g: Any, slots: dict[str, Array], arithmetic: Arithmetic
    ) -> dict[str, Array]:
        total, rows = slots["accumulated_gradient"], slots["accumulated_rows"]
        if not isinstance(g, IndexedSlices):
            _, slots = self._run(self.add, {"g": g}, slots, arithmetic)
            return {**slots, "accumulated_rows": _filled(rows, 1.0, arithmetic)}
        g = deduplicate(replace(g, values=arithmetic.tensor(g.values)))
        some = {"accumulated_gradient": total[g.indices]}
        _, some = self._run(self.add, {"g": g.values}, some, arithmetic)
        total, marked = total.copy(), rows.copy()
        total[g.indices] = some["accumulated_gradient"]
        marked[g.indices] = _filled(rows[g.indices], 1.0, arithmetic)
        return {"accumulated_gradient": total, "accumulated_rows": marked}

    def _mean(self, g: Any, slots: dict[str, Array], arithmetic: Arithmetic) -> Any:
        total = slots["accumulated_gradient"]
        if not isinstance(g, IndexedSlices):
            return self._run(self.mean, {"g": total}, {}, arithmetic)[0]["g"]
        rows = np.flatnonzero(_plain(slots["accumulated_rows"]))
        made, _ = self._run(self.mean, {"g": total[rows]}, {}, arithmetic)
        return IndexedSlices(made["g"], rows, g.dense_shape)

    def _shared_start(self) -> dict[str, Any]:
        return {"micro_steps": 0}


def _filled(like: Array, value: float, arithmetic: Arithmetic) -> Array:
    return arithmetic.store(arithmetic.tensor(np.full(like.shape, value)), like)


def _plain(array: Any) -> np.ndarray:
    """The numbers of an array, whatever they carry besides."""
    return np.asarray(getattr(array, "value", array))


def _refuse_if_begun(weight: int, rows: Array) -> None:
    if np.any(_plain(rows)):
        raise ValueError(
            f"weight {weight} has no gradient now, but had one since the last step; "
            "what is accumulated for a weight needs a gradient at each call"
        )
