"""What is wrong with an implementation: the edit of the rule that does what it did."""

from __future__ import annotations

import ast
import copy
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from ..gradients import IndexedSlices
from ..optimizer import Optimizer
from .convention import Convention
from .driver_faults import FEW_ROWS, clipping_mutants, driver_mutants
from .evidence import SIEVE, Evidence, collect
from .judge import Recording, Score, _Judge, compare
from .lookalikes import UNKNOWN, Open, lookalikes, unknowns
from .mutants import (
    CANNOT_RUN,
    Functions,
    Mutant,
    edits,
    mutant,
    pairs,
    renames,
    rule_mutants,
)
from .port import Setting
from .rounding import SLACK, Bounded, Platform
from .scenarios import Weight

Runs = Sequence[tuple[Recording, Optimizer]]

ENOUGH = 5
"""Explanations that are worth showing."""

SECONDS = 8.0
"""Processor time of a thorough search."""


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
    seconds: float = SECONDS,
) -> list[Explanation]:
    """Explanations of a failing implementation, best first; empty where none fits.

    Named conventions and options come first, then single edits, faults of the driver,
    names read differently everywhere, numbers to be found, several edits, and faults of
    the driver together with an edit. One kind that explains everything ends the search;
    so does the time.

    Args:
        runs: what it did, with the rule under the hyperparameters of each run.
        convention: the one under which it comes closest.
        setting, platform: how it ran.
        kinds: the kinds of gradient that fail.
        seconds: processor time that the search may take.
    """
    search = _Search(
        runs, convention, setting, platform, kinds, time.process_time() + seconds
    )
    nearly: list[tuple[int, Explanation]] = []
    for tier in search.tiers():
        found = search.fitting(tier)
        exact = [explanation for left, explanation in found if not left]
        if exact:
            return exact
        if found and not nearly:
            search.deadline = min(search.deadline, time.process_time() + seconds / 4)
        nearly += found
    if nearly:
        nearly.sort(key=lambda item: item[0])
        return [explanation for _, explanation in nearly[:ENOUGH]]
    return search.in_part()


NEARLY = 0.01
"""The part of what is wrong that an explanation may leave: faults lose accuracy too."""


FEW = 0.1
"""The part of the elements that may be NaN by rounding alone."""

EVERY_ELEMENT = 1e6
"""A wrong count of steps weighs more than any elements."""


class _TooMany(Exception):
    """More elements are wrong than are worth counting."""


class _Count(_Judge):
    """Counts the elements beyond the bound."""

    wanted: frozenset[str] = frozenset()
    most = np.inf
    beyond = 0.0
    nan_may_come = False
    excused = elements = 0

    def scores(self, to_the_end: bool) -> dict[str, Score]:
        scores = super().scores(to_the_end)
        for score in scores.values():
            if score.failure and score.failure.slot == "iterations":
                self.add(EVERY_ELEMENT)
        if self.excused > FEW * self.elements:
            self.add(EVERY_ELEMENT)
        return scores

    def add(self, count: float) -> None:
        self.beyond += count
        if self.beyond > self.most:
            raise _TooMany

    def _elements(
        self,
        score: Score,
        slot: str,
        due: Bounded,
        came: np.ndarray,
        failure: Any,
        **where: Any,
    ) -> None:
        weight = where.get("weight")
        if weight is not None and weight.kind not in self.wanted:
            return
        if came.shape != due.shape:
            self.add(EVERY_ELEMENT)
            return
        ratio, _ = compare(due, came)
        beyond = ratio > SLACK
        if self.nan_may_come:
            unbounded = ~np.isfinite(np.broadcast_to(due.bound, due.shape))
            excused = beyond & unbounded & (np.isnan(came) | np.isnan(due.value))
            self.excused += int(np.count_nonzero(excused))
            self.elements += came.size
            beyond &= ~excused
        self.add(int(np.count_nonzero(beyond)))


@dataclass
class _Search:
    runs: Runs
    convention: Convention
    setting: Setting
    platform: Platform
    kinds: set[str]
    deadline: float
    seen: set[bytes] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.optimizer = self.runs[0][1]
        self.evidence = self.collected(self.runs)
        self.nan_came = self.evidence.nan_came
        self.wrong = self.evidence.mismatch()
        self.most = NEARLY * sum(self.wrong.values())
        right = Mutant("", 0, "", self.optimizer)
        failing = [self.left_over(right, np.inf, [run]) for run in self.runs]
        self.failing = sum(failing)
        kinds, self.kinds = self.kinds, {"dense"}
        rows_only = not self.left_over(right, np.inf, self.runs)
        self.in_rows_alone = kinds == {"sparse"} and rows_only
        self.kinds = kinds
        order = np.argsort([-count for count in failing], kind="stable")
        self.all_runs = [self.runs[i] for i in order]
        self.runs = [(_cut(run, kinds), right) for run, right in self.all_runs]

    def collected(self, runs: Runs) -> Evidence:
        return collect(runs, self.convention, self.setting, self.platform, self.kinds)

    @property
    def late(self) -> bool:
        return time.process_time() > self.deadline

    def tiers(self) -> Iterator[Iterable[Mutant]]:
        """Versions to try, the likeliest first; one that fits ends the search."""
        optimizer = self.optimizer
        counting, around = self.drivers()
        yield _options(optimizer)
        if not any(self.wrong.values()) or self.in_rows_alone:
            yield [*counting, *around]
            around = []
        yield lookalikes(optimizer)
        yield rule_mutants(optimizer)
        yield counting
        yield renames(optimizer)
        yield self.found_numbers(self.evidence, unknowns(optimizer))
        yield around
        yield self.several()
        for line in _suspect_lines(optimizer, self.wrong):
            yield pairs(optimizer, line)
        yield self.mixed(driver_mutants(optimizer))
        yield self.edited_lookalikes()

    def drivers(self) -> tuple[list[Mutant], list[Mutant]]:
        """What can be wrong with the count of steps, and around the rule."""
        optimizer = self.optimizer
        limits = (optimizer.clipvalue, optimizer.clipnorm, optimizer.global_clipnorm)
        clips = any(limit is not None for limit in limits)
        found = [*(clipping_mutants(optimizer) if clips else ())]
        found += driver_mutants(optimizer)
        if "sparse" not in self.kinds:
            words = ("row", "sparse")
            found = [m for m in found if not any(w in m.sentence for w in words)]
        parameters = {n for rule in optimizer.variants for n in rule.parameters}
        if optimizer.shared:
            parameters |= {*optimizer.shared.parameters}
        found = [m for m in found if m.needs <= parameters]
        counting = [m for m in found if m.sentence.startswith(STATE)]
        return counting, [m for m in found if m not in counting]

    def fitting(self, tier: Iterable[Mutant]) -> list[tuple[int, Explanation]]:
        """The versions of a tier that do what the implementation did.

        Each with how many elements it leaves unexplained.
        """
        found: list[tuple[int, Explanation]] = []
        for version in tier:
            if self.late:
                break
            if _by_rule(version):
                if not self.evidence.fits(version.functions, self.most):
                    continue
                if self.nan_came and not self.evidence.gives_nan(version.functions):
                    continue
                print_ = self.evidence.fingerprint(version.functions)
                if print_ in self.seen:
                    continue
                self.seen.add(print_)
            most = NEARLY * self.failing
            left = self.left_over(version, most)
            if left <= most:
                what = f"all but {left:.0f} of {self.failing:.0f} elements"
                reproduces = what if left else "everything"
                found.append((int(left), _explained(version, reproduces)))
                if sum(not left for left, _ in found) == ENOUGH:
                    break
        return sorted(found, key=lambda one: (one[0], _far_fetched(one[1].sentence)))

    def left_over(
        self, version: Mutant, most: float, runs: Runs | None = None
    ) -> float:
        """How many elements a version does not reproduce, at least if over ``most``."""
        total = 0.0
        whole = version.whole or self.optimizer.global_clipnorm is not None
        for recording, right in runs or (self.all_runs if whole else self.runs):
            if version.few_rows:
                recording = _cut(recording, self.kinds, most_rows=FEW_ROWS)
            for part, wrong in _as_taken(version, recording, right):
                count = _Count(
                    part, wrong, self.convention, self.setting, self.platform
                )
                count.wanted = frozenset(self.kinds)
                count.most = most - total
                count.nan_may_come = version.line > 0 and self.nan_came
                try:
                    count.scores(to_the_end=True)
                except _TooMany:
                    return np.inf
                except CANNOT_RUN:
                    return np.inf
                total += count.beyond
        return total

    def found_numbers(
        self, evidence: Evidence, candidates: Iterable[Open]
    ) -> Iterator[Mutant]:
        """Versions with the number that fits best what came."""
        for candidate in candidates:
            for value in _solved(evidence, candidate):
                version = candidate.settled(value)
                if evidence.fits(version.functions, self.most):
                    yield version
                    break

    def several(self) -> Iterator[Mutant]:
        """An edit for each slot that is wrong, in different lines."""
        wrong = [symbol for symbol, part in self.wrong.items() if part]
        rule = self.optimizer.rule
        if len(wrong) < 2 or self.evidence.hidden:
            return
        candidates = [
            version
            for version in (
                *lookalikes(self.optimizer),
                *rule_mutants(self.optimizer),
                *(
                    open_.settled(value)
                    for open_ in unknowns(self.optimizer)
                    for value in _solved(self.evidence, open_, limit=3)
                ),
            )
            if rule.function.__name__ in version.functions and version.line
        ]
        mending: dict[str, list[Mutant]] = {symbol: [] for symbol in wrong}
        for version in candidates:
            if self.late:
                return
            left = _mismatch(self.evidence, version.functions)
            for symbol in wrong:
                if left.get(symbol) == 0 and symbol in _assigned(version):
                    mending[symbol].append(version)
        yield from self.combined(wrong, mending)

    def combined(
        self, wrong: list[str], mending: dict[str, list[Mutant]]
    ) -> Iterator[Mutant]:
        rule = self.optimizer.rule
        chains: list[list[Mutant]] = [[]]
        for symbol in wrong:
            if mending[symbol]:
                chains = [
                    [*chain, version]
                    for chain in chains
                    for version in mending[symbol][:ENOUGH]
                ]
        for chain in chains:
            tree = _merged([version for version in chain])
            if tree is None:
                continue
            if len(chain) > 1:
                sentence = "; and ".join(version.sentence for version in chain)
                yield mutant(self.optimizer, rule, chain[0].line, sentence, tree)
            left = [s for s in wrong if not mending[s]]
            if not left or not chain:
                continue
            for line in _suspect_lines(self.optimizer, dict.fromkeys(left, 1.0)):
                for at, sentence, more in edits(rule, tree=tree, only_line=line):
                    first = "; and ".join(version.sentence for version in chain)
                    whole = f"{first}; and {sentence}, line {at}"
                    yield mutant(self.optimizer, rule, chain[0].line, whole, more)

    def edited_lookalikes(self) -> Iterator[Mutant]:
        """Another convention, and one edit."""
        for form in lookalikes(self.optimizer):
            if "too much" in form.sentence:
                continue
            for name, rule in form.functions.items():
                assert form.tree is not None
                for line, sentence, tree in edits(rule, tree=form.tree, likely=True):
                    if self.late:
                        return
                    whole = f"{form.sentence}; and {sentence}"
                    right = self.evidence.optimizer
                    original = (
                        next(r for r in right.variants if r.function.__name__ == name)
                        if name != "shared"
                        else right.shared
                    )
                    assert original is not None
                    yield mutant(right, original, line, whole, tree)

    def mixed(self, drivers: list[Mutant]) -> Iterator[Mutant]:
        """A fault of the driver together with an edit of the rule."""
        few = self.all_runs[:1]
        for driver in drivers:
            if driver.functions or driver.resumed or self.late:
                continue
            runs = [
                pair
                for recording, right in few
                for pair in _as_taken(driver, recording, right)
            ]
            try:
                evidence = self.collected(runs)
            except CANNOT_RUN:
                continue
            if not evidence.columns:
                continue
            for version in (*lookalikes(self.optimizer), *rule_mutants(self.optimizer)):
                if self.late:
                    return
                if evidence.fits(version.functions, self.most):
                    sentence = f"{driver.sentence}; and {version.sentence}"
                    both = replace(
                        version,
                        sentence=sentence,
                        driver=driver.driver,
                        program=driver.program,
                        tree=None,
                    )
                    yield both

    def in_part(self) -> list[Explanation]:
        """Edits that mend at least one slot that is wrong, most slots first."""
        slots = {s: v.name for r in self.optimizer.variants for s, v in r.slots.items()}
        if self.optimizer.shared:
            slots |= {s: v.name for s, v in self.optimizer.shared.slots.items()}
        found: list[tuple[int, int, Explanation]] = []
        for version in (*lookalikes(self.optimizer), *rule_mutants(self.optimizer)):
            left = _mismatch(self.evidence, version.functions)
            mended = [
                s for s, part in self.wrong.items() if part and not left.get(s, 1)
            ]
            if mended and not any(n > self.wrong[s] for s, n in left.items()):
                names = ["weight" if s == "w" else slots[s] for s in mended]
                rest = sum(left.values())
                explanation = _explained(version, ", ".join(names))
                found.append((-len(mended), rest, explanation))
        found.sort(key=lambda item: item[:2])
        return [explanation for *_, explanation in found[:ENOUGH]]


def _cut(recording: Recording, kinds: set[str], most_rows: float = np.inf) -> Recording:
    """The weights with gradients of some kinds alone, and not too many rows."""
    program = recording.program

    def rows(weight: Weight) -> int:
        gradients = [g for part in weight.parts for g in part.gradients]
        return max(
            np.size(g.indices) if isinstance(g, IndexedSlices) else 0 for g in gradients
        )

    kept = [
        i
        for i, weight in enumerate(program.weights)
        if weight.kind in kinds and rows(weight) <= most_rows
    ]

    def chosen(items: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(items[i] for i in kept)

    snapshots = [
        replace(
            snapshot,
            weights=list(chosen(snapshot.weights)),
            state=replace(snapshot.state, slots=chosen(snapshot.state.slots)),
        )
        for snapshot in recording.snapshots
    ]
    program = replace(program, weights=chosen(program.weights))
    return replace(recording, program=program, snapshots=snapshots)


STATE = ("t ", "the step count", "the slot")


def _far_fetched(sentence: str) -> int:
    """Of explanations that fit alike, people mean the plainer one."""
    if "is missing" in sentence or not re.search("instead of|too much", sentence):
        return 0
    strange = re.match(r"`(epsilon|.*(sign|abs|sqrt)\(.*|.*\*\* 2)` instead", sentence)
    return 2 if strange else 1


def _by_rule(version: Mutant) -> bool:
    """Whether the fault is in the rules alone, so that single calls show it."""
    return bool(version.functions) and version.tree is not None


def _as_taken(
    version: Mutant, recording: Recording, right: Optimizer
) -> Iterator[tuple[Recording, Optimizer]]:
    """A run as the version takes it; in two parts where its resume goes wrong."""
    program = version.program(recording.program)
    given = {n: getattr(right, n) for n in program.hyperparameters}
    if program is not recording.program:
        given = dict(program.hyperparameters)
    wrong = replace(version.optimizer, **given)
    recording = replace(recording, program=program)
    place = program.resume_before
    if version.resumed is None or place is None:
        yield recording, wrong
        return
    snapshots = recording.snapshots
    first = replace(program, steps=place)
    yield replace(recording, program=first, snapshots=snapshots[: place + 1]), wrong
    weights = tuple(
        replace(
            weight,
            parts=tuple(
                replace(p, gradients=p.gradients[place:]) for p in weight.parts
            ),
        )
        for weight in program.weights
    )
    rest = replace(program, steps=program.steps - place, weights=weights)
    wrong, state = version.resumed(wrong, snapshots[place].state)
    start = replace(snapshots[place], state=state)
    yield (
        replace(recording, program=rest, snapshots=[start, *snapshots[place + 1 :]]),
        wrong,
    )


def _options(optimizer: Optimizer) -> Iterator[Mutant]:
    """The same class under other options."""
    cls = type(optimizer)
    present = {f.name: getattr(optimizer, f.name) for f in fields(optimizer)}
    for f in fields(optimizer):
        if isinstance(f.default, bool):
            other = not present[f.name]
            sentence = f"it behaves as with {f.name}={other}"
            yield Mutant(sentence, 0, "", cls(**{**present, f.name: other}))


def _suspect_lines(optimizer: Optimizer, wrong: Mapping[str, float]) -> list[int]:
    """The lines of the rule that assign what is wrong, slots before the weight."""
    symbols = [s for s in (*optimizer.rule.slots, "w") if wrong.get(s)]
    lines = optimizer.rule.source.split("):\n", 1)[-1].splitlines()
    return [
        number
        for symbol in symbols[:1]
        for number, line in enumerate(lines, 1)
        if line.strip().startswith(f"{symbol} = ")
    ]


def _mismatch(evidence: Evidence, functions: Functions) -> dict[str, int]:
    try:
        return evidence.mismatch(functions)
    except CANNOT_RUN:
        return {}


def _assigned(version: Mutant) -> set[str]:
    """The names that the edited line assigns."""
    return {part.split(" = ")[0].strip() for part in version.edit.split(";")}


def _merged(versions: list[Mutant]) -> Any:
    """One function with the edited line of each, or nothing where they collide."""
    trees = [version.tree for version in versions if version.tree is not None]
    if not trees or len({len(tree.body) for tree in trees}) > 1:
        return None
    merged = copy.copy(trees[0])
    merged.body = [*merged.body]
    for version, tree in zip(versions[1:], trees[1:], strict=True):
        place = version.line - 1
        merged.body[place] = tree.body[place]
    return merged if ast.unparse(merged) else None


def _solved(evidence: Evidence, candidate: Open, limit: int = 10) -> Iterator[float]:
    """Values of the number, simplest first, by secants on the columns that show most.

    Each column gives its own estimate; the weighted median of those takes part in the
    next step, so that a few that another fault disturbs do no harm.
    """
    came, bound = _came(evidence)

    def evaluate(number: float) -> Any:
        return _stacked(evidence, candidate, number)

    def far(number: float) -> float:
        results = evaluate(number)
        if results is None:
            return np.inf
        with np.errstate(all="ignore"):
            off = np.abs(results - came) / (bound + 2.0**-24 * np.abs(came))
        return float(np.count_nonzero(off > SIEVE))

    starts = candidate.starts
    if len(starts) > 2:
        starts = (min(starts, key=far),)
        yield starts[0]
    present = starts[0]
    previous = starts[1] if len(starts) > 1 else 0.9 * present or 0.01
    if previous == present:
        yield present
        return
    before = evaluate(previous)
    for _ in range(limit):
        after = evaluate(present)
        if before is None or after is None:
            return
        with np.errstate(all="ignore"):
            change = after - before
            estimates = present + (came - after) * (present - previous) / change
            weight = np.abs(change) / bound
            usable = np.isfinite(estimates) & np.isfinite(weight) & (weight > SHOWS)
        if not usable.any():
            break
        order = np.argsort(weight[usable])[-MOST_TELLING:]
        best = float(np.median(estimates[usable][order]))
        if best == present or abs(best - present) <= 1e-12 * abs(best):
            break
        before, previous, present = after, present, best
    for digits in (1, 2, 3, 4, 6, 9):
        yield float(f"{present:.{digits}g}")


SHOWS, MOST_TELLING = 100.0, 51
"""A column tells something about a number if it moves a hundred bounds with it."""


def _stacked(evidence: Evidence, candidate: Open, value: float) -> Any:
    for columns in evidence.columns:
        columns.given[UNKNOWN] = value
    try:
        return np.concatenate(
            [
                np.ravel(np.broadcast_to(results[symbol], columns.came[symbol].shape))
                for columns, results in zip(
                    evidence.columns,
                    evidence.results(candidate.mutant.functions),
                    strict=True,
                )
                for symbol in columns.came
            ]
        )
    except CANNOT_RUN:
        return None


def _came(evidence: Evidence) -> tuple[np.ndarray, np.ndarray]:
    came = [np.ravel(c.came[symbol]) for c in evidence.columns for symbol in c.came]
    bound = [np.ravel(c.bound[symbol]) for c in evidence.columns for symbol in c.came]
    return np.concatenate(came), np.concatenate(bound)


def _explained(version: Mutant, reproduces: str) -> Explanation:
    return Explanation(version.sentence, version.line, version.edit, reproduces)
