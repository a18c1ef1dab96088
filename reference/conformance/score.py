"""The mutation score: how many wrong versions of a rule the scenarios tell from it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ..gradients import IndexedSlices
from ..optimizer import Optimizer, State
from ..rule import Rule, SharedRule
from ..schedules import PiecewiseConstantDecay
from .convention import ideal
from .driver_faults import clipping_mutants, driver_mutants
from .evidence import Evidence, collect
from .judge import Recording, _Judge, compare, judge
from .mutants import CANNOT_RUN, Mutant, functions_of, rule_mutants
from .port import Setting, Snapshot
from .rounding import FLOAT32, FLOAT64, IEEE, SLACK
from .scenarios import Part, Program, Weight, programs
from .simulate import simulate

RANDOM_RUNS = 48
RANDOM_ELEMENTS = 32
RANDOM_STEPS = 4
ZEROS = 0.1
ENDS = 0.1
"""The parts of random gradients that are zero, and of random hyperparameters that are
at an end of their domain."""
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

    A mutant counts as killed if any example of the class tells it: of those that use
    the rule it is made from, or of all where the driver is wrong, which is the same
    around every rule.
    """
    total = Score()
    examples = [cls(**options) for options in cls.examples]
    _score_rules(total, examples, seed, progress)
    progress(f"{cls.__name__}, around its rules")
    widest = sorted(examples, key=lambda one: -len(one.rule.slots))
    _score_drivers(total, widest, driver_mutants, seed)
    for limit in ("clipvalue", "clipnorm", "global_clipnorm"):
        progress(f"{cls.__name__}, with {limit}")
        clipping = [one.replaced(**{limit: CLIP_AT}) for one in examples]
        _score_drivers(total, clipping, clipping_mutants, seed)
    return total


def _shown(mutant: Mutant) -> str:
    return f"line {mutant.line}: {mutant.edit}" if mutant.line else mutant.sentence


def _score_rules(
    total: Score, examples: list[Optimizer], seed: int, progress: Callable[[str], None]
) -> None:
    setting = Setting(FLOAT32)
    seen = []
    for optimizer in examples:
        runs = []
        for program in programs(optimizer, setting, seed):
            given = replace(optimizer, **program.hyperparameters)
            runs.append((simulate(given, program, FLOAT32), given))
        seen.append((runs, collect(runs, ideal(FLOAT32), setting, IEEE)))
    done: set[Rule | SharedRule] = set()
    for optimizer in examples:
        new = {n: r for n, r in functions_of(optimizer).items() if r not in done}
        if not new:
            continue
        done |= {*new.values()}
        progress(f"{type(optimizer).__name__}, {', '.join(new)}")
        reachable = _random_inputs(optimizer, seed)
        for mutant in rule_mutants(optimizer):
            if not mutant.functions.keys() <= new.keys():
                continue
            killers: set[str] = set()
            for other, (runs, evidence) in zip(examples, seen, strict=True):
                rules = functions_of(other)
                if any(rules.get(name) is not new[name] for name in mutant.functions):
                    continue
                for position, weight, part in evidence.tells(mutant.functions):
                    program = runs[position][0].program
                    name = program.weights[weight].parts[part].name
                    killers.add(f"{program.name}: {name}")
            if not total.add(killers):
                if same := _same(mutant, reachable):
                    total.equivalent.append((mutant, same))
                else:
                    total.surviving.append(mutant)


def _score_drivers(
    total: Score,
    examples: list[Optimizer],
    mutants: Callable[[Optimizer], list[Mutant]],
    seed: int,
) -> None:
    """Where the first example does not tell a mutant, another one may."""
    setting = Setting(FLOAT32)
    killers: dict[str, set[str]] = {}
    untold: dict[str, list[tuple[Optimizer, Mutant]]] = {}
    for optimizer in examples:
        wrong = [m for m in mutants(optimizer) if m.needs <= _reads(optimizer)]
        wrong = [m for m in wrong if not killers.get(m.sentence)]
        if not wrong:
            continue
        runs = []
        for program in programs(optimizer, setting, seed):
            right = replace(optimizer, **program.hyperparameters)
            runs.append((program, right, _free_run(right, program, setting)))
        for mutant in wrong:
            told = _tellers(mutant, runs, setting)
            killers[mutant.sentence] = told
            untold.setdefault(mutant.sentence, []).append((optimizer, mutant))
    for sentence, told in killers.items():
        if not total.add(told):
            evidence = [_same_runs(o, mutant, seed) for o, mutant in untold[sentence]]
            mutant = untold[sentence][0][1]
            if all(evidence):
                total.equivalent.append((mutant, evidence[0]))
            else:
                total.surviving.append(mutant)


def _reads(optimizer: Optimizer) -> set[str]:
    functions = functions_of(optimizer).values()
    return {name for rule in functions for name in rule.parameters}


def _tellers(
    mutant: Mutant, runs: list[tuple[Program, Optimizer, Due]], setting: Setting
) -> set[str]:
    """Two of the programs that tell a mutant, or as many as there are."""
    told: set[str] = set()
    for program, _, due in runs:
        if len(told) < 2 and _leaves(mutant, program, due, setting):
            told.add(program.name)
    for program, right, _ in runs:
        if not told and _told_step_by_step(mutant, program, right, setting):
            told.add(program.name)
    return told


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
    except CANNOT_RUN:
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
        shapes = [(RANDOM_ELEMENTS // 4,), (4, 2), (2, 4), (2, 3, 2), (2, 3, 2, 2)]
    for _ in range(RANDOM_RUNS):
        chosen: dict[str, Any] = _random_hyperparameters(optimizer, rng)
        random = replace(optimizer, **chosen)
        weights = []
        for shape in shapes:
            size = (RANDOM_STEPS, *shape)
            gradients = rng.normal(size=size) * 10.0 ** rng.uniform(-3, 2, size)
            gradients *= rng.random(size) > ZEROS
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
        domain = f.metadata["domain"]
        low, high = (float(end) for end in domain[1:-1].split(","))
        ends = [low] * (domain[0] == "[") + [high] * (domain[-1] == "]")
        if ends and rng.random() < ENDS:
            chosen[f.name] = float(rng.choice(ends))
        elif np.isinf(high):
            chosen[f.name] = float(max(low, 0.0) + 10.0 ** rng.uniform(-4, 0))
        elif np.isinf(low):
            chosen[f.name] = float(rng.uniform(-1, high))
        else:
            chosen[f.name] = float(rng.uniform(low, high))
    return chosen


def _same(mutant: Mutant, inputs: Evidence) -> str:
    """Evidence that a mutant of the rule is the rule, or nothing.

    Inputs on which the rule gives no numbers count for nothing.
    """
    bits = True
    try:
        results = zip(
            inputs.columns,
            inputs.results(),
            inputs.results(mutant.functions),
            strict=True,
        )
        for columns, right, wrong in results:
            numbers = [np.isfinite(value) for value in right.values()]
            elementwise = inputs.optimizer.elementwise
            if not elementwise and not all(map(np.all, numbers)):
                continue
            valid = np.logical_and.reduce(numbers) if elementwise else ...
            for symbol, value in right.items():
                shape = np.shape(value)
                other = np.broadcast_to(wrong[symbol], shape)[valid]
                if np.array_equal(value[valid], other):
                    continue
                bits = False
                limit = np.broadcast_to(columns.bound[symbol], shape)[valid]
                with np.errstate(all="ignore"):
                    error = np.abs(other - value[valid])
                if not np.all(error <= (SLACK + 1) * limit):
                    return ""
    except CANNOT_RUN:
        return ""
    count = sum(columns.elements.size for columns in inputs.columns)
    same = "same bits" if bits else "no more than float64's rounding apart"
    return f"{_reason(mutant)}: {same} on {count} random inputs of the domain"


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
        if not all(_equal(a, b) for a, b in zip(*runs, strict=True)):
            return ""
    return f"{_why(optimizer, mutant, seed)}: same bits in {RANDOM_DRIVES} random runs"


def _equal(a: Snapshot, b: Snapshot) -> bool:
    pairs = [*zip(a.weights, b.weights, strict=True)]
    for own, other in zip(a.state.slots, b.state.slots, strict=True):
        pairs += [(own[name], other[name]) for name in own]
    same = all(np.array_equal(x, y, equal_nan=True) for x, y in pairs)
    return same and a.state.iterations == b.state.iterations


def _why(optimizer: Optimizer, mutant: Mutant, seed: int) -> str:
    said = mutant.sentence
    if "step of its own" in said and not optimizer.rule.slots:
        return "the rule is linear in the gradient and keeps nothing"
    if "not a number" in said or "infinite" in said:
        return (
            "the rule decides nothing beyond numbers, after an overflow or a maximum "
            "of NaN"
        )
    if ("clipped" in said or "averaged" in said) and _sees_signs_only(optimizer, seed):
        return "the rule sees the signs of the gradient only"
    if _rests_on_zeros(optimizer, seed) and re.search("zero|row|empty", said):
        return "the rule changes nothing on a zero gradient"
    return "it makes no difference to this rule"


def _one_step(optimizer: Optimizer, w: np.ndarray, g: np.ndarray) -> Snapshot:
    weights, state = optimizer.run([w], [[g]])
    return Snapshot([*weights], state)


def _sees_signs_only(optimizer: Optimizer, seed: int) -> bool:
    rng = np.random.default_rng([seed, 3])
    w, g, factor = rng.normal(size=(3, 32))
    steps = [_one_step(optimizer, w, g * x) for x in (1.0, np.abs(factor))]
    return _equal(*steps)


def _rests_on_zeros(optimizer: Optimizer, seed: int) -> bool:
    w = np.random.default_rng([seed, 3]).normal(size=32)
    after = _one_step(optimizer, w, np.zeros(32))
    before = optimizer.init([w])
    return np.array_equal(after.weights[0], w) and all(
        np.array_equal(after.state.slots[0][name], slot)
        for name, slot in before.slots[0].items()
    )


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
