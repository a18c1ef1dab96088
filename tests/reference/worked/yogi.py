"""Yogi with sign and tanh, with and without momentum; and in optax' convention."""

from __future__ import annotations

from math import copysign, sqrt, tanh

import reference
from tests.reference.worked import keras, worked

EVERY_ROW = {"Yogi": {"m"}, "OptaxYogi": {"weight", "m", "v"}}

# From v = 3: squares 4, 16, 1, of which a quarter is added or taken.
V1 = [3 + 0.25 * 4, 3 + 0.25 * 16, 3 - 0.25 * 1]  # 4, 7, 2.75
V2 = [4 + 0.25 * 9, 7, 2.75 + 0.25 * 9]  # 6.25, 7, 5
SOFT_V1 = [
    3 + 0.25 * tanh(10 * 1) * 4,
    3 + 0.25 * tanh(10 * 13) * 16,
    3 - 0.25 * tanh(10 * 2) * 1,
]
SOFT_V2 = [
    SOFT_V1[0] + 0.25 * tanh(10 * (9 - SOFT_V1[0])) * 9,
    SOFT_V1[1],
    SOFT_V1[2] + 0.25 * tanh(10 * (9 - SOFT_V1[2])) * 9,
]
M_1, ROWS_M2 = [1.5, 0, 0.75], [0.25 * 1.5, -3, 2.4375]
L1, L2 = 0.25, 0.5


def proximal(w, direction, v, step_size):
    rate = step_size / (sqrt(v) + 0.25)
    w = w - rate * direction
    return copysign(max(abs(w) - rate * L1, 0), w) / (1 + rate * L2)


def case(beta1, activation, v1, v2, directions, steps):
    opt = reference.Yogi(0.5, beta1, 0.75, 0.25, L1, L2, 3.0, activation)
    w1 = [
        proximal(w, d, v, steps[0])
        for w, d, v in zip([1, -2, 0.5], directions[0], v1, strict=True)
    ]
    w2 = [
        proximal(w, d, v, steps[1])
        for w, d, v in zip(w1, directions[1], v2, strict=True)
    ]
    # Row 1 comes at the second step, with the square that the second weight has at the
    # first; row 0 stays where it was.
    row_1 = proximal(-2, directions[2], v1[1], steps[1])
    moments = [{"m": m} if beta1 else {} for m in (keras.M1, keras.M2, M_1, ROWS_M2)]
    dense = [(w1, {"v": v1, **moments[0]}), (w2, {"v": v2, **moments[1]})]
    sparse = [
        ([w1[0], -2, w1[2]], {"v": [v1[0], 3, v1[2]], **moments[2]}),
        ([w1[0], row_1, w2[2]], {"v": [v1[0], v1[1], v2[2]], **moments[3]}),
    ]
    return opt, dense, sparse


MOMENTS = [keras.M1, keras.M2, -3]
ADAM_STEPS = [keras.STEP_1, keras.STEP_2]
GRADIENTS = [[2, -4, 1], [-3, 0, 3], -4]
STEPS = [0.5 * sqrt(1 - 0.75), 0.5 * sqrt(1 - 0.75**2)]


@worked
def yogi():
    return case(0.25, "sign", V1, V2, MOMENTS, ADAM_STEPS)


@worked
def soft_yogi():
    return case(0.25, "tanh", SOFT_V1, SOFT_V2, MOMENTS, ADAM_STEPS)


@worked
def yogi_without_momentum():
    return case(0.0, "sign", V1, V2, GRADIENTS, STEPS)


@worked
def soft_yogi_without_momentum():
    return case(0.0, "tanh", SOFT_V1, SOFT_V2, GRADIENTS, STEPS)


@worked
def optax_yogi():
    opt = reference.OptaxYogi(0.5, 0.25, 0.75, 0.25, initial_accumulator_value=3.0)
    m1 = [0.25 * 3 + 0.75 * 2, 0.25 * 3 - 0.75 * 4, 0.25 * 3 + 0.75 * 1]
    m2 = [0.25 * m1[0] - 0.75 * 3, 0.25 * m1[1], 0.25 * m1[2] + 0.75 * 3]

    def moved(w, m, v, bias_1, bias_2):
        return w - 0.5 * (m / bias_1) / (sqrt(v / bias_2) + 0.25)

    first, second = (0.75, 0.25), (0.9375, 0.4375)
    w1 = [moved(w, m, v, *first) for w, m, v in zip([1, -2, 0.5], m1, V1, strict=True)]
    w2 = [moved(w, m, v, *second) for w, m, v in zip(w1, m2, V2, strict=True)]
    dense = [(w1, {"m": m1, "v": V1}), (w2, {"m": m2, "v": V2})]
    # Row 1 without a gradient: m decays from 3, and its weight moves; v stays.
    waiting = moved(-2, 0.25 * 3, 3, *first)
    rows_m2 = [0.25 * m1[0], 0.25 * 0.75 - 0.75 * 4, m2[2]]
    sparse = [
        ([w1[0], waiting, w1[2]], {"m": [m1[0], 0.75, m1[2]], "v": [4, 3, 2.75]}),
        (
            [
                moved(w1[0], rows_m2[0], 4, *second),
                moved(waiting, rows_m2[1], 7, *second),
                w2[2],
            ],
            {"m": rows_m2, "v": [4, 7, 5]},
        ),
    ]
    return opt, dense, sparse
