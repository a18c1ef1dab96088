"""The mutation score: how many wrong versions of a rule the scenarios tell from it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ..gradients import IndexedSlices
from ..optimizer import Optimizer, State
from ..rule import Rule
from ..schedules import PiecewiseConstantDecay
from .convention import ideal
from .driver_faults import clipping_mutants, driver_mutants
from .evidence import Evidence, collect
from .judge import Recording, _Judge, compare, judge
from .mutants import Mutant, rule_mutants
from .port import Setting
from .rounding import FLOAT32, FLOAT64, IEEE, SLACK
from .scenarios import Part, Program, Weight, programs
from .simulate import simulate

RANDOM_RUNS = 48
RANDOM_ELEMENTS = 32
RANDOM_STEPS = 4
RANDOM_DRIVES = 8
CLIP_AT = 0.5


@dataclass
class Score:
    """The mutants of one optimizer.

    Attributes:
        mutants: how many were made.
        killed: how many a scenario tells from the rule.
        by: for each scenario, how many it tells.
        alone: for each scenario, how many it alone tells.
        equivalent: mutants that are the rule, with the evidence.
        surviving: mutants that are not the rule and that no scenario tells.
    """

    mutants: int = 0
    killed: int = 0
    by: Counter[str] = field(default_factory=Counter)
    alone: Counter[str] = field(default_factory=Counter)
    equivalent: list[tuple[Mutant, str]] = field(default_factory=list)
    surviving: list[Mutant] = field(default_factory=list)

    def add(self, killers: set[str]) -> bool:
        """Count a mutant and what tells it; False where nothing does."""
        self.mutants += 1
        self.killed += bool(killers)
        self.by.update(killers)
        if len(killers) == 1:
            self.alone.update(killers)
        return bool(killers)

    def to_dict(self) -> dict[str, Any]:
        return {
            "mutants": self.mutants,
            "killed": self.killed,
            "equivalent": len(self.equivalent),
            "surviving": len(self.surviving),
            "by": dict(self.by.most_common()),
            "alone": dict(self.alone.most_common()),
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
    _score_clipping(total, cls(**cls.examples[0]), seed)
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
        killers: set[str] = set()
        for runs, evidence in seen:
            for position, weight, part in evidence.tells(mutant.functions):
                program = runs[position][0].program
                name = program.weights[weight].parts[part].name
                killers.add(f"{program.name}: {name}")
        if not total.add(killers):
            if same := _same_bits(mutant, reachable):
                total.equivalent.append((mutant, same))
            else:
                total.surviving.append(mutant)


def _score_driver(total: Score, optimizer: Optimizer, seed: int) -> None:
    _score_drivers(total, optimizer, driver_mutants(optimizer), seed)


def _score_clipping(total: Score, optimizer: Optimizer, seed: int) -> None:
    for limit in ("clipvalue", "clipnorm", "global_clipnorm"):
        clipping = optimizer.replaced(**{limit: CLIP_AT})
        _score_drivers(total, clipping, clipping_mutants(clipping), seed)


def _score_drivers(
    total: Score, optimizer: Optimizer, mutants: list[Mutant], seed: int
) -> None:
    setting = Setting(FLOAT32)
    read = {name for rule in optimizer.variants for name in rule.parameters}
    if optimizer.shared:
        read |= {*optimizer.shared.parameters}
    runs = []
    for program in programs(optimizer, setting, seed):
        right = replace(optimizer, **program.hyperparameters)
        runs.append((program, right, _free_run(right, program, setting)))
    for mutant in mutants:
        if not mutant.needs <= read:
            continue
        killers: set[str] = set()
        for program, _, due in runs:
            if len(killers) < 2 and _leaves(mutant, program, due, setting):
                killers.add(program.name)
        for program, right, _ in runs:
            if not killers and _told_step_by_step(mutant, program, right, setting):
                killers.add(program.name)
        if not total.add(killers):
            if same := _same_runs(optimizer, mutant, seed):
                total.equivalent.append((mutant, same))
            else:
                total.surviving.append(mutant)


Due = list[tuple[list[Any], State]]


def _free_run(right: Optimizer, program: Program, setting: Setting) -> Due:
    """What the rule leaves after each step, with its bounds."""
    start = simulate(right, replace(program, steps=0), setting.dtype)
    judge = _Judge(start, right, ideal(setting.dtype), setting, IEEE)
    judge.program = program
    state = judge._lifted(start.snapshots[0], None)
    due = []
    for step in range(program.steps):
        if step in program.learning_rates:
            right = right.replaced(learning_rate=program.learning_rates[step])
        state = judge._advanced(right, state, step)
        due.append(state)
    return due


def _run(mutant: Mutant, program: Program, setting: Setting) -> Recording:
    taken = mutant.program(program)
    wrong = replace(mutant.optimizer, **taken.hyperparameters)
    return simulate(wrong, taken, setting.dtype, mutant.resumed)


def _leaves(mutant: Mutant, program: Program, due: Due, setting: Setting) -> bool:
    """Whether a run of a wrong version leaves the bounds of the right one."""
    try:
        run = _run(mutant, program, setting)
    except (ArithmeticError, ValueError):
        return True
    for (weights, state), came in zip(due, run.snapshots[1:], strict=True):
        if state.iterations != came.state.iterations:
            return True
        pairs = [*zip(weights, came.weights, strict=True)]
        for own, seen in zip(state.slots, came.state.slots, strict=True):
            pairs += [(own[name], seen[name]) for name in own]
        shared = came.state.shared
        pairs += [(x, np.asarray(shared[name])) for name, x in state.shared.items()]
        if any(np.any(compare(x, y)[0] > SLACK) for x, y in pairs):
            return True
    return False


def _told_step_by_step(
    mutant: Mutant, program: Program, right: Optimizer, setting: Setting
) -> bool:
    """Whether the judge tells a wrong version, which shows no slots at the start."""
    run = _run(mutant, program, setting)
    start = run.snapshots[0]
    unseen: tuple[dict[str, Any], ...] = tuple({} for _ in start.state.slots)
    if not program.iterations:
        start = replace(start, state=replace(start.state, slots=unseen))
    recording = replace(run, program=program, snapshots=[start, *run.snapshots[1:]])
    scores = judge(
        recording, right, ideal(setting.dtype), setting, IEEE, to_the_end=False
    )
    return not all(s.conforms for s in scores.values())


def _random_inputs(optimizer: Optimizer, seed: int) -> Evidence:
    """Inputs of the rule that can be reached, under random hyperparameters."""
    rng = np.random.default_rng([seed, 1])
    runs = []
    shapes: list[tuple[int, ...]] = [(RANDOM_ELEMENTS,)]
    if not optimizer.elementwise:
        shapes = [(RANDOM_ELEMENTS // 4,), (4, 2), (2, 4)]
    for _ in range(RANDOM_RUNS):
        chosen: dict[str, Any] = _random_hyperparameters(optimizer, rng)
        random = replace(optimizer, **chosen)
        weights = []
        for shape in shapes:
            size = (RANDOM_STEPS, *shape)
            gradients = rng.normal(size=size) * 10.0 ** rng.uniform(-3, 2, size)
            part = Part("random", "", rng.normal(size=shape), tuple(gradients))
            weights.append(Weight((part,)))
        program = Program("random", "", tuple(weights), RANDOM_STEPS)
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


def _same_bits(mutant: Mutant, inputs: Evidence) -> str:
    """Evidence that a mutant of the rule is the rule, or nothing."""
    try:
        for right, wrong in zip(
            inputs.results(), inputs.results(mutant.functions), strict=True
        ):
            for symbol, value in right.items():
                if not np.array_equal(value, wrong[symbol], equal_nan=True):
                    return ""
    except (ArithmeticError, ValueError, TypeError):
        return ""
    count = sum(columns.elements.size for columns in inputs.columns)
    return f"{_reason(mutant)}: same bits on {count} random inputs of the domain"


def _reason(mutant: Mutant) -> str:
    if "computed before" in mutant.sentence:
        return "neither line reads what the other assigns"
    if "and its old value" in mutant.sentence:
        return "it never falls" if "maximum" in mutant.sentence else "it never grows"
    if "np.sign(np.sign(" in mutant.edit:
        return "the sign of a sign is that sign"
    if "np.abs(" in mutant.edit:
        return "the argument of abs is never negative"
    return "equal wherever the rule can come"


def _same_runs(optimizer: Optimizer, mutant: Mutant, seed: int) -> str:
    """Evidence that a wrong driver is none for this rule, or nothing.

    The numbers are small and dyadic, so that sums are exact in whatever order.
    """
    rng = np.random.default_rng([seed, 2])
    for _ in range(RANDOM_DRIVES):
        program = _random_program(rng)
        right = replace(optimizer, **program.hyperparameters)
        taken = mutant.program(program)
        wrong = replace(mutant.optimizer, **taken.hyperparameters)
        runs = (
            simulate(right, program, FLOAT64).snapshots,
            simulate(wrong, taken, FLOAT64, mutant.resumed).snapshots,
        )
        for a, b in zip(*runs, strict=True):
            if a.state.iterations != b.state.iterations:
                return ""
            pairs = [*zip(a.weights, b.weights, strict=True)]
            for own, other in zip(a.state.slots, b.state.slots, strict=True):
                pairs += [(own[name], other[name]) for name in own]
            if not all(np.array_equal(x, y, equal_nan=True) for x, y in pairs):
                return ""
    linear = "step of its own" in mutant.sentence and not optimizer.rule.slots
    why = (
        "the rule is linear in the gradient and keeps nothing"
        if linear
        else "it makes no difference to this rule"
        if "zero" not in mutant.sentence and "row" not in mutant.sentence
        else "the rule changes nothing on a zero gradient"
    )
    return f"{why}: same bits in {RANDOM_DRIVES} random runs"


def _random_program(rng: np.random.Generator) -> Program:
    """Rows with duplicates and without any, no gradients, a schedule, a resume."""
    steps = 6

    def numbers(*shape: int) -> np.ndarray:
        return rng.integers(-8, 9, shape) * 2.0**-3

    def dense(step: int) -> Any:
        return None if rng.random() < 0.3 and step else numbers(5)

    def rows(step: int) -> Any:
        count = int(rng.integers(0, 6))
        return IndexedSlices(numbers(count, 2), rng.integers(0, 4, count))

    parts = [
        Part("dense", "", numbers(5), tuple(map(dense, range(steps)))),
        Part("rows", "", numbers(4, 2), tuple(map(rows, range(steps)))),
    ]
    weights = tuple(Weight((part,)) for part in parts)
    rates = PiecewiseConstantDecay([1, 3], [2.0**-3, 0.5, 2.0**-4])
    given = {"learning_rate": rates if rng.random() < 0.5 else 2.0**-2}
    changes = {} if callable(given["learning_rate"]) else {4: 2.0**-1}
    return Program("random", "", weights, steps, given, changes, resume_before=3)
