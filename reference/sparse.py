"""Sparse policies: what a sparse gradient does to the rows it did not touch.

A policy says, tensor by tensor, on which rows the result of the dense rule (with a
zero gradient on untouched rows) is kept. ``w`` is the weight, other letters are the
rule's slots.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from .gradients import Array, IndexedSlices, zeros_like_rows


class Rows(Enum):
    """The rows on which a tensor takes the result of the rule."""

    EVERY = "every"
    TOUCHED = "touched"


EVERY, TOUCHED = Rows.EVERY, Rows.TOUCHED


@dataclass(frozen=True)
class SparsePolicy:
    """The rows kept for each tensor; ``default`` for those not named.

    >>> str(rows(m=EVERY, v=EVERY, w=TOUCHED))
    'm, v on every row; w on touched rows'
    >>> str(every_row), str(touched_rows)
    ('every row', 'touched rows')
    """

    default: Rows
    named: Mapping[str, Rows] = field(default_factory=dict)

    def of(self, symbol: str) -> Rows:
        """The rows on which the tensor called ``symbol`` changes."""
        return self.named.get(symbol, self.default)

    def __str__(self) -> str:
        if not self.named:
            return f"{self.default.value} row" + "s" * (self.default is TOUCHED)
        return "; ".join(
            f"{', '.join(names)} on {SparsePolicy(kept)}"
            for kept in Rows
            if (names := [s for s, r in self.named.items() if r is kept])
        )


every_row = SparsePolicy(EVERY)
"""Every tensor on every row: the same as dense on the scattered gradient."""

touched_rows = SparsePolicy(TOUCHED)
"""Every tensor on touched rows only ("lazy")."""

POLICIES = {"every_row": every_row, "touched_rows": touched_rows}


def rows(**named: Rows) -> SparsePolicy:
    """A mixture by name, as ``rows(m=EVERY, v=EVERY, w=TOUCHED)``."""
    return SparsePolicy(TOUCHED, named)


def apply_sparse(
    update: Callable[[dict[str, Array]], dict[str, Array]],
    tensors: dict[str, Array],
    gradient: IndexedSlices,
    policy: SparsePolicy,
    *,
    by_rows: bool,
    whole: Collection[str] = (),
) -> dict[str, Array]:
    """The tensors after one sparse step.

    Args:
        update: the dense rule: tensors by symbol, ``g`` and the mask ``touched`` among
            them, to new tensors.
        tensors: the weight ``w`` and the slots, whole.
        gradient: unique indices.
        policy: which rows are kept.
        by_rows: the rule may be applied to some rows alone.
        whole: tensors without rows that go with the weight's; they change as a whole.
    """
    rows, shape = gradient.indices, tensors["w"].shape
    if by_rows and all(policy.of(symbol) is TOUCHED for symbol in tensors):
        gathered = {symbol: tensor[rows] for symbol, tensor in tensors.items()}
        new_rows = update({**gathered, "g": gradient.values, "touched": np.True_})
        return {s: _replaced(tensors[s], rows, new_rows[s]) for s in tensors}
    dense_gradient = zeros_like_rows(gradient.values, shape)
    dense_gradient[rows] = gradient.values
    touched = np.zeros((shape[0],) + (1,) * (len(shape) - 1), bool)
    touched[rows] = True
    new = update({**tensors, "g": dense_gradient, "touched": touched})
    return {
        symbol: new[symbol]
        if policy.of(symbol) is EVERY or symbol in whole
        else _replaced(tensors[symbol], rows, new[symbol][rows])
        for symbol in tensors
    }


def _replaced(tensor: Any, touched: np.ndarray, new_rows: Any) -> Any:
    tensor = tensor.copy()
    tensor[touched] = new_rows
    return tensor
