"""Where an implementation keeps its hyperparameters and does its arithmetic.

The ideal keeps hyperparameters as real numbers, forms coefficients such as
``1 - beta_2**t`` in float64, rounds each once, and updates half-precision weights in
float32. Real libraries do otherwise; that is a convention with a price in accuracy, not
another rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np

from ..gradients import Array
from ..optimizer import Arithmetic, Optimizer
from . import matrices  # noqa: F401 - bounds of functions of whole matrices
from .rounding import FLOAT32, FLOAT64, Bounded, Format, Platform, Rounding


@dataclass(frozen=True)
class Convention:
    """One way to place the rounding.

    Attributes:
        sentence: for people.
        coefficients: the format in which coefficients of the step are formed.
        tensors: the format of the arithmetic on weights and slots.
        hyperparameters: formats that single hyperparameters pass through first.
        one_by_one: duplicates of a row are applied one after another, each rounded
            into the weight; the same only for rules without slots.
        powers: the format of coefficients in which the step count is, as ``beta**t``;
            that of the others unless given.
    """

    sentence: str
    coefficients: Format
    tensors: Format
    hyperparameters: Mapping[str, Format] = field(default_factory=dict)
    one_by_one: bool = False
    powers: Format | None = None


def ideal(stored: Format) -> Convention:
    """Real hyperparameters, float64 coefficients, at least float32 arithmetic."""
    wide = stored if stored.precision >= FLOAT32.precision else FLOAT32
    return Convention("ideal", FLOAT64, wide)


def candidates(
    optimizer: Optimizer, stored: Format, seen: Mapping[str, Format]
) -> Iterator[Convention]:
    """The conventions to try, the most accurate first.

    Args:
        optimizer: the rule, whose hyperparameters are placed.
        stored: the format of the weights.
        seen: formats in which the implementation was seen to keep hyperparameters.
    """
    yield ideal(stored)
    wide = ideal(stored).tensors
    if stored is FLOAT64:
        placed = [
            Convention(
                f"{', '.join(kept)} kept in float32, coefficients formed in float64",
                FLOAT64,
                FLOAT64,
                dict.fromkeys(kept, FLOAT32),
            )
            for kept in _kept_in_float32(optimizer, seen)
        ]
        counted = [FLOAT32]
    else:
        placed = [
            Convention(
                f"coefficients formed in {coefficients.name}"
                + ("" if tensors is wide else f", arithmetic in {tensors.name}"),
                coefficients,
                tensors,
            )
            for coefficients, tensors in dict.fromkeys(
                [(FLOAT32, wide), (FLOAT64, stored), (stored, stored)]
            )
        ]
        counted = list(dict.fromkeys([FLOAT32, stored]))
    if _counts_steps(optimizer):
        placed += [
            replace(
                convention,
                sentence=f"powers of t formed in {powers.name}"
                + f", {convention.sentence}".removesuffix(", ideal"),
                powers=powers,
            )
            for convention in (ideal(stored), *placed)
            if convention.coefficients is FLOAT64
            for powers in counted
        ]
    yield from placed
    if not optimizer.rule.slots:
        for convention in (ideal(stored), *placed):
            yield replace(
                convention,
                sentence=f"{convention.sentence}, duplicates applied one by one",
                one_by_one=True,
            )


def _counts_steps(optimizer: Optimizer) -> bool:
    shared = optimizer.shared.parameters if optimizer.shared else ()
    rules = [rule.parameters for rule in optimizer.variants]
    return any("t" in names for names in (*rules, shared))


def _kept_in_float32(
    optimizer: Optimizer, seen: Mapping[str, Format]
) -> Iterator[list[str]]:
    """Hyperparameters that pass through float32: those seen, then those that may."""
    values = optimizer.coefficients(0, Arithmetic())
    names = (*optimizer.hyperparameters(), *optimizer.constants)
    hidden = [
        name
        for name in dict.fromkeys(names)
        if name not in seen and FLOAT32.round(values[name]) != values[name]
    ]
    for size in range(len(hidden) + 1):
        for also in combinations(hidden, size):
            if seen or also:
                yield [*seen, *also]


class BoundedArithmetic(Arithmetic):
    """Rules on ``Bounded`` numbers, rounded as a convention says."""

    def __init__(
        self,
        convention: Convention,
        stored: Format,
        platform: Platform,
        shared: Format = FLOAT64,
    ) -> None:
        self.convention = convention
        self.wide = np.longdouble if stored is FLOAT64 else np.float64
        self._tensors = Rounding(convention.tensors, platform)
        self._coefficients = Rounding(convention.coefficients, platform)
        self._powers = Rounding(convention.powers or convention.coefficients, platform)
        self._stored = Rounding(stored, platform)
        self._shared = Rounding(shared, platform)

    def lift(self, array: Array, *, state: bool = True) -> Bounded:
        """An array that is known exactly; a state that is not finite is marked."""
        value = np.asarray(array, dtype=self.wide)
        overflow: Any = ~np.isfinite(value) if state else False
        return Bounded(
            value,
            np.zeros(value.shape),
            self._stored,
            overflow=overflow if np.any(overflow) else False,
        )

    def tensor(self, array: Array) -> Bounded:
        x = array if isinstance(array, Bounded) else self.lift(array, state=False)
        bound = x.bound
        if self._tensors.format.name in self._tensors.platform.flushes:
            size = np.abs(x.value)
            bound = bound + np.where(
                size < self._tensors.format.smallest_normal, size, 0.0
            ).astype(np.float64)
        return Bounded(
            x.value, bound, self._tensors, branch=x.branch, overflow=x.overflow
        )

    def coefficient(self, value: Any, name: str) -> Bounded:
        if isinstance(value, Bounded):
            return Bounded(
                value.value, value.bound, self._coefficients, coefficient=True
            )
        place = self.convention.hyperparameters.get(name)
        value = np.asarray(value, dtype=self.wide)
        if place is not None:
            value = place.round(value)
        rounding = self._powers if name == "t" else self._coefficients
        value = rounding.format.round(value)
        return Bounded(value, 0.0, rounding, coefficient=True)

    def store(self, result: Bounded, like: Array) -> Bounded:
        stored = result.rounded_to(self._stored)
        bound = np.array(np.broadcast_to(stored.bound, stored.shape))
        return Bounded(
            np.array(stored.value),
            bound,
            self._stored,
            branch=stored.branch,
            overflow=stored.overflow,
        )

    def store_shared(self, result: Bounded) -> Bounded:
        return result.rounded_to(self._shared)
