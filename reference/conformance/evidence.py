"""What a recording shows, element by element, so that many rules can be tried on it.

Every element of every locked step becomes one column: the letters of the rule, the
step count and hyperparameters before, the state after. An elementwise rule runs on all
columns at once, so that a mutant costs a fraction of a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..gradients import IndexedSlices, deduplicate
from ..optimizer import Arithmetic, Optimizer
from ..sparse import TOUCHED
from .convention import Convention
from .judge import Recording, _Judge
from .port import Setting
from .rounding import SLACK, Platform


@dataclass(frozen=True)
class Evidence:
    """The columns.

    Attributes:
        given: inputs of the rule, and of the shared rule, by name.
        due: what the right rule gives, by symbol.
        bound: how far a correct implementation may be from it; NaN where undecided.
        came: what the implementation gave.
        where: for each column, the position of its recording, step and weight.
    """

    given: Mapping[str, np.ndarray]
    due: Mapping[str, np.ndarray]
    bound: Mapping[str, np.ndarray]
    came: Mapping[str, np.ndarray]
    where: np.ndarray

    def results(
        self,
        optimizer: Optimizer,
        functions: Mapping[str, Callable[..., Any]] | None = None,
    ) -> dict[str, np.ndarray]:
        """What a version of the rule gives, by symbol, shared symbols among them."""
        functions = functions or {}
        named = dict(self.given)
        results = {}
        with np.errstate(all="ignore"):
            if optimizer.shared:
                shared = optimizer.shared
                shared = replace(
                    shared, function=functions.get("shared", shared.function)
                )
                made = shared(**named)
                named |= made
                results = {symbol: made[symbol] for symbol in shared.slots}
            rule = optimizer.rule
            rule = replace(rule, function=functions.get("rule", rule.function))
            return {**results, **rule(**named)}

    def of_kind(self, kinds: set[str], recordings: Sequence[Recording]) -> Evidence:
        """The columns that belong to weights with dense or with sparse gradients."""
        kept = np.array(
            [
                recordings[position].program.weights[weight].kind in kinds
                for position, _, weight in self.where.T
            ]
        )

        def chosen(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
            return {name: values[kept] for name, values in columns.items()}

        return Evidence(
            chosen(self.given),
            chosen(self.due),
            chosen(self.bound),
            chosen(self.came),
            self.where[:, kept],
        )

    def tells(self, results: Mapping[str, Any]) -> np.ndarray:
        """The columns in which results differ from the right rule, beyond rounding."""
        differs = np.zeros(self.where.shape[1], bool)
        for symbol, due in self.due.items():
            with np.errstate(all="ignore"):
                error = np.abs(results[symbol] - due)
                beyond = ~(error <= (SLACK + 1) * self.bound[symbol])
            judged = np.isfinite(self.bound[symbol]) & np.isfinite(due)
            differs |= judged & beyond
        return differs

    def mismatch(self, results: Mapping[str, Any]) -> dict[str, float]:
        """For each symbol, the part of the columns that results do not reproduce.

        A first sieve: it allows 64 times the bound of the right rule, since a wrong one
        may lose more.
        """
        parts = {}
        for symbol, came in self.came.items():
            with np.errstate(all="ignore"):
                error = np.abs(results[symbol] - came)
                wrong = ~(error <= 64 * self.bound[symbol])
            judged = np.isfinite(self.bound[symbol]) & np.isfinite(came)
            parts[symbol] = float(np.mean(wrong[judged])) if judged.any() else 0.0
        return parts


def collect(
    runs: Sequence[tuple[Recording, Optimizer]],
    convention: Convention,
    setting: Setting,
    platform: Platform,
) -> Evidence:
    """The locked steps of some recordings as columns."""
    columns: dict[str, list[np.ndarray]] = {}

    def add(name: str, values: Any, shape: tuple[int, ...]) -> None:
        flat = np.broadcast_to(np.asarray(values, np.float64), shape).ravel()
        columns.setdefault(name, []).append(flat)

    for position, (recording, given) in enumerate(runs):
        judge = _Judge(recording, given, convention, setting, platform)
        program, snapshots = recording.program, recording.snapshots
        optimizer = given
        for step, after in enumerate(snapshots[1:]):
            if step in program.learning_rates:
                rate = program.learning_rates[step]
                optimizer = replace(optimizer, learning_rate=rate)
            before = judge._lifted(snapshots[step], None)
            due_weights, due_state = judge._advanced(optimizer, before, step)
            named = optimizer.coefficients(before[1].iterations, Arithmetic())
            if optimizer.shared:
                for symbol, slot in optimizer.shared.slots.items():
                    named[symbol] = before[1].shared[slot.name]
            for i, weight in enumerate(program.weights):
                gradient = weight.gradient(step)
                if gradient is None:
                    continue
                slots = optimizer.rule.slots
                old = {"w": before[0][i]}
                due = {"w": due_weights[i]}
                came: dict[str, Any] = {"w": after.weights[i]}
                for symbol, slot in slots.items():
                    old[symbol] = before[1].slots[i][slot.name]
                    due[symbol] = due_state.slots[i][slot.name]
                    came[symbol] = after.state.slots[i].get(slot.name)
                g, rows = _dense(gradient, old["w"].shape, optimizer, list(old))
                shape = g.shape
                add("g", g, shape)
                add("touched", _touched(gradient, shape), shape)
                own = optimizer.multiplied(named, i, Arithmetic())
                for name, value in own.items():
                    add(name, value, shape)
                for symbol in old:
                    add(symbol, old[symbol].value[rows], shape)
                    bound = np.broadcast_to(due[symbol].bound, due[symbol].shape)[rows]
                    undecided = np.broadcast_to(
                        due[symbol].branch | due[symbol].overflow, due[symbol].shape
                    )[rows]
                    kept = _kept(gradient, shape, optimizer, symbol)
                    add(f"due {symbol}", due[symbol].value[rows], shape)
                    add(
                        f"bound {symbol}",
                        np.where(undecided | ~kept, np.nan, bound),
                        shape,
                    )
                    seen = came[symbol]
                    add(
                        f"came {symbol}",
                        np.nan if seen is None else seen[rows],
                        shape,
                    )
                for symbol, slot in (
                    optimizer.shared.slots.items() if optimizer.shared else ()
                ):
                    add(f"due {symbol}", due_state.shared[slot.name].value, shape)
                    add(f"bound {symbol}", due_state.shared[slot.name].bound, shape)
                    seen = after.state.shared.get(slot.name, np.nan)
                    add(f"came {symbol}", seen, shape)
                for name, value in (("0", position), ("1", step), ("2", i)):
                    add(f"where {name}", value, shape)
    flat = {name: np.concatenate(parts) for name, parts in columns.items()}

    def group(word: str) -> dict[str, np.ndarray]:
        return {
            name.split()[1]: values
            for name, values in flat.items()
            if name.startswith(word + " ")
        }

    return Evidence(
        {name: values for name, values in flat.items() if " " not in name},
        group("due"),
        group("bound"),
        group("came"),
        np.stack(list(group("where").values())).astype(int),
    )


def _dense(
    gradient: Any, shape: tuple[int, ...], optimizer: Optimizer, symbols: list[str]
) -> tuple[np.ndarray, Any]:
    """The gradient of the rows on which the rule ran, and which rows those are."""
    if not isinstance(gradient, IndexedSlices):
        return np.asarray(gradient), ...
    if all(optimizer.policy.of(s) is TOUCHED for s in symbols):
        unique = deduplicate(gradient)
        return unique.values, unique.indices
    return gradient.to_dense(shape), ...


def _kept(
    gradient: Any, shape: tuple[int, ...], optimizer: Optimizer, symbol: str
) -> np.ndarray:
    """Where the rule's result for a symbol was kept."""
    if optimizer.policy.of(symbol) is TOUCHED:
        return _touched(gradient, shape)
    return np.ones(shape, bool)


def _touched(gradient: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Where the gradient has rows, among those on which the rule ran."""
    touched = np.ones(shape, bool)
    if isinstance(gradient, IndexedSlices):
        rows = np.unique(gradient.indices)
        if touched.shape[0] != rows.size:
            touched[:] = False
            touched[rows] = True
    return touched
