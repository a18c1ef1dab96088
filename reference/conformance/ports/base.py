"""What the ports of all frameworks share: the translation of names."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ...dialects import Dialect
from ...gradients import IndexedSlices

PASSED_BY_PLACE = {"self", "params", "args", "kwargs"}


class NamedPort:
    """A port that translates our names into those of a framework.

    Args:
        target: the class, or the function that makes the optimizer.
        dialect: the names and arguments in which this one is special.

    Attributes:
        arguments: our hyperparameters, and what they may be called; ``betas[0]`` is the
            first of a pair.
        slot_names: our slots, and what they may be called.
        every_pair: each dtype has code of its own in each mode; where not, the check
            runs all modes in float32 and one in other dtypes.
    """

    every_pair: ClassVar[bool] = False

    arguments: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    slot_names: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def __init__(self, target: Any, dialect: Dialect | None = None) -> None:
        self.target = target
        self.dialect = dialect or Dialect("", "", "")

    @property
    def name(self) -> str:
        return self.dialect.name or self.target.__name__

    def modes(self) -> Sequence[str]:
        raise NotImplementedError

    def devices(self) -> Sequence[str]:
        return ("CPU",)

    def strategies(self) -> Sequence[str]:
        return ("none",)

    def refusal(self, gradient: np.ndarray | IndexedSlices | None) -> str:
        return ""

    def accepts(self) -> set[str]:
        return set(self.places)

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        """The arguments that the target takes, with their defaults."""
        found: dict[str, Any] = {}
        for function in _constructors(self.target):
            parameters = inspect.signature(function).parameters.values()
            for p in parameters:
                if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY):
                    found.setdefault(p.name, p.default)
            if not any(p.kind is p.VAR_KEYWORD for p in parameters):
                break
        return {n: d for n, d in found.items() if n not in PASSED_BY_PLACE}

    @cached_property
    def places(self) -> Mapping[str, str]:
        """Our hyperparameters, and where they go among the arguments."""
        theirs: dict[str, str] = {}
        for ours, candidates in self.arguments.items():
            for place in candidates:
                if _parameter(place) in self.parameters:
                    theirs.setdefault(ours, place)
        theirs |= self.dialect.arguments
        used = {_parameter(place) for place in theirs.values()}
        for name in self.parameters:
            if name not in used:
                theirs.setdefault(name, name)
        return {ours: place for ours, place in theirs.items() if place}

    def given(self, hyperparameters: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of theirs for hyperparameters of ours."""
        arguments: dict[str, Any] = {}
        for ours, value in hyperparameters.items():
            place = self.places[ours]
            name, position = _parameter(place), _position(place)
            if position is None:
                arguments[name] = _as_integer(value, self.parameters.get(name))
            else:
                group = list(arguments.get(name, self.parameters[name]))
                group[position] = value
                arguments[name] = tuple(group)
        return arguments | dict(self.dialect.theirs)

    def ours(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Our hyperparameters for arguments of theirs."""
        found = {}
        for ours, place in self.places.items():
            name, position = _parameter(place), _position(place)
            if name in arguments:
                value = arguments[name]
                found[ours] = value if position is None else value[position]
        return found

    def default(self, place: str) -> Any:
        """The default of a hyperparameter; ``inspect.Parameter.empty`` without one."""
        value, position = self.parameters[_parameter(place)], _position(place)
        return value if position is None else value[position]

    def slot(self, ours: str) -> tuple[tuple[str, ...], float]:
        """What a slot of ours may be called there, and its sign there."""
        special = self.dialect.slots.get(ours)
        if special is None:
            return (*self.slot_names.get(ours, ()), ours), 1.0
        names = (special.removeprefix("-"),) if special else ()
        return names, -1.0 if special.startswith("-") else 1.0


def _as_integer(value: Any, default: Any) -> Any:
    """A whole number as an integer, where the default is one."""
    whole = isinstance(value, float) and value.is_integer()
    return int(value) if whole and type(default) is int else value


def _constructors(target: Any) -> list[Callable[..., Any]]:
    if not isinstance(target, type):
        return [target]
    return [vars(c)["__init__"] for c in target.__mro__ if "__init__" in vars(c)]


def _parameter(place: str) -> str:
    return place.partition("[")[0]


def _position(place: str) -> int | None:
    found = re.search(r"\[(\d+)\]", place)
    return int(found[1]) if found else None
