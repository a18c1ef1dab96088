"""What can be wrong around a rule: counting, schedules, duplicates, rows, resuming."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from itertools import product
from typing import Any

import numpy as np

from ..gradients import (
    IndexedSlices,
    clip_by_norm,
    deduplicate,
    zeros_like_rows,
)
from ..optimizer import Arithmetic, Optimizer, State
from ..rule import Slot
from ..schedules import LearningRateSchedule
from ..sparse import EVERY, POLICIES, TOUCHED, Rows, SparsePolicy
from .mutants import Mutant, mutant, parsed, redefined
from .rounding import BFLOAT16
from .scenarios import Program

Gradient = Any
"""An array, ``IndexedSlices`` or ``None``."""

Advanced = tuple[list[Any], State]

NEED_T = frozenset({"t"})


def driver_mutants(optimizer: Optimizer) -> list[Mutant]:
    """What can be wrong around the rule, the likeliest first."""
    return [
        *_counting(optimizer),
        *_rates(optimizer),
        *_sparse(optimizer),
        *_decays(optimizer),
        *_other_rows(optimizer),
        *_gradients(optimizer),
        *_starts(optimizer),
        *_resuming(optimizer),
        *_counted_apart(optimizer),
    ]


def clipping_mutants(optimizer: Optimizer) -> list[Mutant]:
    """What can be wrong where gradients are clipped."""
    base = type(optimizer)

    def fault(sentence: str, **attributes: Any) -> Mutant:
        return Mutant(sentence, 0, "", redefined(optimizer, **attributes))

    found = [
        fault(
            "gradients are clipped before rows with one index are summed",
            advance=_clipping_slices(base),
        ),
        fault(
            "gradients are not clipped",
            _clipped=lambda self, gradients, *rest: gradients,
        ),
    ]
    limits = ("clipvalue", "clipnorm", "global_clipnorm")
    given = {name: getattr(optimizer, name) for name in limits}
    number = next(iter(value for value in given.values() if value is not None))
    for name in limits:
        if given[name] is None:
            sentence = f"gradients are clipped as {name} says"
            options = {**dict.fromkeys(limits), name: number}
            other = replace(optimizer, **options)
            found.append(Mutant(sentence, 0, "", other, whole=True))
    if given["clipnorm"] is not None:
        found.append(
            fault("each row is clipped to the norm by itself", _clipped=_clipping_rows)
        )
    return found


# Counting steps.


def _counting(optimizer: Optimizer) -> Iterator[Mutant]:
    base = type(optimizer)
    kinds: dict[str, Callable[[int], float]] = {
        "t is one too large": lambda t: t + 1,
        "t is one too small": lambda t: t - 1,
        "t stays 1: the step count does not advance": lambda t: 1,
        "the step count is kept in bfloat16": lambda t: float(BFLOAT16.round(t)),
    }
    for sentence, count in kinds.items():
        driver = redefined(optimizer, coefficients=_counted(base, count))
        yield Mutant(sentence, 0, "", driver, needs=NEED_T)
    yield Mutant(
        "the step count does not advance",
        0,
        "",
        redefined(optimizer, advance=_standing_still(base)),
    )
    for sentence, advance in (
        ("t advances with every weight, not with every step", _counting_calls(base)),
        (
            "the step count advances with every weight as well as with every step",
            _advancing_with_weights(base),
        ),
    ):
        driver = redefined(optimizer, advance=advance, init=_init_calls(base))
        yield Mutant(sentence, 0, "", driver, needs=NEED_T, whole=True)


def _always(t: int) -> Callable[[int], float]:
    return lambda _: t


def _policy(policy: SparsePolicy) -> property:
    return property(lambda self: policy)


def _counted(base: type[Optimizer], count: Callable[[int], float]) -> Any:
    def coefficients(
        self: Optimizer, iterations: int, arithmetic: Arithmetic
    ) -> dict[str, Any]:
        named = base.coefficients(self, iterations, arithmetic)
        return {**named, "t": arithmetic.coefficient(count(iterations + 1), "t")}

    return coefficients


def _standing_still(base: type[Optimizer]) -> Any:
    def advance(
        self: Optimizer,
        weights: Sequence[Any],
        gradients: Sequence[Gradient],
        state: State,
        arithmetic: Arithmetic,
        *others: Any,
    ) -> Advanced:
        new, after = base.advance(self, weights, gradients, state, arithmetic, *others)
        return new, replace(after, iterations=state.iterations)

    return advance


CALLS = "calls of the rule"


def _init_calls(base: type[Optimizer]) -> Any:
    def init(self: Optimizer, params: Any) -> State:
        state = base.init(self, params)
        return replace(state, shared={**state.shared, CALLS: 0})

    return init


def _one_by_one(
    self: Optimizer,
    base: type[Optimizer],
    weights: Sequence[Any],
    gradients: Sequence[Gradient],
    state: State,
    arithmetic: Arithmetic,
    count: Callable[[int], int],
) -> Advanced:
    """A step weight by weight; ``count`` gives ``t`` for the nth gradient."""
    shared = {name: value for name, value in state.shared.items() if name != CALLS}
    after = State(state.iterations + 1, state.slots, shared)
    new, slots, present = list(weights), list(state.slots), 0
    for i, g in enumerate(gradients):
        if g is None:
            continue
        t = count(present)
        present += 1
        counting = redefined(self, coefficients=_counted(base, _always(t)))
        one = State(state.iterations, (state.slots[i],), shared)
        (new[i],), after = base.advance(counting, [weights[i]], [g], one, arithmetic)
        slots[i] = after.slots[0]
    calls = state.shared.get(CALLS, 0) + present
    shared = {**after.shared, CALLS: calls}
    return new, State(state.iterations + 1, tuple(slots), shared)


def _counting_calls(base: type[Optimizer]) -> Any:
    def advance(
        self: Optimizer,
        weights: Sequence[Any],
        gradients: Sequence[Gradient],
        state: State,
        arithmetic: Arithmetic,
        *others: Any,
    ) -> Advanced:
        calls = state.shared.get(CALLS, 0)
        count = lambda present: calls + present + 1  # noqa: E731
        return _one_by_one(self, base, weights, gradients, state, arithmetic, count)

    return advance


def _advancing_with_weights(base: type[Optimizer]) -> Any:
    def advance(
        self: Optimizer,
        weights: Sequence[Any],
        gradients: Sequence[Gradient],
        state: State,
        arithmetic: Arithmetic,
        *others: Any,
    ) -> Advanced:
        count = lambda present: state.iterations + present + 1  # noqa: E731
        new, after = _one_by_one(
            self, base, weights, gradients, state, arithmetic, count
        )
        present = sum(g is not None for g in gradients)
        return new, replace(after, iterations=after.iterations + present)

    return advance


def _counted_apart(optimizer: Optimizer) -> Iterator[Mutant]:
    """A step count for each weight, or for each of its rows, kept beside its slots."""
    rule = optimizer.rule
    if "t" not in rule.parameters:
        return
    tree = copy.deepcopy(parsed(rule))
    for argument in tree.args.args:
        if argument.arg == "t":
            argument.arg = "count"
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and node.id == "t":
            node.id = "count"
    final = tree.body[-1]
    assert isinstance(final, ast.Return) and final.value is not None
    results = ast.unparse(final.value).strip("()")
    first = ast.parse("count = count + 1").body[0]
    last = ast.parse(f"return {results}, count").body[0]
    tree.body = [first, *tree.body[:-1], last]
    slots = {**rule.slots, "count": Slot("steps counted apart")}
    for sentence, kept in (
        ("t counts the gradients of each weight, not the steps", EVERY),
        ("t counts how often each row was touched, not the steps", TOUCHED),
    ):
        counting = mutant(optimizer, replace(rule, slots=slots), 0, sentence, tree)
        of = optimizer.policy.of
        named = {**{symbol: of(symbol) for symbol in rule.results}, "count": kept}
        policy = SparsePolicy(TOUCHED, named)
        driver = redefined(optimizer, policy=_policy(policy))
        yield Mutant(sentence, 0, "", driver, counting.functions, needs=NEED_T)


# Learning rates.


def _rates(optimizer: Optimizer) -> Iterator[Mutant]:
    base = type(optimizer)
    for sentence, shift in (
        ("the schedule is read at t + 1", 1),
        ("the schedule is read one step late", -1),
    ):
        yield Mutant(
            sentence, 0, "", redefined(optimizer, coefficients=_read_at(base, shift))
        )
    for sentence, ignores in (
        ("the learning rate of the first step is kept", ("set", "schedule")),
        ("a learning rate that is set during training has no effect", ("set",)),
        ("a schedule is read at the first step alone", ("schedule",)),
    ):
        yield Mutant(sentence, 0, "", optimizer, program=_with_rates_frozen(ignores))


def _read_at(base: type[Optimizer], shift: int) -> Any:
    def coefficients(
        self: Optimizer, iterations: int, arithmetic: Arithmetic
    ) -> dict[str, Any]:
        named = base.coefficients(self, iterations, arithmetic)
        when = max(iterations + shift, 0)
        other = base.coefficients(self, when, arithmetic)
        return {**named, "learning_rate": other["learning_rate"]}

    return coefficients


def _with_rates_frozen(ignores: tuple[str, ...]) -> Callable[[Program], Program]:
    def frozen(program: Program) -> Program:
        given = {
            name: value(0)
            if isinstance(value, LearningRateSchedule) and "schedule" in ignores
            else value
            for name, value in program.hyperparameters.items()
        }
        rates = {} if "set" in ignores else program.learning_rates
        return replace(program, learning_rates=rates, hyperparameters=given)

    return frozen


# Sparse gradients.


def _sparse(optimizer: Optimizer) -> Iterator[Mutant]:
    base = type(optimizer)
    for sentence, treat in _DUPLICATES.items():
        driver = redefined(optimizer, summed=_with_duplicates(treat))
        yield Mutant(sentence, 0, "", driver)
    yield from _squared_one_by_one(optimizer)
    yield Mutant(
        "every one of several rows with one index is a step of its own",
        0,
        "",
        redefined(optimizer, advance=_in_rounds(base)),
        few_rows=True,
    )
    for sentence, change in (
        ("an empty sparse gradient is skipped", _without_empty),
        ("indices are shifted by one row", _shifted(1)),
        ("indices are shifted by one row, downwards", _shifted(-1)),
        (
            "rows are sorted by index and their values are not",
            _values_in_another_order,
        ),
    ):
        driver = redefined(optimizer, advance=_with_gradients(base, change))
        yield Mutant(sentence, 0, "", driver)
    if optimizer.rule.slots:
        yield Mutant(
            "the slots of the first rows are read, not those of the touched rows",
            0,
            "",
            redefined(optimizer, advance=_misaligned(base)),
        )


def _decays(optimizer: Optimizer) -> Iterator[Mutant]:
    """Decay of other rows, with and without the learning rate, and after the rule."""
    if not optimizer.decays:
        return
    for rows in POLICIES:
        other = replace(optimizer, decay_rows=rows)
        if other.rule is not optimizer.rule:
            sentence = f"a sparse gradient decays {rows.replace('_', ' ')}"
            yield Mutant(sentence, 0, "", other)
    times = not optimizer.decay_times_learning_rate
    sentence = f"the decay is {'' if times else 'not '}multiplied by the learning rate"
    other = replace(optimizer, decay_times_learning_rate=times)
    yield Mutant(sentence, 0, "", other)
    yield Mutant("weights do not decay", 0, "", replace(optimizer, weight_decay=0.0))
    tree = parsed(optimizer.rule)
    first, *rest = tree.body[:-1]
    if ast.unparse(first).startswith("w = ") and tree.body[1:-1]:
        later = copy.copy(tree)
        later.body = [*rest, first, tree.body[-1]]
        sentence = "the weights decay after the update"
        made = mutant(optimizer, optimizer.rule, 0, sentence, later)
        yield Mutant(sentence, 0, "", optimizer, made.functions)


def _other_rows(optimizer: Optimizer) -> Iterator[Mutant]:
    """Every other choice of rows that change."""
    symbols = optimizer.rule.results
    if len(symbols) > 5:
        choices = [(kept,) * len(symbols) for kept in Rows]
    else:
        choices = list(product(Rows, repeat=len(symbols)))
    present = tuple(optimizer.policy.of(symbol) for symbol in symbols)
    choices.sort(key=lambda kept: (len(set(kept)), _distance(kept, present)))
    for kept in choices:
        if kept == present:
            continue
        policy = (
            SparsePolicy(kept[0])
            if len(set(kept)) == 1
            else SparsePolicy(TOUCHED, dict(zip(symbols, kept, strict=True)))
        )
        sentence = f"a sparse gradient changes {policy}, not {optimizer.policy}"
        driver = redefined(optimizer, policy=_policy(policy))
        yield Mutant(sentence, 0, "", driver)


def _distance(kept: tuple[Rows, ...], present: tuple[Rows, ...]) -> int:
    return sum(a is not b for a, b in zip(kept, present, strict=True))


def _with_duplicates(
    treat: Callable[[IndexedSlices], IndexedSlices],
) -> Callable[..., Any]:
    def summed(self: Optimizer, g: Any, arithmetic: Arithmetic) -> Any:
        if not isinstance(g, IndexedSlices):
            return g
        return treat(replace(g, values=arithmetic.tensor(g.values)))

    return summed


def _first_kept(g: IndexedSlices) -> IndexedSlices:
    rows, first = np.unique(g.indices, return_index=True)
    return replace(g, values=g.values[first], indices=rows)


def _last_kept(g: IndexedSlices) -> IndexedSlices:
    reverse = slice(None, None, -1)
    return _first_kept(
        replace(g, values=g.values[reverse], indices=np.asarray(g.indices)[reverse])
    )


def _averaged(g: IndexedSlices) -> IndexedSlices:
    total = deduplicate(g)
    _, counts = np.unique(g.indices, return_counts=True)
    column = counts.reshape((-1,) + (1,) * (total.values.ndim - 1))
    return replace(total, values=total.values / column.astype(float))


_DUPLICATES: dict[str, Callable[[IndexedSlices], IndexedSlices]] = {
    "the last of several rows with one index is kept, not their sum": _last_kept,
    "the first of several rows with one index is kept, not their sum": _first_kept,
    "rows with one index are averaged, not summed": _averaged,
}


def _squared_one_by_one(optimizer: Optimizer) -> Iterator[Mutant]:
    """``g**2`` is the sum of the squares of duplicates, not the square of their sum."""
    rule = optimizer.rule
    tree = copy.deepcopy(parsed(rule))
    final = tree.body[-1]
    assert isinstance(final, ast.Return) and final.value is not None
    before = ast.unparse(tree)
    tree.body = [_SquareRead().visit(statement) for statement in tree.body]
    if ast.unparse(tree) == before:
        return
    tree.args.args.append(ast.arg("squares"))
    results = ast.unparse(final.value).strip("()")
    tree.body[-1] = ast.parse(f"return {results}, squares").body[0]
    slots = {**rule.slots, "squares": Slot(SQUARES)}
    sentence = "rows with one index are squared one by one, then summed"
    fault = mutant(optimizer, replace(rule, slots=slots), 0, sentence, tree)
    base = type(optimizer)
    driver = redefined(optimizer, advance=_with_squares(base))
    yield Mutant(sentence, 0, "", driver, fault.functions)


SQUARES = "squares of the rows"


class _SquareRead(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        if ast.unparse(node) in ("g ** 2", "g * g"):
            return ast.Name("squares", ast.Load())
        return self.generic_visit(node)


def _with_squares(base: type[Optimizer]) -> Any:
    def advance(
        self: Optimizer,
        weights: Sequence[Any],
        gradients: Sequence[Gradient],
        state: State,
        arithmetic: Arithmetic,
        *others: Any,
    ) -> Advanced:
        slots = []
        for w, g, own in zip(weights, gradients, state.slots, strict=True):
            if SQUARES not in own:
                slots.append(own)
                continue
            if isinstance(g, IndexedSlices):
                values = arithmetic.tensor(g.values)
                unique = deduplicate(replace(g, values=values * values))
                squares = zeros_like_rows(unique.values, w.shape)
                squares[unique.indices] = unique.values
            elif g is not None:
                values = arithmetic.tensor(g)
                squares = values * values
            else:
                squares = own[SQUARES]
            slots.append({**own, SQUARES: squares})
        state = replace(state, slots=tuple(slots))
        return base.advance(self, weights, gradients, state, arithmetic, *others)

    return advance


def _in_rounds(base: type[Optimizer]) -> Any:
    """Round by round, with the first, the second, ... row of each index."""

    def advance(
        self: Optimizer,
        weights: Sequence[Any],
        gradients: Sequence[Gradient],
        state: State,
        arithmetic: Arithmetic,
        *others: Any,
    ) -> Advanced:
        rounds: list[list[Gradient]] = [list(gradients)]
        for i, g in enumerate(gradients):
            if not isinstance(g, IndexedSlices) or g.indices.size > FEW_ROWS:
                continue
            for number, chosen in enumerate(_occurrences(np.asarray(g.indices))):
                if number == len(rounds):
                    rounds.append([None] * len(weights))
                part = IndexedSlices(g.values[chosen], g.indices[chosen])
                rounds[number][i] = part
        new, after = base.advance(self, weights, rounds[0], state, arithmetic)
        later = replace(self, sparse="touched_rows")
        for parts in rounds[1:]:
            again = State(state.iterations, after.slots, state.shared)
            new, more = base.advance(later, new, parts, again, arithmetic)
            after = replace(after, slots=more.slots)
        return new, after

    return advance


FEW_ROWS = 64
"""More rows than this are not taken one by one: a round costs a step."""


def _occurrences(indices: np.ndarray) -> Iterator[np.ndarray]:
    counts: dict[int, int] = {}
    number = np.zeros(indices.size, int)
    for place, index in enumerate(indices.tolist()):
        number[place] = counts.get(index, 0)
        counts[index] = number[place] + 1
    for n in range(max(counts.values(), default=1)):
        yield np.flatnonzero(number == n)


def _misaligned(base: type[Optimizer]) -> Any:
    def advance(
        self: Optimizer,
        weights: Sequence[Any],
        gradients: Sequence[Gradient],
        state: State,
        arithmetic: Arithmetic,
        *others: Any,
    ) -> Advanced:
        slots = []
        for w, g, own in zip(weights, gradients, state.slots, strict=True):
            if isinstance(g, IndexedSlices):
                rows = np.unique(g.indices)
                first = np.arange(rows.size)
                own = {
                    name: _with_rows(slot, rows, first)
                    if slot.shape[:1] == w.shape[:1]
                    else slot
                    for name, slot in own.items()
                }
            slots.append(own)
        state = replace(state, slots=tuple(slots))
        return base.advance(self, weights, gradients, state, arithmetic, *others)

    return advance


def _with_rows(slot: Any, rows: np.ndarray, others: np.ndarray) -> Any:
    changed = slot.copy()
    changed[rows] = slot[others]
    return changed


# Gradients.


def _with_gradients(
    base: type[Optimizer], change: Callable[[Gradient, tuple[int, ...]], Gradient]
) -> Any:
    def advance(
        self: Optimizer,
        weights: Sequence[Any],
        gradients: Sequence[Gradient],
        state: State,
        arithmetic: Arithmetic,
        *others: Any,
    ) -> Advanced:
        changed = [change(g, w.shape) for g, w in zip(gradients, weights, strict=True)]
        return base.advance(self, weights, changed, state, arithmetic, *others)

    return advance


def _gradients(optimizer: Optimizer) -> Iterator[Mutant]:
    base = type(optimizer)
    for sentence, change in (
        ("a gradient that is not a number counts as zero", _without_nan),
        ("infinite gradients are replaced by finite ones", _finite),
        ("a weight without a gradient is updated as with zeros", _zeros_for_none),
    ):
        driver = redefined(optimizer, advance=_with_gradients(base, change))
        yield Mutant(sentence, 0, "", driver)


def _without_empty(g: Gradient, shape: tuple[int, ...]) -> Gradient:
    return None if isinstance(g, IndexedSlices) and np.size(g.indices) == 0 else g


def _shifted(by: int) -> Callable[[Gradient, tuple[int, ...]], Gradient]:
    def shifted(g: Gradient, shape: tuple[int, ...]) -> Gradient:
        if not isinstance(g, IndexedSlices):
            return g
        return replace(g, indices=(np.asarray(g.indices) + by) % shape[0])

    return shifted


def _values_in_another_order(g: Gradient, shape: tuple[int, ...]) -> Gradient:
    if not isinstance(g, IndexedSlices):
        return g
    rows, first, place = np.unique(
        np.asarray(g.indices), return_index=True, return_inverse=True
    )
    rank = np.argsort(np.argsort(first))
    return replace(g, indices=rows[rank[place.ravel()]])


def _without_nan(g: Gradient, shape: tuple[int, ...]) -> Gradient:
    if isinstance(g, IndexedSlices):
        return replace(g, values=_without_nan(g.values, shape))
    return None if g is None else np.where(np.isnan(g), 0.0, g)


def _finite(g: Gradient, shape: tuple[int, ...]) -> Gradient:
    if isinstance(g, IndexedSlices):
        return replace(g, values=_finite(g.values, shape))
    return None if g is None else np.where(np.isfinite(g), g, 0.0)


def _zeros_for_none(g: Gradient, shape: tuple[int, ...]) -> Gradient:
    return np.zeros(shape) if g is None else g


# State.


def _starts(optimizer: Optimizer) -> Iterator[Mutant]:
    base = type(optimizer)
    rule = optimizer.rule
    if not rule.slots:
        return
    for symbol, slot in rule.slots.items():
        if callable(slot.start):
            continue
        present = optimizer._start(slot.start)
        for start in (0.0, 0.1, 1.0):
            if start != present:
                slots = {**rule.slots, symbol: replace(slot, start=start)}
                sentence = f"the slot {slot.name} starts at {start:g}, not {present:g}"
                started = {rule.function.__name__: replace(rule, slots=slots)}
                yield Mutant(sentence, 0, "", optimizer, started)
    yield Mutant(
        "the slots are made anew at every step",
        0,
        "",
        redefined(optimizer, advance=_forgetting(base)),
    )


def _forgetting(base: type[Optimizer]) -> Any:
    def advance(
        self: Optimizer,
        weights: Sequence[Any],
        gradients: Sequence[Gradient],
        state: State,
        arithmetic: Arithmetic,
        *others: Any,
    ) -> Advanced:
        fresh = self.init([np.zeros(w.shape) for w in weights])
        slots = tuple(
            {
                name: zeros_like_rows(slot, slot.shape) + started[name]
                for name, slot in own.items()
            }
            if g is not None
            else own
            for g, own, started in zip(gradients, state.slots, fresh.slots, strict=True)
        )
        state = replace(state, slots=slots)
        return base.advance(self, weights, gradients, state, arithmetic, *others)

    return advance


def _resuming(optimizer: Optimizer) -> Iterator[Mutant]:
    def fresh(state: State) -> State:
        slots = tuple(
            {
                name: np.zeros(slot.shape) + _start_of(optimizer, name)
                for name, slot in own.items()
            }
            for own in state.slots
        )
        return State(0, slots, optimizer.init([]).shared)

    def slots_lost(right: Optimizer, state: State) -> tuple[Optimizer, State]:
        started = fresh(state)
        return right, State(state.iterations, started.slots, started.shared)

    def count_lost(right: Optimizer, state: State) -> tuple[Optimizer, State]:
        return right, replace(state, iterations=0)

    def all_lost(right: Optimizer, state: State) -> tuple[Optimizer, State]:
        return right, fresh(state)

    def recounted(shift: int) -> Any:
        def resumed(right: Optimizer, state: State) -> tuple[Optimizer, State]:
            return right, replace(state, iterations=state.iterations + shift)

        return resumed

    def t_lost(right: Optimizer, state: State) -> tuple[Optimizer, State]:
        gone = state.iterations
        counted = _counted(type(right), lambda t: t - gone)
        return redefined(right, coefficients=counted), state

    has_slots = bool(optimizer.rule.slots)
    for sentence, resumed, needs in (
        ("the slots are lost on resume", slots_lost, frozenset()),
        ("the step count is lost on resume", count_lost, frozenset()),
        ("slots and step count are lost on resume", all_lost, frozenset()),
        ("t starts again at 1 after a resume", t_lost, NEED_T),
        ("the step count is one too small after a resume", recounted(-1), frozenset()),
        ("the step count is one too large after a resume", recounted(1), frozenset()),
    ):
        if has_slots or "slots" not in sentence:
            yield Mutant(sentence, 0, "", optimizer, resumed=resumed, needs=needs)
    for f in fields(optimizer):
        value = getattr(optimizer, f.name)
        if f.name in optimizer.hyperparameters() and isinstance(f.default, float):

            def forgotten(
                right: Optimizer,
                state: State,
                name: str = f.name,
                default: float = f.default,
            ) -> tuple[Optimizer, State]:
                return right.replaced(**{name: default}), state

            sentence = f"{f.name} is forgotten on resume: it is {f.default:g} again"
            same = optimizer.replaced(**{f.name: f.default}).rule is optimizer.rule
            if value != f.default and same:
                yield Mutant(sentence, 0, "", optimizer, resumed=forgotten)


def _start_of(optimizer: Optimizer, name: str) -> float:
    return next(
        optimizer._start(slot.start)
        for rule in optimizer.variants
        for slot in rule.slots.values()
        if slot.name == name
    )


# Clipping.


def _clipping_slices(base: type[Optimizer]) -> Any:
    def advance(
        self: Optimizer,
        weights: Sequence[Any],
        gradients: Sequence[Gradient],
        state: State,
        arithmetic: Arithmetic,
        *others: Any,
    ) -> Advanced:
        named = base.coefficients(self, state.iterations, arithmetic)
        clipped = self._clipped(list(gradients), named, arithmetic)
        after = redefined(self, _clipped=lambda self, gradients, *rest: gradients)
        return base.advance(after, weights, clipped, state, arithmetic, *others)

    return advance


def _clipping_rows(
    self: Optimizer,
    gradients: list[Gradient],
    named: dict[str, Any],
    arithmetic: Arithmetic,
) -> list[Gradient]:
    clipped = []
    for g in gradients:
        if isinstance(g, IndexedSlices):
            rows = [
                clip_by_norm(g.values[i : i + 1], named["clipnorm"])
                for i in range(g.indices.size)
            ]
            values = g.values.copy()
            for i, row in enumerate(rows):
                values[i : i + 1] = row
            g = replace(g, values=values)
        elif g is not None:
            g = clip_by_norm(arithmetic.tensor(g), named["clipnorm"])
        clipped.append(g)
    return clipped
