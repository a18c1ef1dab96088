"""The mutation score: how many wrong versions of a rule the scenarios tell from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ..optimizer import Optimizer
from ..rule import Rule
from .convention import ideal
from .evidence import Evidence, collect
from .judge import judge
from .mutants import Mutant, driver_mutants, rule_mutants
from .port import Setting
from .rounding import FLOAT32, FLOAT64, IEEE
from .scenarios import Part, Program, Weight, programs
from .simulate import simulate

RANDOM_RUNS = 48
RANDOM_ELEMENTS = 32
RANDOM_STEPS = 4


@dataclass
class Score:
    """The mutants of one optimizer.

    Attributes:
        mutants: how many were made.
        killed: how many a scenario tells from the rule.
        by: for each scenario, how many it tells.
        equivalent: mutants that are the rule, with the evidence.
        surviving: mutants that are not the rule and that no scenario tells.
    """

    mutants: int = 0
    killed: int = 0
    by: Counter[str] = field(default_factory=Counter)
    equivalent: list[tuple[Mutant, str]] = field(default_factory=list)
    surviving: list[Mutant] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        return {
            "mutants": self.mutants,
            "killed": self.killed,
            "equivalent": len(self.equivalent),
            "surviving": len(self.surviving),
            "by": dict(self.by.most_common()),
            "evidence": [
                {"mutant": _shown(mutant), "evidence": why}
                for mutant, why in self.equivalent
            ],
            "survivors": [_shown(mutant) for mutant in self.surviving],
        }


def score(
    cls: type[Optimizer],
    seed: int = 0,
    progress: Callable[[str], None] = lambda what: None,
) -> Score:
    """All mutants of all rules of an optimizer, judged in float32.

    A mutant of a rule counts as killed if any example of the class that uses this rule
    tells it.
    """
    total = Score()
    by_rule: dict[Rule, list[Optimizer]] = {}
    for options in cls.examples:
        optimizer = cls(**options)
        by_rule.setdefault(optimizer.rule, []).append(optimizer)
    for rule, optimizers in by_rule.items():
        progress(f"{cls.__name__}.{rule.function.__name__}")
        _score_rule(total, optimizers, seed)
        _score_driver(total, optimizers[0], seed)
    return total


def _shown(mutant: Mutant) -> str:
    return f"line {mutant.line}: {mutant.edit}" if mutant.line else mutant.sentence


def _score_rule(total: Score, optimizers: list[Optimizer], seed: int) -> None:
    setting = Setting(FLOAT32)
    seen = []
    for optimizer in optimizers:
        runs = []
        for program in programs(optimizer, setting, seed):
            given = replace(optimizer, **program.hyperparameters)
            runs.append((simulate(given, program, FLOAT32), given))
        seen.append((runs, collect(runs, ideal(FLOAT32), setting, IEEE)))
    reachable = _random_inputs(optimizers[0], seed)
    for mutant in rule_mutants(optimizers[0]):
        total.mutants += 1
        killers: set[str] = set()
        for optimizer, (runs, evidence) in zip(optimizers, seen, strict=True):
            told = _told_columns(mutant, optimizer, evidence)
            for position, weight in {tuple(x) for x in evidence.where[::2, told].T}:
                program = runs[position][0].program
                parts = program.weights[weight].parts
                killers.add(f"{program.name}: {parts[0].name}")
        if killers:
            total.killed += 1
            total.by.update(killers)
        elif same := _same_bits(optimizers[0], mutant, reachable):
            total.equivalent.append((mutant, same))
        else:
            total.surviving.append(mutant)


def _told_columns(
    mutant: Mutant, optimizer: Optimizer, evidence: Evidence
) -> np.ndarray:
    """The columns that tell a mutant: all where it makes truth values of numbers."""
    try:
        return evidence.tells(evidence.results(optimizer, mutant.functions))
    except TypeError:
        return np.ones(evidence.where.shape[1], bool)


def _score_driver(total: Score, optimizer: Optimizer, seed: int) -> None:
    setting = Setting(FLOAT32)
    names = optimizer.rule.parameters
    for mutant in driver_mutants(optimizer):
        if mutant.sentence.startswith(("t is", "the step count")) and "t" not in names:
            continue
        total.mutants += 1
        for program in programs(optimizer, setting, seed):
            if _told(mutant, optimizer, program, setting):
                total.killed += 1
                total.by[program.name] += 1
                break
        else:
            if _never_moves_at_rest(optimizer, mutant, seed):
                why = "the rule changes nothing on a zero gradient: same bits"
                total.equivalent.append((mutant, why))
            else:
                total.surviving.append(mutant)


def _told(
    mutant: Mutant, optimizer: Optimizer, program: Program, setting: Setting
) -> bool:
    taken = mutant.program(program)
    wrong = replace(mutant.optimizer, **taken.hyperparameters)
    right = replace(optimizer, **program.hyperparameters)
    try:
        recording = replace(simulate(wrong, taken, setting.dtype), program=program)
    except ZeroDivisionError:
        return True
    scores = judge(
        recording, right, ideal(setting.dtype), setting, IEEE, to_the_end=False
    )
    return not all(s.conforms for s in scores.values())


def _random_inputs(optimizer: Optimizer, seed: int) -> Evidence:
    """Inputs of the rule that can be reached, under random hyperparameters."""
    rng = np.random.default_rng([seed, 1])
    runs = []
    for _ in range(RANDOM_RUNS):
        chosen: dict[str, Any] = _random_hyperparameters(optimizer, rng)
        random = replace(optimizer, **chosen)
        size = (RANDOM_STEPS, RANDOM_ELEMENTS)
        gradients = rng.normal(size=size) * 10.0 ** rng.uniform(-3, 2, size)
        part = Part("random", "", rng.normal(size=RANDOM_ELEMENTS), tuple(gradients))
        program = Program("random", "", (Weight((part,)),), RANDOM_STEPS)
        runs.append((simulate(random, program, FLOAT64), random))
    return collect(runs, ideal(FLOAT64), Setting(FLOAT64), IEEE)


def _random_hyperparameters(
    optimizer: Optimizer, rng: np.random.Generator
) -> dict[str, float]:
    chosen = {}
    for f in fields(optimizer):
        value = getattr(optimizer, f.name)
        if f.name not in optimizer.hyperparameters() or not isinstance(value, float):
            continue
        low, high = (float(end) for end in f.metadata["domain"][1:-1].split(","))
        if np.isinf(high):
            chosen[f.name] = float(max(low, 0.0) + 10.0 ** rng.uniform(-4, 0))
        elif np.isinf(low):
            chosen[f.name] = float(rng.uniform(-1, high))
        else:
            chosen[f.name] = float(rng.uniform(low, high))
    return chosen


def _same_bits(optimizer: Optimizer, mutant: Mutant, inputs: Evidence) -> str:
    """Evidence that a mutant is the rule, or nothing."""
    right = inputs.results(optimizer)
    wrong = inputs.results(optimizer, mutant.functions)
    for symbol, value in right.items():
        if not np.array_equal(value, wrong[symbol], equal_nan=True):
            return ""
    count = inputs.where.shape[1]
    return f"{_reason(mutant)}: same bits on {count} random inputs of the domain"


def _reason(mutant: Mutant) -> str:
    if "computed before" in mutant.sentence:
        return "neither line reads what the other assigns"
    if "np.sign(np.sign(" in mutant.edit:
        return "the sign of a sign is that sign"
    if "np.abs(" in mutant.edit:
        return "the argument of abs is never negative"
    return "equal wherever the rule can come"


def _never_moves_at_rest(optimizer: Optimizer, mutant: Mutant, seed: int) -> bool:
    for program in programs(optimizer, Setting(FLOAT64), seed):
        right = replace(optimizer, **program.hyperparameters)
        changed = mutant.program(program)
        wrong = replace(mutant.optimizer, **changed.hyperparameters)
        for a, b in zip(
            simulate(right, program, FLOAT64).snapshots,
            simulate(wrong, changed, FLOAT64).snapshots,
            strict=True,
        ):
            if not all(
                np.array_equal(x, y, equal_nan=True)
                for x, y in zip(a.weights, b.weights, strict=True)
            ):
                return False
    return True
