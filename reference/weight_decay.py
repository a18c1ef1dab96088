"""Decoupled weight decay: lines that come before those of any rule.

Loshchilov, Hutter, *Decoupled Weight Decay Regularization*, 2017, arXiv:1711.05101,
algorithms 1 and 2: the weights shrink by a part of themselves, and no moment sees it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from .rule import Rule, framed
from .sparse import EVERY, POLICIES, TOUCHED, rows


def every_row(w, weight_decay):
    w = w - weight_decay * w
    return w


def every_row_by_learning_rate(w, weight_decay, learning_rate):
    w = w - learning_rate * weight_decay * w
    return w


def touched_rows(w, weight_decay, touched):
    w = np.where(touched, w - weight_decay * w, w)
    return w


def touched_rows_by_learning_rate(w, weight_decay, learning_rate, touched):
    w = np.where(touched, w - learning_rate * weight_decay * w, w)
    return w


def remembered(w, weight_decay):
    decayed = w - weight_decay * w
    w = decayed
    return w


def remembered_by_learning_rate(w, weight_decay, learning_rate):
    decayed = w - learning_rate * weight_decay * w
    w = decayed
    return w


def untouched_rows_too(w, touched, decayed):
    w = np.where(touched, w, decayed)
    return w


@cache
def decaying(
    rule: Rule, sparse: str | None, decay_rows: str, times_learning_rate: bool
) -> Rule:
    """The rule with decoupled weight decay before its first line.

    Args:
        rule: the rule.
        sparse: the sparse policy that takes the place of the rule's own.
        decay_rows: the rows that a sparse gradient decays; all of them if ``sparse`` is
            ``"every_row"``, which makes a sparse gradient act as a dense one.
        times_learning_rate: whether the decay is multiplied by the learning rate.

    Returns:
        a rule, always the same for the same arguments. Where it decays rows on which
        the given rule does not move the weight, its last line decays these.
    """
    before: Callable[..., Any]
    policy = POLICIES[sparse] if sparse else rule.sparse
    moves = policy.of("w")
    decays = EVERY if "every_row" in (sparse, decay_rows) else TOUCHED
    if (moves, decays) == (TOUCHED, EVERY):
        before = (remembered, remembered_by_learning_rate)[times_learning_rate]
        kept = {symbol: policy.of(symbol) for symbol in rule.slots}
        return framed(rule, before, untouched_rows_too, rows(**kept, w=EVERY))
    if (moves, decays) == (EVERY, TOUCHED):
        before = (touched_rows, touched_rows_by_learning_rate)[times_learning_rate]
    else:
        before = (every_row, every_row_by_learning_rate)[times_learning_rate]
    return framed(rule, before, None, policy)


def normalized_weight_decay(
    norm: float, batch_size: int, samples: int, epochs: int
) -> float:
    """The decay of a step, ``norm * sqrt(batch_size / (samples * epochs))``.

    Loshchilov, Hutter 2017, arXiv:1711.05101, appendix B.1: with it the best ``norm``
    hardly depends on how long the training is. keras-adamw leaves out the batch size.

    Args:
        norm: the normalised decay, 0.025 to 0.05 in the paper; ``[0, inf)``.
        batch_size, samples, epochs: examples of a step, of an epoch, and how many
            epochs until the end, or until the next warm restart; each positive.

    Raises:
        ValueError: an argument outside its domain.

    >>> normalized_weight_decay(0.5, batch_size=64, samples=256, epochs=4)
    0.125
    """
    if not norm >= 0:
        raise ValueError(f"norm must lie in [0, inf), got {norm}")
    sizes = {"batch_size": batch_size, "samples": samples, "epochs": epochs}
    for name, value in sizes.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value}")
    return norm * math.sqrt(batch_size / (samples * epochs))
