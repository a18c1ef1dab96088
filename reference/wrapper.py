"""What acts around the steps of another optimizer, the inner one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from .gradients import Array, IndexedSlices
from .optimizer import (
    Arithmetic,
    Constraint,
    Driver,
    State,
    _flatten,
    _in_domain,
)
from .rule import Slot, _NamedFunction, _slots

LOOKAHEAD, AVERAGE, ACCUMULATION, LOSS_SCALE = 1, 2, 3, 4
"""Places in the one order that counts and averages each step once, from the inside."""


@dataclass(frozen=True, eq=False)
class Lines(_NamedFunction):
    """Lines of a wrapper: from a weight, its gradient and slots to what they become.

    Attributes:
        makes: results before the slots: ``w``, or ``g``.
    """

    makes: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[str, ...]:
        return (*self.makes, *self.slots)


def lines(
    *, makes: tuple[str, ...] = (), **slots: str | Slot
) -> Callable[[Callable], Lines]:
    """Declare lines of a wrapper, and the slot behind each letter."""
    return lambda function: Lines(function, _slots(slots), makes)


@dataclass(frozen=True)
class Wrapper(Driver):
    """What all wrappers have in common.

    The inner optimizer takes its whole step: schedule, summing, clipping, rules,
    constraints, count. What a wrapper does not say (``learning_rate``, ``clipnorm``,
    ``rule`` and so on) is the inner optimizer's. A state holds the inner one's slots
    and the wrapper's. A weight without a gradient is left alone, with all its slots.

    Args:
        optimizer: an optimizer, or a wrapper that may be inside this one:
            ``LossScaleOptimizer(GradientAccumulation(MovingAverage(Lookahead(...))))``
            is the one order, of which any part may be left out.

    Raises:
        TypeError: ``optimizer`` is none.
        ValueError: a wrapper that must not be inside this one; an argument outside its
            domain.
    """

    optimizer: Driver

    place: ClassVar[int] = 0
    adds: ClassVar[dict[str, Slot]] = {}
    home: ClassVar[str] = ""
    paper: ClassVar[str] = ""
    examples: ClassVar[tuple[dict[str, Any], ...]] = ()

    def __post_init__(self) -> None:
        check_inner(self, self.optimizer, self.place)
        if both := set(self.adds) & set(self.optimizer.slots):
            raise ValueError(
                f"{type(self).__name__} and its inner {type(self.optimizer).__name__} "
                f"both have a slot called {', '.join(sorted(both))}"
            )
        for f in fields(self):
            value = getattr(self, f.name)
            domain = f.metadata.get("domain")
            if domain and not (value is None and f.default is None):
                _in_domain(f.name, value, domain)
                if isinstance(f.default, int) and not isinstance(
                    value, int | np.integer
                ):
                    raise TypeError(f"{f.name} must be an integer, got {value!r}")

    def __getattr__(self, name: str) -> Any:
        if name == "optimizer" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.optimizer, name)

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of the slots that a weight may have, in order."""
        return (*self.optimizer.slots, *self.adds)

    def replaced(self, **changes: Any) -> Wrapper:
        own = {f.name for f in fields(self)}
        inner = {name: value for name, value in changes.items() if name not in own}
        kept = {name: value for name, value in changes.items() if name in own}
        return replace(self, optimizer=self.optimizer.replaced(**inner), **kept)

    def init(self, params: Any) -> State:
        weights, _ = _flatten(params)
        state = self.optimizer.init(weights)
        slots = (
            {
                **inner,
                **{name: self._start(slot, w) for name, slot in self.adds.items()},
            }
            for w, inner in zip(weights, state.slots, strict=True)
        )
        return State(0, tuple(slots), {**state.shared, **self._shared_start()})

    def layout(
        self, shapes: Sequence[tuple[int, ...]]
    ) -> tuple[list[dict[str, tuple[int, ...]]], set[str]]:
        slots, shared = self.optimizer.layout(shapes)
        own = [
            {name: slot.shape_for(shape) for name, slot in self.adds.items()}
            for shape in shapes
        ]
        together = [{**i, **o} for i, o in zip(slots, own, strict=True)]
        return together, shared | set(self._shared_start())

    def advance(
        self,
        weights: Sequence[Array],
        gradients: Sequence[Array | IndexedSlices | None],
        state: State,
        arithmetic: Arithmetic,
        constraints: Sequence[Constraint | None] = (),
    ) -> tuple[list[Array], State]:
        inner, own = self._apart(state)
        new, inner = self.optimizer.advance(
            weights, gradients, inner, arithmetic, constraints
        )
        with np.errstate(all="ignore"):
            for i, g in enumerate(gradients):
                if g is not None:
                    new[i], own[i] = self._follow(
                        new[i], own[i], inner.iterations, arithmetic
                    )
        return new, _together(inner, own)

    def _follow(
        self, w: Array, slots: dict[str, Array], t: int, arithmetic: Arithmetic
    ) -> tuple[Array, dict[str, Array]]:
        """A weight and the wrapper's slots after step ``t``, from those of the step."""
        raise NotImplementedError

    def _start(self, slot: Slot, w: Array) -> Array:
        if slot.start == "w":
            return np.array(w)
        return np.full(slot.shape_for(w.shape), slot.start, w.dtype)

    def _shared_start(self) -> dict[str, Any]:
        return {}

    def _apart(self, state: State) -> tuple[State, list[dict[str, Array]]]:
        """The inner optimizer's state, and the wrapper's slots."""
        inner = tuple(
            {name: slot for name, slot in each.items() if name not in self.adds}
            for each in state.slots
        )
        own = [{name: each[name] for name in self.adds} for each in state.slots]
        mine = self._shared_start()
        shared = {n: value for n, value in state.shared.items() if n not in mine}
        return State(state.iterations, inner, shared), own

    def _run(
        self,
        lines: Lines,
        given: Mapping[str, Array],
        slots: dict[str, Array],
        arithmetic: Arithmetic,
        **numbers: Any,
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """What ``lines`` make, and the slots after them.

        Args:
            given: the tensors ``w`` and ``g``, as far as they are read.
            numbers: coefficients that are no fields of the class.
        """
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        named = {
            name: arithmetic.coefficient(value, name)
            for name, value in {**own, **numbers}.items()
            if name in lines.parameters
        }
        kept = {symbol: slots[slot.name] for symbol, slot in lines.slots.items()}
        tensors = {
            symbol: arithmetic.tensor(array)
            for symbol, array in {**given, **kept}.items()
            if symbol in lines.parameters
        }
        new = lines(**named, **tensors)
        made = {s: arithmetic.store(new[s], given[s]) for s in lines.makes}
        changed = {
            slot.name: arithmetic.store(new[symbol], kept[symbol])
            for symbol, slot in lines.slots.items()
        }
        return made, {**slots, **changed}


def check_inner(outer: Any, optimizer: Any, place: int) -> None:
    """Refuse what cannot be inside a wrapper at ``place``.

    Raises:
        TypeError: it takes no steps.
        ValueError: it must be further out.
    """
    name = type(outer).__name__
    if not isinstance(optimizer, Driver):
        raise TypeError(f"{name} needs an optimizer of reference, got {optimizer!r}")
    if getattr(optimizer, "place", 0) >= place:
        raise ValueError(
            f"{name} cannot go around {type(optimizer).__name__}; the order is "
            "LossScaleOptimizer(GradientAccumulation(average(Lookahead(optimizer)))), "
            "each at most once, so that what is skipped is not averaged and what is "
            "averaged is what the optimizer goes on from"
        )


def _together(inner: State, own: Sequence[dict[str, Array]]) -> State:
    slots = tuple({**i, **o} for i, o in zip(inner.slots, own, strict=True))
    return replace(inner, slots=slots)
