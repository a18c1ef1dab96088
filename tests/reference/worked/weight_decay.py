"""Decoupled weight decay: a quarter of the weight goes before each step.

No slot sees it, so every step adds what it adds without the decay, to three quarters
of the weight.
"""

from __future__ import annotations

import reference
from tests.reference.worked import W, keras, worked

EVERY_ROW = {
    "AdamW": keras.EVERY_ROW["Adam"],
    "SGDW": keras.EVERY_ROW["SGD"],
    "NadamW": keras.EVERY_ROW["Nadam"],
    "AdamaxW": keras.EVERY_ROW["Adamax"],
}

DECAY = 0.25
ALL = [True, True, True]
TOUCHED = [True, False, True], [False, True, True]


def decayed(steps, rows):
    """The steps with a decay of the rows that each step decays."""
    w, before, new = W, W, []
    for (after, slots), decays in zip(steps, rows, strict=True):
        kept = [1 - DECAY * each for each in decays]
        w = [k * x + (b - a) for k, x, b, a in zip(kept, w, after, before, strict=True)]
        before = after
        new.append((w, slots))
    return new


def touched(case, opt):
    _, dense, sparse = case()
    return opt, decayed(dense, [ALL, ALL]), decayed(sparse, TOUCHED)


def every(case, opt):
    _, dense, sparse = case()
    return opt, decayed(dense, [ALL, ALL]), decayed(sparse, [ALL, ALL])


@worked
def adamw():
    opt = reference.AdamW(0.5, 0.25, 0.75, 0.25, weight_decay=DECAY)
    return touched(keras.adam, opt)


@worked
def adamw_every_row():
    opt = reference.AdamW(
        0.5,
        0.25,
        0.75,
        0.25,
        weight_decay=DECAY / 0.5,
        decay_rows="every_row",
        decay_times_learning_rate=True,
    )
    return every(keras.adam, opt)


@worked
def sgdw():
    return touched(keras.sgd, reference.SGDW(0.25, weight_decay=DECAY))


@worked
def sgdw_every_row():
    opt = reference.SGDW(0.25, momentum=0.5, weight_decay=DECAY, decay_rows="every_row")
    return every(keras.sgd_momentum, opt)


@worked
def sgdw_every_row_by_learning_rate():
    opt = reference.SGDW(
        0.25,
        momentum=0.5,
        weight_decay=DECAY / 0.25,
        decay_rows="every_row",
        decay_times_learning_rate=True,
    )
    return every(keras.sgd_momentum, opt)


@worked
def nadamw():
    opt = reference.NadamW(
        0.5, 0.25, 0.75, 0.25, schedule_decay=2.0, weight_decay=DECAY
    )
    return every(keras.nadam, opt)


@worked
def adamaxw():
    opt = reference.AdamaxW(0.5, 0.25, 0.75, 0.25, weight_decay=DECAY / 0.5)
    return every(keras.adamax, opt)
