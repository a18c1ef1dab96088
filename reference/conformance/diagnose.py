"""What is wrong with an implementation: the edit of the rule that does what it did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ..optimizer import Optimizer
from .convention import Convention
from .evidence import Evidence, collect
from .judge import Recording, judge
from .mutants import Mutant, driver_mutants, pairs, renames, rule_mutants
from .port import Setting
from .rounding import Platform

Runs = Sequence[tuple[Recording, Optimizer]]

ENOUGH = 5
"""Explanations that are worth showing."""


@dataclass(frozen=True)
class Explanation:
    """A wrong version of the rule that does what the implementation did.

    Attributes:
        sentence: what is wrong.
        line: the line of the rule, from 1; 0 where it is not the rule.
        edit: that line as the implementation has it.
        reproduces: ``"everything"``, or the names of the slots that it reproduces.
    """

    sentence: str
    line: int
    edit: str
    reproduces: str

    def to_dict(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __str__(self) -> str:
        where = f", line {self.line}" if self.line else ""
        return f"{self.sentence}{where}; reproduces {self.reproduces}"


def diagnose(
    runs: Runs,
    convention: Convention,
    setting: Setting,
    platform: Platform,
    kinds: set[str],
    *,
    thorough: bool = True,
) -> list[Explanation]:
    """Explanations of a failing implementation, best first; empty where none fits.

    Args:
        runs: what it did, with the rule under the hyperparameters of each run.
        convention: the one under which it comes closest.
        setting, platform: how it ran.
        kinds: the kinds of gradient that fail.
        thorough: look also at consistent renames, and at pairs of edits in one line.
    """
    optimizer = runs[0][1]
    evidence = collect(runs, convention, setting, platform)
    evidence = evidence.of_kind(kinds, [recording for recording, _ in runs])
    wrong = evidence.mismatch(evidence.results(optimizer))
    judging = (runs, convention, setting, platform, kinds)
    explanations: list[Explanation] = []
    shown: list[dict[str, Any]] = []
    for tier in _tiers(optimizer, wrong, thorough):
        for mutant in tier:
            if mutant.functions:
                results = evidence.results(optimizer, mutant.functions)
                if any(evidence.mismatch(results).values()):
                    continue
                if any(_same(results, other) for other in shown):
                    continue
                shown.append(results)
            if _does_everything(mutant, *judging):
                explanations.append(_explained(mutant, "everything"))
                if len(explanations) == ENOUGH:
                    break
        if explanations:
            return explanations
    return _in_part(optimizer, evidence, wrong)


def _tiers(
    optimizer: Optimizer, wrong: dict[str, float], thorough: bool
) -> Iterator[Iterable[Mutant]]:
    """Versions to try, the likeliest first; one that fits ends the search."""
    yield _dialects(optimizer)
    if any(wrong.values()):
        yield rule_mutants(optimizer)
    yield driver_mutants(optimizer)
    if any(wrong.values()) and thorough:
        yield renames(optimizer)
        for line in _suspect_lines(optimizer, wrong):
            yield pairs(optimizer, line)


def _same(results: dict[str, Any], others: dict[str, Any]) -> bool:
    return all(
        np.array_equal(value, others[symbol], equal_nan=True)
        for symbol, value in results.items()
    )


def _dialects(optimizer: Optimizer) -> Iterator[Mutant]:
    """The same class under other options."""
    cls = type(optimizer)
    present = {f.name: getattr(optimizer, f.name) for f in fields(optimizer)}
    for f in fields(optimizer):
        if isinstance(f.default, bool):
            other = not present[f.name]
            sentence = f"it behaves as with {f.name}={other}"
            yield Mutant(sentence, 0, "", cls(**{**present, f.name: other}), {})


def _suspect_lines(optimizer: Optimizer, wrong: dict[str, float]) -> list[int]:
    """The lines of the rule that assign what is wrong, slots before the weight."""
    symbols = [s for s in (*optimizer.rule.slots, "w") if wrong.get(s)]
    lines = optimizer.rule.source.split("):\n", 1)[-1].splitlines()
    return [
        number
        for symbol in symbols[:1]
        for number, line in enumerate(lines, 1)
        if line.strip().startswith(f"{symbol} = ")
    ]


def _does_everything(
    mutant: Mutant,
    runs: Runs,
    convention: Convention,
    setting: Setting,
    platform: Platform,
    kinds: set[str],
) -> bool:
    for recording, right in runs:
        program = mutant.program(recording.program)
        given = {n: getattr(right, n) for n in program.hyperparameters}
        if program is not recording.program:
            given = dict(program.hyperparameters)
        version = replace(mutant.optimizer, **given)
        try:
            scores = judge(
                replace(recording, program=program),
                version,
                convention,
                setting,
                platform,
                to_the_end=False,
            )
        except (ArithmeticError, ValueError):
            return False
        if any(not scores[kind].conforms for kind in kinds & set(scores)):
            return False
    return True


def _in_part(
    optimizer: Optimizer, evidence: Evidence, wrong: dict[str, float]
) -> list[Explanation]:
    """Edits that mend at least one slot that is wrong, most slots first."""
    found: list[tuple[int, Explanation]] = []
    slots = dict(optimizer.rule.slots)
    if optimizer.shared:
        slots |= optimizer.shared.slots
    for mutant in rule_mutants(optimizer):
        left = evidence.mismatch(evidence.results(optimizer, mutant.functions))
        mended = [s for s, part in wrong.items() if part and not left[s]]
        if mended:
            names = ["weight" if s == "w" else slots[s].name for s in mended]
            found.append((len(mended), _explained(mutant, ", ".join(names))))
    found.sort(key=lambda item: -item[0])
    return [explanation for _, explanation in found[:ENOUGH]]


def _explained(mutant: Mutant, reproduces: str) -> Explanation:
    return Explanation(mutant.sentence, mutant.line, mutant.edit, reproduces)
