"""AdaBelief, rectified (in two steps: momentum) and not, with and without a maximum."""

from __future__ import annotations

from math import sqrt

import reference
from tests.reference.worked import keras, worked
from tests.reference.worked.rectified_adam import M_HAT_1, M_HAT_2

EVERY_ROW = {"AdaBelief": {"m", "v", "vhat"}}

EPSILON, DECAY, RATE = 0.125, 0.25, 0.5
# g - m is 0.5, -1, 0.25 at the first step; -1.125, 0.75, 0.5625 at the second.
V1 = [0.25 * 0.5**2 + 0.125, 0.25 * 1 + 0.125, 0.25 * 0.25**2 + 0.125]
V2 = [
    0.75 * V1[0] + 0.25 * 1.125**2 + 0.125,
    0.75 * V1[1] + 0.25 * 0.75**2 + 0.125,
    0.75 * V1[2] + 0.25 * 0.5625**2 + 0.125,
]
# Rows: row 0 is left alone at the second step, row 1 has its first gradient there.
ROWS_V2 = [0.75 * V1[0], V1[1], V2[2]]
M_1, ROWS_M2 = [1.5, 0, 0.75], [0.25 * 1.5, -3, 2.4375]


def moved(w, direction):
    return w - RATE * (direction + DECAY * w)


def divided(m_hat, v, bias):
    return m_hat / (sqrt(v / bias) + EPSILON)


def case(v_2, rows_v_2, rectify, amsgrad):
    """``v_2`` divides the second step: ``v`` or its maximum."""
    opt = reference.AdaBelief(
        RATE, 0.25, 0.75, EPSILON, amsgrad, rectify, weight_decay=DECAY
    )

    def direction(m_hat, v, bias):
        return m_hat if rectify else divided(m_hat, v, bias)

    w1 = [
        moved(w, direction(m, v, 0.25))
        for w, m, v in zip([1, -2, 0.5], M_HAT_1, V1, strict=True)
    ]
    w2 = [
        moved(w, direction(m, v, 0.4375))
        for w, m, v in zip(w1, M_HAT_2, v_2, strict=True)
    ]
    row_1 = moved(-2, direction(-3 / 0.9375, rows_v_2[1], 0.4375))
    maxima = [
        {"vhat": values} if amsgrad else {}
        for values in (V1, v_2, [V1[0], 0, V1[2]], rows_v_2)
    ]
    dense = [
        (w1, {"m": keras.M1, "v": V1, **maxima[0]}),
        (w2, {"m": keras.M2, "v": V2, **maxima[1]}),
    ]
    sparse = [
        ([w1[0], -2, w1[2]], {"m": M_1, "v": [V1[0], 0, V1[2]], **maxima[2]}),
        ([w1[0], row_1, w2[2]], {"m": ROWS_M2, "v": ROWS_V2, **maxima[3]}),
    ]
    return opt, dense, sparse


@worked
def adabelief():
    return case(V2, ROWS_V2, rectify=False, amsgrad=False)


@worked
def adabelief_amsgrad():
    rows_v_2 = [V1[0], *ROWS_V2[1:]]
    return case(V2, rows_v_2, rectify=False, amsgrad=True)


@worked
def rectified():
    return case(V2, ROWS_V2, rectify=True, amsgrad=False)


@worked
def adabelief_rectified_amsgrad():
    rows_v_2 = [V1[0], *ROWS_V2[1:]]
    return case(V2, rows_v_2, rectify=True, amsgrad=True)
