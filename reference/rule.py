"""A rule: a pure function of named numbers, and what its names stand for."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .sparse import SparsePolicy


@dataclass(frozen=True)
class Slot:
    """A piece of optimizer state.

    Attributes:
        name: its public name, that of the Keras class.
        start: its initial value: a number, or the name of a hyperparameter.
    """

    name: str
    start: float | str = 0.0


@dataclass(frozen=True, eq=False)
class Rule:
    """One update of one weight, ``(w, g, slots, t, hyperparameters) -> (w, slots)``.

    Attributes:
        function: the pure function; arguments are bound by name.
        slots: the slots behind the letters, in the order in which they are returned.
        sparse: the policy of the home library.
    """

    function: Callable[..., Any]
    slots: Mapping[str, Slot]
    sparse: SparsePolicy

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names the rule reads."""
        code = self.function.__code__
        return code.co_varnames[: code.co_argcount]

    @property
    def results(self) -> tuple[str, ...]:
        """The names the rule gives back, in order."""
        return ("w", *self.slots)

    @cached_property
    def source(self) -> str:
        """The lines of the function, without its decorator."""
        return _source(self.function)

    def __call__(self, **named: Any) -> dict[str, Any]:
        """New tensors by symbol; ``named`` may hold more than the rule reads."""
        result = self.function(*(named[name] for name in self.parameters))
        if not self.slots:
            result = (result,)
        return dict(zip(self.results, result, strict=True))


@dataclass(frozen=True, eq=False)
class SharedRule:
    """The part of a step that belongs to no single weight, run once before them.

    Attributes:
        function: the pure function; it returns its slots, then what ``makes`` names.
        slots: the shared slots behind the letters.
        makes: further results, which the rules of the weights may read by name.
    """

    function: Callable[..., Any]
    slots: Mapping[str, Slot]
    makes: tuple[str, ...] = ()

    parameters = Rule.parameters
    source = Rule.source

    @property
    def results(self) -> tuple[str, ...]:
        return (*self.slots, *self.makes)

    def __call__(self, **named: Any) -> dict[str, Any]:
        result = self.function(*(named[name] for name in self.parameters))
        return dict(zip(self.results, result, strict=True))


def rule(*, sparse: SparsePolicy, **slots: str | Slot) -> Callable[[Callable], Rule]:
    """Declare a rule: its sparse policy, and the slot behind each letter."""
    return lambda function: Rule(function, _slots(slots), sparse)


def shared_rule(
    *, makes: tuple[str, ...] = (), **slots: str | Slot
) -> Callable[[Callable], SharedRule]:
    """Declare a rule that runs once a step, before the weights."""
    return lambda function: SharedRule(function, _slots(slots), makes)


def _slots(declared: Mapping[str, str | Slot]) -> dict[str, Slot]:
    return {
        symbol: slot if isinstance(slot, Slot) else Slot(slot)
        for symbol, slot in declared.items()
    }


def _source(function: Callable) -> str:
    lines = textwrap.dedent(inspect.getsource(function)).splitlines(keepends=True)
    first = next(i for i, line in enumerate(lines) if line.startswith("def "))
    return "".join(lines[first:])
