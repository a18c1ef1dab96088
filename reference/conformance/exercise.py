"""Spot the bug: a rule with one edit, and what it does to three numbers."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..optimizer import Arithmetic, Optimizer
from ..rule import Rule
from .explain import GRADIENTS, WEIGHTS, trace
from .mutants import CANNOT_RUN, OLD, Mutant, edits, mutant, parsed

STEPS = 2


def exercise(classes: Sequence[type[Optimizer]], seed: int, *, answer: bool) -> str:
    """A rule with one wrong line; with ``answer``, which one and what is wrong.

    Args:
        classes: the optimizers to choose from.
        seed: chooses; the same one gives the same exercise, and its answer.
        answer: explain instead of asking.

    Raises:
        ValueError: none of the classes has an elementwise rule.
    """
    rng = np.random.default_rng(seed)
    possible = [
        optimizer
        for cls in classes
        for optimizer in (cls(**options) for options in cls.examples)
        if optimizer.elementwise
    ]
    if not possible:
        names = ", ".join(cls.__name__ for cls in classes)
        raise ValueError(f"{names} has no rule that acts on each number alone")
    optimizer = possible[rng.integers(len(possible))]
    wrong = _wrong(optimizer, rng)
    if answer:
        right = ast.unparse(parsed(optimizer.rule).body[wrong.line - 1])
        return "\n".join(
            [
                f"Line {wrong.line}: {wrong.sentence.split(': the line is')[0]}.",
                f"  it reads     {wrong.edit}",
                f"  it should be {right}",
            ]
        )
    assert wrong.tree is not None
    lines = [f"  {n}  {ast.unparse(line)}" for n, line in enumerate(wrong.tree.body, 1)]
    return "\n".join(
        [
            f"{type(optimizer).__name__}, with one wrong line. Which one?",
            "",
            *lines,
            "",
            *_trace(wrong.optimizer),
            "",
            f"The answer: the same command with --seed {seed} --answer",
        ]
    )


def _wrong(optimizer: Optimizer, rng: np.random.Generator) -> Mutant:
    """A likely edit that shows in the trace and reads like a rule."""
    rule = optimizer.rule
    right = _trace(optimizer)
    candidates = [
        (line, sentence, tree)
        for line, sentence, tree in edits(rule, likely=True)
        if OLD not in ast.unparse(tree) and "computed before" not in sentence
    ]
    for index in rng.permutation(len(candidates)):
        line, sentence, tree = candidates[index]
        wrong = mutant(optimizer, rule, line, sentence, tree)
        try:
            shown = _trace(wrong.optimizer)
        except CANNOT_RUN:
            continue
        if shown != right and "nan" not in " ".join(shown):
            return wrong
    raise ValueError(f"no edit of {type(optimizer).__name__} shows in {STEPS} steps")


def _trace(optimizer: Optimizer) -> list[str]:
    """Every named number in the first steps."""
    weights, state = WEIGHTS, optimizer.init(WEIGHTS)
    rule: Rule = optimizer.rule
    text = []
    for step in range(STEPS):
        gradient = GRADIENTS * (1, -0.5)[step]
        given: dict[str, Any] = optimizer.coefficients(step, Arithmetic())
        given |= {"w": weights, "g": gradient, "touched": True}
        if optimizer.shared:
            for symbol, slot in optimizer.shared.slots.items():
                given[symbol] = state.shared[slot.name]
            given |= optimizer.shared(**given)
        given |= {s: state.slots[0][slot.name] for s, slot in rule.slots.items()}
        text.append(
            f"Step {step + 1}, with w = {_shown(weights)}, g = {_shown(gradient)}"
        )
        arguments = {name: given[name] for name in rule.parameters}
        assigned = trace(rule.function, arguments)
        names = [(n, x) for n, x in assigned if not n.startswith(OLD)]
        width = max(len(name) for name, _ in names)
        text += [f"  {name:<{width}}  {_shown(value)}" for name, value in names]
        weights, state = optimizer.step(weights, gradient, state)
    return text


def _shown(value: Any) -> str:
    return "  ".join(f"{float(x):.6g}" for x in np.ravel(value))
