"""A rule: a pure function of named numbers, and what its names stand for."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from .sparse import SparsePolicy


@dataclass(frozen=True)
class Slot:
    """A piece of optimizer state.

    Attributes:
        name: its public name, that of the Keras class.
        start: its initial value: a number, or the name of a hyperparameter.
        shape: its shape, from that of the weight; ``None`` means the same. On a sparse
            gradient a slot of another shape always changes as a whole.
    """

    name: str
    start: float | str = 0.0
    shape: Callable[[tuple[int, ...]], tuple[int, ...]] | None = None

    def shape_for(self, weight: tuple[int, ...]) -> tuple[int, ...]:
        """Its shape beside a weight of shape ``weight``."""
        return self.shape(weight) if self.shape else weight


@dataclass(frozen=True, eq=False)
class _NamedFunction:
    """A pure function whose arguments are bound by name.

    Attributes:
        function: the function.
        slots: the slots behind the letters, in the order in which they are returned.
    """

    function: Callable[..., Any]
    slots: Mapping[str, Slot]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names that the function reads."""
        return _arguments(self.function)

    @property
    def results(self) -> tuple[str, ...]:
        """The names that the function gives back, in order."""
        raise NotImplementedError

    @cached_property
    def source(self) -> str:
        """The lines of the function, without its decorator."""
        lines = textwrap.dedent(inspect.getsource(self.function)).splitlines(True)
        first = next(i for i, line in enumerate(lines) if line.startswith("def "))
        return "".join(lines[first:])

    def __call__(self, **named: Any) -> dict[str, Any]:
        """Results by name; ``named`` may hold more than the function reads."""
        result = self.function(*(named[name] for name in self.parameters))
        if len(self.results) == 1:
            result = (result,)
        return dict(zip(self.results, result, strict=True))


@dataclass(frozen=True, eq=False)
class Rule(_NamedFunction):
    """One update of one weight, ``(w, g, slots, t, hyperparameters) -> (w, slots)``.

    Attributes:
        sparse: the policy of the home library.
    """

    sparse: SparsePolicy

    @property
    def results(self) -> tuple[str, ...]:
        return ("w", *self.slots)


@dataclass(frozen=True, eq=False)
class SharedRule(_NamedFunction):
    """The part of a step that belongs to no single weight, run once before them.

    Attributes:
        makes: results beside the slots, which the rules of the weights read by name.
    """

    makes: tuple[str, ...] = ()

    @property
    def results(self) -> tuple[str, ...]:
        return (*self.slots, *self.makes)


def rule(*, sparse: SparsePolicy, **slots: str | Slot) -> Callable[[Callable], Rule]:
    """Declare a rule: its sparse policy, and the slot behind each letter."""
    return lambda function: Rule(function, _slots(slots), sparse)


def shared_rule(
    *, makes: tuple[str, ...] = (), **slots: str | Slot
) -> Callable[[Callable], SharedRule]:
    """Declare a rule that runs once a step, before the weights."""
    return lambda function: SharedRule(function, _slots(slots), makes)


def framed(
    rule: Rule,
    before: Callable[..., Any],
    after: Callable[..., Any] | None,
    sparse: SparsePolicy,
) -> Rule:
    """A rule with lines before its own, and after them.

    Args:
        rule: the rule.
        before, after: functions whose lines are taken, but for their ``return``. The
            rule gets their arguments too; ``after`` may also read what ``before`` made.
        sparse: the policy.

    Returns:
        a rule whose source is all these lines.
    """
    given = _arguments(before)
    made = set(before.__code__.co_varnames) - set(given)
    read = [name for name in _arguments(after) if name not in made] if after else []
    arguments = dict.fromkeys([*rule.parameters, *given, *read])
    own, kept = _lines(rule.function)
    extra = _lines(after)[0] if after else []
    name = rule.function.__name__
    lines = [*_lines(before)[0], *own, *extra, *kept]
    source = "\n".join([f"def {name}({', '.join(arguments)}):", *lines, ""])
    # As a file, so that the source is found wherever a function's is.
    file = f"<{name} after {before.__name__}, {id(rule):#x}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    scope: dict[str, Any] = {}
    everything = {**before.__globals__, **rule.function.__globals__}
    exec(compile(source, file, "exec"), everything, scope)
    return replace(rule, function=scope[name], sparse=sparse)


def _arguments(function: Callable[..., Any]) -> tuple[str, ...]:
    return function.__code__.co_varnames[: function.__code__.co_argcount]


def _lines(function: Callable[..., Any]) -> tuple[list[str], list[str]]:
    """The lines of a function: those before its ``return``, and that."""
    source = textwrap.dedent(inspect.getsource(function))
    (definition,) = ast.parse(source).body
    assert isinstance(definition, ast.FunctionDef)
    lines, last = source.splitlines(), definition.body[-1].lineno - 1
    return lines[definition.body[0].lineno - 1 : last], lines[last:]


def _slots(declared: Mapping[str, str | Slot]) -> dict[str, Slot]:
    return {
        symbol: slot if isinstance(slot, Slot) else Slot(slot)
        for symbol, slot in declared.items()
    }
