"""Sparse policies: what a sparse gradient does to the rows it did not touch.

A policy says, tensor by tensor, on which rows the result of the dense rule (with a
zero gradient on untouched rows) is kept. ``w`` is the weight, other letters are the
rule's slots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
) -> dict[str, Array]:
    """The tensors after one sparse step.

    Args:
        update: the dense rule: tensors by symbol, ``g`` among them, to new tensors.
        tensors: the weight ``w`` and the slots, whole.
        gradient: unique indices.
        policy: which rows are kept.
    """
    touched = gradient.indices
    if all(policy.of(symbol) is TOUCHED for symbol in tensors):
        gathered = {symbol: tensor[touched] for symbol, tensor in tensors.items()}
        new_rows = update({**gathered, "g": gradient.values})
        return {s: _replaced(tensors[s], touched, new_rows[s]) for s in tensors}
    dense_gradient = zeros_like_rows(gradient.values, tensors["w"].shape)
    dense_gradient[touched] = gradient.values
    new = update({**tensors, "g": dense_gradient})
    return {
        symbol: new[symbol]
        if policy.of(symbol) is EVERY
        else _replaced(tensors[symbol], touched, new[symbol][touched])
        for symbol in tensors
    }


def _replaced(tensor: Any, touched: np.ndarray, new_rows: Any) -> Any:
    tensor = tensor.copy()
    tensor[touched] = new_rows
    return tensor
