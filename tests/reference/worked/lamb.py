"""LAMB, by hand: beta_1 = 1/4, beta_2 = 3/4, epsilon = 1/4, a half for the rest."""

from __future__ import annotations

from math import sqrt

import numpy as np

import reference
from tests.reference.worked import W, worked

EVERY_ROW = {"LAMB": {"weight", "m", "v"}}

M1, M1_OF_ROWS = [1.5, -3, 0.75], [1.5, 0, 0.75]  # 3/4 g
V1, V1_OF_ROWS = [1, 4, 0.25], [1, 0, 0.25]  # 1/4 g^2
M2 = [0.25 * 1.5 - 0.75 * 3, 0.25 * -3, 0.25 * 0.75 + 0.75 * 3]
V2 = [0.75 * 1 + 0.25 * 9, 0.75 * 4, 0.75 * 0.25 + 0.25 * 9]
M2_OF_ROWS = [0.25 * 1.5, 0.75 * -4, M2[2]]
V2_OF_ROWS = [0.75 * 1, 0.25 * 16, V2[2]]
BIAS_OF_M, BIAS_OF_V = 1 - 0.25**2, 1 - 0.75**2
# Adam's direction, corrected: g / (|g| + 1/4) at the first step.
A1 = [2 / 2.25, -4 / 4.25, 1 / 1.25]
A1_OF_ROWS = [2 / 2.25, 0, 1 / 1.25]
A2, A2_OF_ROWS = (
    [
        m / BIAS_OF_M / (sqrt(v / BIAS_OF_V) + 0.25)
        for m, v in zip(moments, squares, strict=True)
    ]
    for moments, squares in ((M2, V2), (M2_OF_ROWS, V2_OF_ROWS))
)


def steps(step):
    """Dense and sparse steps from Adam's directions, by ``step(w, direction)``."""

    def run(directions, slots):
        w = np.array(W)
        for direction, (m, v) in zip(directions, slots, strict=True):
            w = step(w, np.array(direction))
            yield w, {"m": m, "v": v}

    return (
        list(run((A1, A2), ((M1, V1), (M2, V2)))),
        list(
            run(
                (A1_OF_ROWS, A2_OF_ROWS),
                ((M1_OF_ROWS, V1_OF_ROWS), (M2_OF_ROWS, V2_OF_ROWS)),
            )
        ),
    )


def length(vector):
    return sqrt(vector[0] ** 2 + vector[1] ** 2 + vector[2] ** 2)


def lamb_with(**options):
    return reference.LAMB(
        0.5, beta_1=0.25, beta_2=0.75, epsilon=0.25, weight_decay=0.5, **options
    )


@worked
def lamb():
    def step(w, a):
        u = a + w / 2
        return w - 0.5 * length(w) / length(u) * u

    return lamb_with(), *steps(step)


@worked
def lamb_decay_first():
    def step(w, a):
        w = w - w / 4
        return w - 0.5 * length(w) / length(a) * a

    return lamb_with(decay_first=True), *steps(step)


@worked
def lamb_without_adaptation():
    return lamb_with(layer_adaptation=False), *steps(lambda w, a: w - (a + w / 2) / 2)
