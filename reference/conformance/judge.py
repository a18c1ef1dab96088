"""What a recorded run is worth: each step locked, and the whole run free.

*Locked*: the oracle takes each step from the implementation's own state, so that the
bound is that of one step. *Free*: the oracle goes its own way from the start and its
bound grows; this sees state that is computed but not kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from ..gradients import IndexedSlices, deduplicate
from ..optimizer import Optimizer, State
from .convention import BoundedArithmetic, Convention
from .port import Setting, Snapshot
from .rounding import SLACK, Bounded, Platform
from .scenarios import Program, Weight


@dataclass(frozen=True)
class Recording:
    """What an implementation did.

    Attributes:
        program: the inputs.
        snapshots: weights and state before the first step and after each.
        crash: what it said where it broke off, with the step (from 1).
    """

    program: Program
    snapshots: Sequence[Snapshot]
    crash: tuple[int, str] | None = None


@dataclass(frozen=True)
class Failure:
    """The first element that is wrong.

    Attributes:
        program, part, exposes: the inputs, and what they are there to expose.
        comparison: ``"locked"`` or ``"free"``.
        step: from 1.
        weight: position among the weights of the program.
        slot: name of the slot; ``"weight"``; ``"iterations"``; a shared slot.
        element: index of the element.
        row: ``"touched"``, ``"duplicated"``, ``"untouched"``; empty for dense.
        came, due, bound: the value, the oracle's, and how far they may be apart.
        message: what the implementation said, where it raised an error.
    """

    program: str
    comparison: str
    step: int
    part: str = ""
    exposes: str = ""
    weight: int | None = None
    slot: str = ""
    element: tuple[int, ...] = ()
    row: str = ""
    came: float | None = None
    due: float | None = None
    bound: float | None = None
    message: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For JSON: numbers that are not finite become strings."""
        return {
            name: str(value)
            if isinstance(value, float) and not np.isfinite(value)
            else list(value)
            if isinstance(value, tuple)
            else value
            for name, value in asdict(self).items()
        }

    def __str__(self) -> str:
        where = f"program '{self.program}', step {self.step} ({self.comparison})"
        if self.message:
            return f"{where}: {self.message}"
        lines = [where]
        if self.weight is not None:
            row = f", a row that is {self.row}" if self.row else ""
            lines.append(f"  weight {self.weight}, '{self.part}'{row}")
        element = f"[{', '.join(map(str, self.element))}]" if self.element else ""
        lines += [
            f"  {self.slot}{element}",
            f"    came  {_number(self.came)}",
            f"    due   {_number(self.due)}",
            f"    bound {_number(self.bound)} (times {SLACK:g})",
        ]
        if self.exposes:
            lines.append(f"  exposes: {self.exposes}")
        return "\n".join(lines)


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.17g}"


@dataclass
class Score:
    """How the elements of one kind of gradient compare.

    Attributes:
        ratios: worst error as a fraction of the bound, by slot.
        undecidable: elements for which the rule itself may go either way.
        elements: elements compared.
        survived: comparisons of whole steps before the first failure.
        failure: the first.
    """

    ratios: dict[str, float] = field(default_factory=dict)
    undecidable: int = 0
    elements: int = 0
    survived: int = 0
    failure: Failure | None = None

    @property
    def conforms(self) -> bool:
        return self.failure is None

    @property
    def worst(self) -> float:
        return max(self.ratios.values(), default=0.0)

    def fail(self, failure: Failure) -> None:
        if self.failure is None:
            self.failure = failure

    def add(self, other: Score) -> None:
        for slot, ratio in other.ratios.items():
            self.ratios[slot] = max(self.ratios.get(slot, 0.0), ratio)
        self.undecidable += other.undecidable
        self.elements += other.elements
        if self.conforms:
            self.survived += other.survived
        if other.failure:
            self.fail(other.failure)


def judge(
    recording: Recording,
    optimizer: Optimizer,
    convention: Convention,
    setting: Setting,
    platform: Platform,
    *,
    to_the_end: bool = True,
) -> dict[str, Score]:
    """The score for each kind of gradient in the program, ``dense`` and ``sparse``.

    Unless ``to_the_end``, it is enough to know that each kind fails.
    """
    judge = _Judge(recording, optimizer, convention, setting, platform)
    return judge.scores(to_the_end)


class _Judge:
    def __init__(
        self,
        recording: Recording,
        optimizer: Optimizer,
        convention: Convention,
        setting: Setting,
        platform: Platform,
    ) -> None:
        self.recording = recording
        self.program = recording.program
        self.optimizer = optimizer
        self.convention = convention
        self.stored = setting.dtype
        self.arithmetic = BoundedArithmetic(
            convention,
            setting.dtype,
            platform,
            recording.snapshots[-1].shared_format,
        )
        self.kinds = {weight.kind: Score() for weight in self.program.weights}

    def scores(self, to_the_end: bool) -> dict[str, Score]:
        snapshots = self.recording.snapshots
        free = self._lifted(snapshots[0], None)
        optimizer = self.optimizer
        for step, after in enumerate(snapshots[1:]):
            if step in self.program.learning_rates:
                rate = self.program.learning_rates[step]
                optimizer = optimizer.replaced(learning_rate=rate)
            locked = self._lifted(snapshots[step], free)
            self._compare(
                "locked", step, self._advanced(optimizer, locked, step), after
            )
            free = self._advanced(optimizer, free, step)
            self._compare("free", step, free, after)
            if not to_the_end and not any(s.conforms for s in self.kinds.values()):
                return self.kinds
        if self.recording.crash:
            step, message = self.recording.crash
            for score in self.kinds.values():
                score.fail(Failure(self.program.name, "run", step, message=message))
        return self.kinds

    def _lifted(
        self, snapshot: Snapshot, free: tuple[list[Bounded], State] | None
    ) -> tuple[list[Bounded], State]:
        """Exact numbers where they can be seen; the oracle's own where they cannot."""
        lift = self.arithmetic.lift
        known = free[1] if free else self.optimizer.init(snapshot.weights)
        slots = tuple(
            {
                name: lift(seen[name])
                if name in seen
                else slot
                if isinstance(slot, Bounded)
                else lift(self.stored.round(slot))
                for name, slot in oracle.items()
            }
            for seen, oracle in zip(snapshot.state.slots, known.slots, strict=True)
        )
        shared = {
            name: snapshot.state.shared.get(name, value)
            for name, value in known.shared.items()
        }
        state = State(snapshot.state.iterations, slots, shared)
        return [lift(w) for w in snapshot.weights], state

    def _advanced(
        self, optimizer: Optimizer, start: tuple[list[Bounded], State], step: int
    ) -> tuple[list[Bounded], State]:
        weights, state = start
        gradients = self.program.gradients(step)
        with np.errstate(all="ignore"):
            new = optimizer.advance(weights, gradients, state, self.arithmetic)
        if self.convention.one_by_one:
            for old, w, g in zip(weights, new[0], gradients, strict=True):
                if isinstance(g, IndexedSlices):
                    _loosen_duplicates(old, w, g)
        return new

    def _compare(
        self,
        comparison: str,
        step: int,
        expected: tuple[list[Bounded], State],
        after: Snapshot,
    ) -> None:
        weights, state = expected
        program = self.program

        def failure(**where: Any) -> Failure:
            return Failure(program.name, comparison, step + 1, **where)

        for score in self.kinds.values():
            if after.state.iterations != state.iterations:
                score.fail(
                    failure(
                        slot="iterations",
                        came=after.state.iterations,
                        due=state.iterations,
                        bound=0.0,
                    )
                )
        for name, kept in state.shared.items():
            if name in after.state.shared:
                due = kept if isinstance(kept, Bounded) else self.arithmetic.lift(kept)
                came = np.asarray(after.state.shared[name])
                for score in self.kinds.values():
                    self._elements(score, name, due, came, failure, exposes="")
        for score in self.kinds.values():
            score.survived += score.conforms
        for i, weight in enumerate(program.weights):
            seen = {**after.state.slots[i], "weight": after.weights[i]}
            due_by_slot = {**state.slots[i], "weight": weights[i]}
            for slot, due in due_by_slot.items():
                if slot in seen:
                    self._elements(
                        self.kinds[weight.kind],
                        slot,
                        due,
                        seen[slot],
                        failure,
                        position=i,
                        weight=weight,
                        gradient=weight.gradient(step),
                    )

    def _elements(
        self,
        score: Score,
        slot: str,
        due: Bounded,
        came: np.ndarray,
        failure: Any,
        *,
        position: int | None = None,
        weight: Weight | None = None,
        gradient: Any = None,
        exposes: str = "",
    ) -> None:
        if came.shape != due.shape:
            message = f"{slot} has shape {came.shape}, in the rule {due.shape}"
            score.fail(failure(weight=position, slot=slot, message=message))
            return
        ratio, undecidable = compare(due, came)
        worst = float(np.max(ratio, initial=0.0))
        score.ratios[slot] = max(score.ratios.get(slot, 0.0), worst)
        score.undecidable += int(np.count_nonzero(undecidable))
        score.elements += ratio.size
        if worst <= SLACK or score.failure:
            return
        element = tuple(
            int(i) for i in np.unravel_index(int(np.argmax(ratio)), ratio.shape)
        )
        part = weight.part_at(element) if weight else None
        score.fail(
            failure(
                part=part.name if part else "",
                exposes=part.exposes if part else exposes,
                weight=position,
                slot=slot,
                element=element,
                row=_row_kind(gradient, element),
                came=float(came[element]),
                due=float(due.value[element]),
                bound=float(np.broadcast_to(due.bound, due.shape)[element]),
            )
        )


def compare(due: Bounded, came: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each element's error over its bound, and whether the rule itself is undecided.

    NaN is due where the rule gives NaN, an infinity where it gives that infinity. After
    an overflow on the way, anything that is not finite will do, since rewrites of the
    rule that are equal in exact arithmetic differ there.
    """
    value, bound = due.value, np.broadcast_to(due.bound, due.shape)
    overflow = np.broadcast_to(due.overflow, due.shape)
    with np.errstate(all="ignore"):
        error = np.abs(came - value).astype(np.float64)
        ratio = np.where(error == 0, 0.0, error / bound)
    finite = np.isfinite(came)
    same = (np.isnan(value) & np.isnan(came)) | (came == value)
    ratio = np.where(np.isfinite(value) & finite, ratio, np.inf)
    ratio = np.where(same | (overflow & ~finite), 0.0, ratio)
    unbounded = np.isfinite(value) & ~np.isfinite(bound)
    ratio = np.where(unbounded & ~np.isnan(came), 0.0, ratio)
    ratio = np.where(overflow & ~np.isfinite(value), 0.0, ratio)
    undecidable = np.broadcast_to(due.branch, due.shape) | overflow | unbounded
    return ratio, undecidable


def _row_kind(gradient: Any, element: tuple[int, ...]) -> str:
    if not isinstance(gradient, IndexedSlices) or not element:
        return ""
    count = int(np.count_nonzero(np.asarray(gradient.indices) == element[0]))
    return ("untouched", "touched", "duplicated")[min(count, 2)]


def _loosen_duplicates(old: Bounded, new: Bounded, g: IndexedSlices) -> None:
    """One more rounding of the weight for each further duplicate."""
    rows, counts = np.unique(np.asarray(g.indices), return_counts=True)
    travel = deduplicate(IndexedSlices(np.abs(g.values), g.indices)).values
    largest = np.abs(old.value[rows]) + np.abs(new.value[rows]) + travel
    extra = counts.reshape((-1,) + (1,) * (new.ndim - 1)) - 1
    new.bound[rows] += extra * new.rounding.format.half_ulp(largest)
