"""The inputs of the check, each with the faults that it is there to expose.

A ``Program`` is a run of several steps over several weights. A ``Part`` is a range of
elements (dense) or a whole weight whose gradients follow one idea. Everything is
deterministic from a seed and exactly representable in the format that is judged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..gradients import Array, IndexedSlices
from ..optimizer import Optimizer, State
from ..schedules import PiecewiseConstantDecay
from .port import Setting
from .rounding import FLOAT16, Format

Gradient = np.ndarray | IndexedSlices | None

STEPS = 8
ABSENT_STEPS = (3, 4)
"""Steps (from 0) at which some weights have no gradient, or no rows."""


@dataclass(frozen=True)
class Part:
    """Weights and gradients that follow one idea.

    Attributes:
        name: what they are.
        exposes: the faults that show here.
        start: the weights before the first step.
        gradients: one for each step.
    """

    name: str
    exposes: str
    start: np.ndarray
    gradients: tuple[Gradient, ...]

    @property
    def kind(self) -> str:
        sparse = any(isinstance(g, IndexedSlices) for g in self.gradients)
        return "sparse" if sparse else "dense"


@dataclass(frozen=True)
class Weight:
    """One weight of a run: a part, or several dense parts end to end."""

    parts: tuple[Part, ...]

    @property
    def kind(self) -> str:
        return self.parts[0].kind

    @property
    def start(self) -> np.ndarray:
        if len(self.parts) == 1:
            return self.parts[0].start
        return np.concatenate([part.start for part in self.parts])

    def gradient(self, step: int) -> Gradient:
        if len(self.parts) == 1:
            return self.parts[0].gradients[step]
        return np.concatenate([part.gradients[step] for part in self.parts])

    def part_at(self, element: Sequence[int]) -> Part:
        """The part to which an element belongs."""
        if len(self.parts) == 1:
            return self.parts[0]
        ends = np.cumsum([part.start.size for part in self.parts])
        return self.parts[int(np.searchsorted(ends, element[0], side="right"))]


@dataclass(frozen=True)
class Program:
    """A run.

    Attributes:
        name: what it is.
        exposes: the faults that show here.
        weights: the weights.
        steps: how many steps.
        hyperparameters: constructor arguments of this run.
        learning_rates: a new learning rate before some steps.
        resume_before: the step before which the optimizer is saved and made anew.
        iterations: steps that were taken before the run; its state is the oracle's.
    """

    name: str
    exposes: str
    weights: tuple[Weight, ...]
    steps: int
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)
    learning_rates: Mapping[int, float] = field(default_factory=dict)
    resume_before: int | None = None
    iterations: int = 0

    def gradients(self, step: int) -> list[Gradient]:
        return [weight.gradient(step) for weight in self.weights]


def programs(
    optimizer: Optimizer, setting: Setting, seed: int, *, quick: bool = False
) -> list[Program]:
    """The runs for a rule; ``quick`` keeps the first, which exposes most."""
    make = _Maker(setting.dtype, seed)
    sparse = make.sparse()
    if setting.strategy == "mirrored":
        # TensorFlow's all-reduce of no rows ends the process with a segmentation fault.
        sparse = [part for part in sparse if not _without_rows(part)]
    dense = make.dense()
    if not optimizer.elementwise:
        shapes = [(6, 4), (3, 5), (3, 2, 4), (2, 3, 2, 3)]
        dense += [make.decades(shape=shape) for shape in shapes]
        dense.append(make.late((3, 2)))
    if optimizer.global_clipnorm is not None:
        # A huge gradient would be all that their joint norm consists of.
        dense = [make.decades(), make.from_zero()]
    whole = Program(
        "steps",
        "a wrong equation, on any input",
        pack([*dense, *make.absent(), *sparse], optimizer),
        STEPS,
    )
    if quick:
        return [whole]
    few = pack([make.decades(), make.from_zero(), make.patterns()], optimizer)
    late = pack([make.constant(), make.decades(), make.patterns()], optimizer)
    found = [
        whole,
        Program(
            "learning rate set",
            "a learning rate frozen at construction or by tracing",
            few,
            5,
            {"learning_rate": 2.0**-3},
            learning_rates={3: 2.0**-5, 4: 2.0**-2},
        ),
        Program(
            "schedule",
            "a schedule read at t + 1, or once",
            few,
            5,
            {"learning_rate": PiecewiseConstantDecay([1, 3], [2.0**-3, 0.5, 2.0**-4])},
        ),
        Program(
            "resume",
            "state, step count or configuration lost between save and restore",
            few,
            6,
            resume_before=3,
        ),
        Program(
            "late",
            "a step count in a narrow dtype; a variance that cancels to below zero",
            late,
            3,
            {
                name: 1 - 2.0**-9
                for name in optimizer.hyperparameters()
                if name in ("beta_1", "beta_2", "beta_3")
            },
            iterations=301,
        ),
    ]
    ended = [
        name
        for name in optimizer.hyperparameters()
        if "weight_decay" in name or name in ("beta_2", "eeta")
    ]
    ended = [name for name in ended if getattr(optimizer, name)]
    if ended and not optimizer.elementwise:
        found.append(
            Program(
                "no decay, no memory",
                "a division by a length, or by a moment, that is zero",
                pack([make.zero(), make.decades(shape=(6, 4))], optimizer),
                3,
                dict.fromkeys(ended, 0.0),
            )
        )
    return found


def pack(parts: Sequence[Part], optimizer: Optimizer) -> tuple[Weight, ...]:
    """Parts as weights; flat dense parts share one where the rule is elementwise."""
    whole = [p for p in parts if not _joins(p, optimizer)]
    joined = tuple(p for p in parts if _joins(p, optimizer))
    return ((Weight(joined),) if joined else ()) + tuple(Weight((p,)) for p in whole)


def _without_rows(part: Part) -> bool:
    return any(
        isinstance(g, IndexedSlices) and g.indices.size == 0 for g in part.gradients
    )


def _joins(part: Part, optimizer: Optimizer) -> bool:
    return (
        optimizer.elementwise
        and part.kind == "dense"
        and part.start.ndim == 1
        and all(g is not None for g in part.gradients)
    )


def settled_state(optimizer: Optimizer, program: Program, dtype: Format) -> State:
    """The oracle's state after ``program.iterations`` steps of the first gradients."""
    weights = [w.start for w in program.weights]
    gradients = program.gradients(0)
    state = optimizer.init(weights)
    start = weights
    for _ in range(program.iterations):
        _, state = optimizer.step(start, gradients, state)
    slots = tuple({n: dtype.round(s) for n, s in each.items()} for each in state.slots)
    return State(state.iterations, slots, state.shared)


class _Maker:
    """Parts for one format, from one seed."""

    def __init__(self, dtype: Format, seed: int) -> None:
        self.dtype = dtype
        self.seed = seed

    def _rng(self, name: str) -> np.random.Generator:
        return np.random.default_rng([self.seed, *name.encode()])

    def _decades(
        self, rng: np.random.Generator, shape: Any, low: float, high: float
    ) -> np.ndarray:
        size = 10.0 ** rng.uniform(low, high, shape)
        return self.dtype.round(size * rng.choice([-1.0, 1.0], shape))

    def _usual(self, rng: np.random.Generator, shape: Any) -> np.ndarray:
        low, high = (-6.0, 1.5) if self.dtype is FLOAT16 else (-7.0, 3.0)
        return self._decades(rng, shape, low, high)

    def _normal(self, rng: np.random.Generator, shape: Any) -> np.ndarray:
        return self.dtype.round(rng.normal(size=shape))

    def _part(
        self,
        name: str,
        exposes: str,
        shape: tuple[int, ...],
        gradient: Callable[[np.random.Generator, int], Gradient],
        zero: bool = False,
    ) -> Part:
        rng = self._rng(name)
        start = np.zeros(shape) if zero else self._normal(rng, shape)
        return Part(
            name, exposes, start, tuple(gradient(rng, step) for step in range(STEPS))
        )

    def decades(self, shape: tuple[int, ...] = (24,)) -> Part:
        def gradient(rng: np.random.Generator, step: int) -> Array:
            return self._usual(rng, shape) * (rng.random(shape) > 0.1)

        return self._part(
            "gradients over ten decades"
            + (f", shape {shape}" if len(shape) != 1 else ""),
            "epsilon misplaced; signs lost; shapes confused",
            shape,
            gradient,
        )

    def from_zero(self) -> Part:
        return self._part(
            "weights from zero",
            "errors in the step that the rounding of large weights would hide",
            (24,),
            lambda rng, step: self._usual(rng, 24),
            zero=True,
        )

    def constant(self) -> Part:
        each = self._usual(self._rng("each"), 16)
        return self._part(
            "constant gradient",
            "bias corrections; a centered variance below zero",
            (16,),
            lambda rng, step: each,
        )

    def zero(self) -> Part:
        return self._part(
            "zero gradient",
            "weights that move without a gradient; zero over zero",
            (4,),
            lambda rng, step: np.zeros(4),
        )

    def dense(self) -> list[Part]:
        largest = {"float16": 1.5, "float64": 150.0}.get(self.dtype.name, 17.0)
        smallest = {"float16": -7.5, "float64": -320.0}.get(self.dtype.name, -40.0)

        def last_not_finite(rng: np.random.Generator, step: int) -> Array:
            g = self._normal(rng, 8)
            if step == STEPS - 1:
                g[1:5] = np.nan, np.inf, -np.inf, self.dtype.largest / 2
            return g

        return [
            self.decades(),
            self.from_zero(),
            self.constant(),
            self.zero(),
            self._part(
                "tiny gradients",
                "squares that underflow; epsilon lost in a narrow dtype",
                (12,),
                lambda rng, step: self._decades(rng, 12, smallest, smallest / 2),
                zero=True,
            ),
            self._part(
                "huge gradients",
                "squares near overflow",
                (8,),
                lambda rng, step: self._decades(rng, 8, largest / 2, largest),
            ),
            self._part(
                "last gradient not finite",
                "NaN swallowed or spread to neighbours",
                (8,),
                last_not_finite,
            ),
            self.decades(shape=()),
            self.decades(shape=(2, 1, 3, 2)),
        ]

    def absent(self) -> list[Part]:
        def missing(rng: np.random.Generator, step: int) -> Gradient:
            return None if step in ABSENT_STEPS else self._usual(rng, 6)

        return [
            self._part(
                "no gradient at two steps",
                "moments decayed, or steps counted per weight",
                (6,),
                missing,
            ),
            self.late((6,)),
        ]

    def late(self, shape: tuple[int, ...]) -> Part:
        def gradient(rng: np.random.Generator, step: int) -> Gradient:
            return self._usual(rng, shape) if step in ABSENT_STEPS else None

        return self._part(
            "first gradient late" + (f", shape {shape}" if len(shape) > 1 else ""),
            "steps counted per weight; slots made too late, or from another start",
            shape,
            gradient,
            zero=True,
        )

    def patterns(self) -> Part:
        """Duplicates side by side, interleaved and cancelling; a row seen once."""

        def gradient(rng: np.random.Generator, step: int) -> IndexedSlices:
            once = 5 if step == 1 else 3
            indices = np.array([0, 0, 1, 2, 1, once, 4, 4], np.int64)
            values = self._usual(rng, (8, 3))
            values[7] = -values[6]
            order = rng.permutation(8)
            return IndexedSlices(values[order], indices[order])

        return self._part(
            "rows with duplicates",
            "duplicates not summed; untouched rows moved, or not decayed",
            (9, 3),
            gradient,
        )

    def sparse(self) -> list[Part]:
        def flat(rng: np.random.Generator, step: int) -> IndexedSlices:
            indices = rng.integers(0, 7, 5).astype(np.int32)
            return IndexedSlices(self._usual(rng, 5), indices)

        def same(rng: np.random.Generator, step: int) -> IndexedSlices:
            return IndexedSlices(
                self._usual(rng, (6, 2, 2)), np.full(6, 2, dtype=np.int64)
            )

        def empty(rng: np.random.Generator, step: int) -> IndexedSlices:
            count = 0 if step in ABSENT_STEPS else 3
            indices = rng.permutation(5)[:count].astype(np.int64)
            return IndexedSlices(self._usual(rng, (count, 2)), indices)

        def thousand(rng: np.random.Generator, step: int) -> IndexedSlices:
            indices = np.ones(1001, np.int32)
            indices[rng.integers(1001)] = 0
            values = self.dtype.round(rng.uniform(0.5, 1.0, (1001, 1)) * 2.0**-6)
            return IndexedSlices(values, indices)

        return [
            self.patterns(),
            self._part(
                "flat rows, int32 indices",
                "vectors treated as tables; index dtypes",
                (7,),
                flat,
                zero=True,
            ),
            self._part(
                "all rows the same",
                "the first or last duplicate kept",
                (4, 2, 2),
                same,
                zero=True,
            ),
            self._part(
                "no rows at two steps",
                "an empty gradient skipped; decay forgotten",
                (5, 2),
                empty,
            ),
            self._part(
                "a thousand of one row",
                "sums that stop growing in half precision",
                (3, 1),
                thousand,
                zero=True,
            ),
        ]
