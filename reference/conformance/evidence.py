"""What a recording shows, call by call of the rule, so that many rules can be tried.

Every call of the rule in every locked step is kept: the names that the rule may read,
what it gave, what came, and the bound. The calls of an elementwise rule are laid end to
end, so that one evaluation judges them all and a mutant costs a fraction of a
millisecond; a rule with norms or matrices is tried call by call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..gradients import IndexedSlices
from ..optimizer import Optimizer
from ..rule import Rule, SharedRule
from ..sparse import TOUCHED
from .convention import Convention
from .judge import Recording, _Judge
from .mutants import CANNOT_RUN, Functions, redefined, with_rules
from .port import Setting
from .rounding import SLACK, Bounded, Format, Platform

SIEVE = 64.0
"""How many bounds of the right rule a wrong one may be off and still be looked at: it
may lose more than the right one."""


Place = tuple[int, int, int]
"""A recording, a weight of it, and a part of that."""


@dataclass(frozen=True)
class Columns:
    """Calls of the rule, laid end to end; one call where the rule is not elementwise.

    Attributes:
        rule: the right one.
        given: the names that the rules may read, as they were before the step.
        due: what the right version left in the state, by symbol.
        bound: how far a correct implementation may be from it; NaN where that is not
            decided, or where the result of the rule is not kept.
        allowed: how far a wrong version may be from what came and still be looked at.
        came: what the implementation left; NaN where it cannot be seen.
        beside: what the driver adds to the result of the rule.
        kept: where the result of the rule is kept.
        shown: where the implementation lets it be seen.
        where: for each column the recording, step, weight and part.
        elements: for each column the element of its weight, over all weights.
    """

    rule: Rule
    given: dict[str, Any]
    due: dict[str, np.ndarray]
    bound: dict[str, np.ndarray]
    allowed: dict[str, np.ndarray]
    came: dict[str, np.ndarray]
    beside: dict[str, Any]
    kept: dict[str, np.ndarray]
    shown: dict[str, np.ndarray]
    where: np.ndarray
    elements: np.ndarray

    @cached_property
    def _numbered(self) -> tuple[np.ndarray, np.ndarray]:
        return np.unique(self.where[[0, 2, 3]], axis=1, return_inverse=True)

    @cached_property
    def places(self) -> list[Place]:
        """The recordings, weights and parts that occur."""
        return [(int(a), int(b), int(c)) for a, b, c in self._numbered[0].T]

    @cached_property
    def place(self) -> np.ndarray:
        """For each column the position of its place among ``places``."""
        return np.ravel(self._numbered[1])

    def evaluate(
        self,
        optimizer: Optimizer,
        functions: Functions,
        hidden: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """What a version of the rules gives, by symbol, shared symbols among them."""
        named = {**self.given, **(hidden or {})}
        results = {}
        with np.errstate(all="ignore"):
            if optimizer.shared:
                made = functions.get("shared", optimizer.shared)(**named)
                named |= made
                results = {symbol: made[symbol] for symbol in optimizer.shared.slots}
            name = self.rule.function.__name__
            results |= functions.get(name, self.rule)(**named)
            for symbol, more in self.beside.items():
                results[symbol] = results[symbol] + more
        return results


@dataclass(frozen=True)
class Evidence:
    """All calls of the rule in some recordings.

    Attributes:
        optimizer: the right version.
        columns: the calls, in the order of time.
        hidden: symbols of slots that the implementation does not show; a version is
            judged by what its own values for them do to the rest.
    """

    optimizer: Optimizer
    columns: list[Columns]
    hidden: frozenset[str] = frozenset()

    def results(self, functions: Functions | None = None) -> Iterator[dict[str, Any]]:
        """What a version of the rules gives on each of the columns.

        Raises:
            one of ``CANNOT_RUN``: the version cannot be evaluated.
        """
        functions = functions or {}
        carried: dict[int, dict[str, np.ndarray]] = {}
        for columns in self.columns:
            if not self.hidden:
                yield columns.evaluate(self.optimizer, functions)
                continue
            own = carried.setdefault(int(columns.where[0, 0]), {})
            place = columns.elements
            for symbol in self.hidden:
                if symbol not in own:
                    size = max(int(c.elements.max(initial=0)) for c in self.columns)
                    own[symbol] = np.full(size + 1, np.nan)
                unset = np.isnan(own[symbol][place])
                start = np.broadcast_to(columns.given[symbol], place.shape)
                own[symbol][place[unset]] = start[unset]
            hidden = {symbol: own[symbol][place] for symbol in self.hidden}
            results = columns.evaluate(self.optimizer, functions, hidden)
            for symbol in self.hidden:
                new = np.broadcast_to(results[symbol], place.shape)
                kept = np.broadcast_to(columns.kept[symbol], place.shape)
                own[symbol][place[kept]] = new[kept]
            yield results

    def tells(self, functions: Functions) -> set[Place]:
        """The recording, weight and part of calls that tell a version from the rule.

        Where calls are judged one by one, two are enough.
        """
        found: set[Place] = set()
        try:
            for columns, results in zip(
                self.columns, self.results(functions), strict=True
            ):
                told = np.zeros(columns.where.shape[1], bool)
                for symbol, due in columns.due.items():
                    with np.errstate(all="ignore"):
                        error = np.abs(results[symbol] - due)
                        beyond = ~(error <= (SLACK + 1) * columns.bound[symbol])
                        beyond &= np.isfinite(columns.bound[symbol]) & np.isfinite(due)
                    told |= beyond if beyond.shape == told.shape else beyond.any()
                found |= {columns.places[i] for i in set(columns.place[told].tolist())}
                if not self.optimizer.elementwise and len(found) > 1:
                    break
        except CANNOT_RUN:
            found.add(self.columns[0].places[0])
        return found

    def mismatch(
        self, functions: Functions | None = None, *, most: float = np.inf
    ) -> dict[str, int]:
        """For each symbol, how many of those that came a version does not reproduce.

        Where there are more than ``most`` altogether, it need not count them all.
        """
        wrong: dict[str, int] = {}
        for columns, results in zip(self.columns, self.results(functions), strict=True):
            for symbol, came in columns.came.items():
                allowed = columns.allowed[symbol]
                bad = _beyond(results[symbol], came, allowed, self.nan_came)
                wrong[symbol] = wrong.get(symbol, 0) + bad
            if sum(wrong.values()) > most:
                break
        return wrong

    def fits(self, functions: Functions, most: float) -> bool:
        """Whether a version does all that came, but for ``most`` elements."""
        try:
            return sum(self.mismatch(functions, most=most).values()) <= most
        except CANNOT_RUN:
            return False

    @cached_property
    def nan_came(self) -> bool:
        """Whether NaN came where the rule gives a number."""
        return any(
            (np.isnan(came) & np.isfinite(columns.due[s]) & columns.shown[s]).any()
            for columns in self.columns
            for s, came in columns.came.items()
        )

    def gives_nan(self, functions: Functions) -> bool:
        """Whether a version gives such a NaN in the arithmetic of float32."""
        for columns in self.columns:
            narrow = {n: np.asarray(x, np.float32) for n, x in columns.given.items()}
            try:
                results = columns.evaluate(self.optimizer, functions, narrow)
            except CANNOT_RUN:
                return False
            for s, came in columns.came.items():
                surprise = np.isnan(came) & np.isfinite(columns.due[s])
                if (np.isnan(results[s]) & surprise & columns.shown[s]).any():
                    return True
        return False

    def fingerprint(self, functions: Functions) -> bytes:
        """The same for versions that give the same."""
        with np.errstate(all="ignore"):
            return b"".join(
                np.asarray(value, np.float32).tobytes()
                for results in self.results(functions)
                for value in results.values()
            )


def _beyond(
    result: Any, came: np.ndarray, allowed: np.ndarray, nan_by_rounding: bool
) -> int:
    """How many are not reproduced; not those that rounding may have made NaN."""
    with np.errstate(all="ignore"):
        error = np.abs(result - came)
        far = ~(error <= allowed) & np.isfinite(allowed)
        both = np.isnan(result) & np.isnan(came) | (result == came)
        seen = np.isfinite(came) | np.isfinite(result)
        if nan_by_rounding:
            seen = ~np.isnan(came) & ~np.isnan(result)
        return int(np.count_nonzero(far & ~both & seen))


_SHARED, _GRADIENT = "shared", "gradient"


@dataclass(frozen=True, eq=False)
class _WatchedRule(Rule):
    log: list[Any] = field(default_factory=list)

    def __call__(self, **named: Any) -> dict[str, Any]:
        result = super().__call__(**named)
        self.log.append((self, named, result))
        return result


@dataclass(frozen=True, eq=False)
class _WatchedShared(SharedRule):
    log: list[Any] = field(default_factory=list)

    def __call__(self, **named: Any) -> dict[str, Any]:
        self.log.append((_SHARED, named, {}))
        return super().__call__(**named)


def _watched(optimizer: Optimizer, log: list[Any]) -> Optimizer:
    """The same optimizer, each call of its rules and each gradient noted in ``log``."""
    shared, base = optimizer.shared, type(optimizer)
    rules: dict[str, Any] = {
        rule.function.__name__: _WatchedRule(
            rule.function, rule.slots, rule.sparse, log
        )
        for rule in optimizer.variants
    }
    if shared:
        rules["shared"] = _WatchedShared(
            shared.function, shared.slots, shared.makes, log
        )

    def summed(self: Optimizer, g: Any, arithmetic: Any) -> Any:
        result = base.summed(self, g, arithmetic)
        log.append((_GRADIENT, result, {}))
        return result

    return redefined(with_rules(optimizer, rules), summed=summed)


def collect(
    runs: Sequence[tuple[Recording, Optimizer]],
    convention: Convention,
    setting: Setting,
    platform: Platform,
    kinds: set[str] | None = None,
) -> Evidence:
    """The calls of the rule in the locked steps of some recordings.

    Args:
        runs: each with the version of the optimizer that ought to have made it.
        convention, setting, platform: where the implementation rounds.
        kinds: leave out weights with gradients of another kind.
    """
    optimizer = runs[0][1]
    hidden = _hidden(optimizer, [recording for recording, _ in runs])
    columns = [
        call
        for position, (recording, given) in enumerate(runs)
        for call in _calls(
            position,
            recording,
            _Judge(recording, given, convention, setting, platform),
            kinds,
            bool(hidden),
        )
    ]
    columns = [call for call in columns if call.where.size]
    if optimizer.elementwise:
        together: dict[Any, list[Columns]] = {}
        for call in columns:
            step = (*call.where[:2, 0],) if hidden else ()
            key = (call.rule.function.__name__, *step)
            together.setdefault(key, []).append(call)
        columns = [_joined(calls) for calls in together.values()]
    return Evidence(optimizer, columns, hidden)


def _hidden(optimizer: Optimizer, recordings: list[Recording]) -> frozenset[str]:
    def seen(name: str) -> bool:
        return any(
            name in slots
            for recording in recordings
            for snapshot in recording.snapshots
            for slots in snapshot.state.slots
        )

    shapes = {w.start.shape for r in recordings for w in r.program.weights}
    return frozenset(
        symbol
        for rule in {optimizer.rule_for(shape) for shape in shapes}
        for symbol, slot in rule.slots.items()
        if not seen(slot.name)
    )


def _calls(
    position: int,
    recording: Recording,
    judge: _Judge,
    kinds: set[str] | None,
    any_hidden: bool,
) -> Iterator[Columns]:
    log: list[Any] = []
    watched = _watched(judge.optimizer, log)
    program, snapshots = recording.program, recording.snapshots
    free = judge._lifted(snapshots[0], None)
    sizes = [weight.start.size for weight in program.weights]
    first_element = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
    for step, after in enumerate(snapshots[1:]):
        if step in program.learning_rates:
            rate = program.learning_rates[step]
            watched = watched.replaced(learning_rate=rate)
        before = judge._lifted(snapshots[step], free)
        log.clear()
        weights, state = judge._advanced(watched, before, step)
        step_log = list(log)
        if any_hidden:
            free = judge._advanced(watched, free, step)
        shared: dict[str, Any] = next(
            (named for what, named, _ in step_log if what is _SHARED), {}
        )
        gradients = [named for what, named, _ in step_log if what is _GRADIENT]
        calls = [entry for entry in step_log if isinstance(entry[0], Rule)]
        present = [i for i, g in enumerate(gradients) if g is not None]
        if (len(gradients), len(calls)) != (len(program.weights), len(present)):
            return  # a driver that does not call the rule once for each weight
        for i, (rule, named, made) in zip(present, calls, strict=True):
            weight = program.weights[i]
            if kinds is not None and weight.kind not in kinds:
                continue
            yield _call(
                watched,
                rule,
                {**named, **shared},
                made,
                gradients[i],
                (weights[i], state.slots[i], state.shared),
                (after.weights[i], after.state.slots[i], after.state.shared),
                (position, step, i),
                [part.start.size for part in weight.parts],
                int(first_element[i]),
                judge.stored,
            )


def _call(
    optimizer: Optimizer,
    rule: Rule,
    named: dict[str, Any],
    made: dict[str, Any],
    gradient: Any,
    due_state: tuple[Any, Any, Any],
    came_state: tuple[Any, Any, Any],
    where: tuple[int, int, int],
    part_sizes: list[int],
    first_element: int,
    stored: Format,
) -> Columns:
    names = {"w": None, **{s: slot.name for s, slot in rule.slots.items()}}
    whole = due_state[0].shape
    rows: Any = ...
    shape = named["g"].shape
    if isinstance(gradient, IndexedSlices) and shape != whole:
        rows = np.asarray(gradient.indices)
    flat = optimizer.elementwise
    given = {
        name: _plain(value, shape if flat else None) for name, value in named.items()
    }
    due: dict[str, np.ndarray] = {}
    bound: dict[str, np.ndarray] = {}
    allowed: dict[str, np.ndarray] = {}
    came: dict[str, np.ndarray] = {}
    beside: dict[str, Any] = {}
    kept: dict[str, np.ndarray] = {}
    shown: dict[str, np.ndarray] = {}

    def add(symbol: str, right: Any, seen: Any, keep: np.ndarray) -> None:
        value = right.value if isinstance(right, Bounded) else np.asarray(right)
        limit = np.broadcast_to(getattr(right, "bound", 0.0), value.shape)
        undecided = np.broadcast_to(
            getattr(right, "branch", False) | getattr(right, "overflow", False),
            value.shape,
        )
        if keep.shape != value.shape:
            keep = np.ones(value.shape, bool)
        seen = np.nan if seen is None else np.asarray(seen, np.float64)
        unseen = np.isnan(seen).all() if np.ndim(seen) == 0 else False
        limit = np.where(undecided | ~keep | unseen, np.nan, limit)
        kept[symbol], shown[symbol] = keep, keep & ~unseen
        due[symbol], bound[symbol] = value.astype(np.float64), limit
        came[symbol] = np.array(np.broadcast_to(seen, value.shape), np.float64)
        with np.errstate(all="ignore"):
            ulp = stored.half_ulp(np.nan_to_num(came[symbol], posinf=0, neginf=0))
            allowed[symbol] = SIEVE * (limit + ulp)

    for symbol, name in names.items():
        right = due_state[0] if name is None else due_state[1][name]
        seen = came_state[0] if name is None else came_state[1].get(name)
        keep = np.ones(right.shape, bool)
        sparse = isinstance(gradient, IndexedSlices)
        if sparse and optimizer.policy.of(symbol) is TOUCHED and keep.ndim:
            keep[:] = False
            keep[np.asarray(gradient.indices)] = True
        if rows is not ... and right.shape[:1] == whole[:1]:
            right, keep = right[rows], keep[rows]
            seen = seen if seen is None else np.asarray(seen)[rows]
        add(symbol, right, seen, keep)
        ruled = np.asarray(_plain(made[symbol], None))
        with np.errstate(all="ignore"):
            more = due[symbol] - ruled.reshape(due[symbol].shape)
            driven = np.isfinite(more) & (np.abs(more) > 2 * bound[symbol])
        if driven.any():
            beside[symbol] = np.where(driven & keep, more, 0.0)
    shared_slots = optimizer.shared.slots if optimizer.shared else {}
    for symbol, slot in shared_slots.items():
        size: tuple[int, ...] = shape if flat else ()
        right = due_state[2][slot.name]
        seen = came_state[2].get(slot.name)
        add(symbol, _spread(right, size), seen, np.ones(size, bool))
    part = np.repeat(np.arange(len(part_sizes)), part_sizes).reshape(whole)
    element = first_element + np.arange(int(np.prod(whole))).reshape(whole)
    if not flat:
        place = np.array([[*where, 0]]).T
        element = element.ravel()
    else:
        part, element = part[rows].ravel(), element[rows].ravel()
        place = np.concatenate([np.repeat([[*where]], part.size, 0).T, [part]])
        for group in (due, bound, allowed, came, kept, shown, beside):
            for symbol in group:
                group[symbol] = np.ravel(group[symbol])
    return Columns(
        rule, given, due, bound, allowed, came, beside, kept, shown, place, element
    )


def _spread(right: Any, shape: tuple[int, ...]) -> Any:
    value = right.value if isinstance(right, Bounded) else np.asarray(right)
    bound = getattr(right, "bound", 0.0)
    rounding: Any = getattr(right, "rounding", None)
    return Bounded(np.broadcast_to(value, shape), bound, rounding)


def _plain(value: Any, shape: tuple[int, ...] | None) -> Any:
    """The numbers without their bound; laid out flat where a shape is given."""
    if isinstance(value, Bounded):
        value = value.value.astype(np.float64)
    if shape is None:
        return value
    return np.broadcast_to(np.asarray(value), shape).ravel()


def _joined(calls: list[Columns]) -> Columns:
    def join(groups: list[dict[str, Any]], fill: list[dict[str, Any]]) -> dict:
        names = dict.fromkeys(name for group in groups for name in group)
        return {
            name: np.concatenate(
                [
                    np.asarray(group[name])
                    if name in group
                    else np.zeros_like(other["w"])
                    for group, other in zip(groups, fill, strict=True)
                ]
            )
            for name in names
        }

    due = [call.due for call in calls]
    return Columns(
        calls[0].rule,
        join([call.given for call in calls], due),
        join(due, due),
        join([call.bound for call in calls], due),
        join([call.allowed for call in calls], due),
        join([call.came for call in calls], due),
        join([call.beside for call in calls], due),
        join([call.kept for call in calls], due),
        join([call.shown for call in calls], due),
        np.concatenate([call.where for call in calls], axis=1),
        np.concatenate([call.elements for call in calls]),
    )
