"""One step of a rule, by hand: every named quantity with its value."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ..optimizer import Arithmetic, Optimizer
from ..rule import Rule, SharedRule
from ..wrapper import Lines

WEIGHTS = np.array([1.0, -2.0, 0.5])
GRADIENTS = np.array([0.5, -0.25, 0.0])
MATRICES = np.array([[1.0, -2.0], [0.5, 3.0]]), np.array([[0.5, -0.25], [0.0, 1.0]])
"""A weight and a gradient for rules of two axes."""


def explain(optimizer: Optimizer) -> str:
    """The rule's source, its docstring, and its first step on a few numbers.

    The values come from watching the very function that the oracle runs.
    """
    cls = type(optimizer)
    rule = optimizer.rule
    slots = ", ".join(f"{s} = {slot.name}" for s, slot in rule.slots.items())
    text = [
        cls.__name__,
        f"from {cls.home}; {cls.paper}",
        f"slots: {slots or 'none'}; a sparse gradient changes: {optimizer.policy}",
        "",
        _dedented(cls.__doc__ or ""),
        "",
    ]
    weights, gradients = WEIGHTS, GRADIENTS
    if optimizer.rule_for(weights.shape) is not rule:
        weights, gradients = MATRICES
    state = optimizer.init(weights)
    named = optimizer.coefficients(0, Arithmetic())
    given: dict[str, Any] = {**named, "w": weights, "g": gradients, "touched": True}
    if optimizer.shared:
        for symbol, slot in optimizer.shared.slots.items():
            given[symbol] = state.shared[slot.name]
        text += [*_section(optimizer.shared, given, "once a step"), ""]
        given |= optimizer.shared(**given)
    given |= {s: state.slots[0][slot.name] for s, slot in rule.slots.items()}
    text += _section(rule, given, "for each weight")
    return "\n".join(text)


def explain_wrapper(cls: Any) -> str:
    """A wrapper's docstring, and the lines that it adds to the step of what is inside.

    Args:
        cls: a class of ``reference.WRAPPERS``.
    """
    text = [cls.__name__, f"from {cls.home}; {cls.paper}", "", _dedented(cls.__doc__)]
    for added in vars(cls).values():
        if isinstance(added, Lines):
            text += ["", "After a step:" if "w" in added.parameters else "Before:", ""]
            text.append(added.source.rstrip())
    return "\n".join(text)


def _section(rule: Rule | SharedRule, given: dict[str, Any], when: str) -> list[str]:
    steps = trace(rule.function, {n: given[n] for n in rule.parameters})
    inputs = [(n, given[n]) for n in rule.parameters]
    width = max(len(name) for name, _ in [*inputs, *steps])
    return [
        f"The rule, {when}:",
        "",
        rule.source.rstrip(),
        "",
        "Its first step:",
        *(f"  {name:<{width}}  {_shown(value)}" for name, value in inputs),
        "  " + "-" * (width + 8),
        *(f"  {name:<{width}}  {_shown(value)}" for name, value in steps),
    ]


def trace(
    function: Callable[..., Any], arguments: dict[str, Any]
) -> list[tuple[str, Any]]:
    """Every assignment that ``function`` makes, in order, as ``(name, value)``."""
    assigned: list[tuple[str, Any]] = []
    seen = dict(arguments)

    def watch(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code is not function.__code__:
            return None
        for name, value in frame.f_locals.items():
            if seen.get(name) is not value:
                seen[name] = value
                assigned.append((name, value))
        return watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        with np.errstate(all="ignore"):
            function(**arguments)
    finally:
        sys.settrace(before)
    return assigned


def _shown(value: Any) -> str:
    if np.ndim(value) == 0:
        return f"{float(value):.10g}"
    return "  ".join(f"{float(x):.10g}".rjust(16) for x in np.ravel(value))


def _dedented(doc: str) -> str:
    import inspect

    return inspect.cleandoc(doc)
