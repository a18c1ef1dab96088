"""Where other libraries have epsilon: Adam, AMSGrad, Adamax and Adagrad."""

from __future__ import annotations

from math import sqrt

import reference
from tests.reference.worked import W, keras, worked
from tests.reference.worked.adan import ROWS_M1, ROWS_M2, ROWS_V1, ROWS_V2

EVERY_ROW = {"CorrectedAdam": {"weight", "m", "v", "vhat"}}

V_HAT_1 = [v / 0.25 for v in keras.V1]  # 4, 16, 1
V_HAT_2 = [v / 0.4375 for v in keras.V2]


def case(due_1, due_2, rows_1, rows_2, largest=None, **options):
    """``due`` and ``rows`` are what is under the root, before epsilon is."""
    opt = reference.CorrectedAdam(0.5, 0.25, 0.75, 0.25, 2.0, **options)

    def moved(weights, moments, corrected, bias):
        return [
            w - 0.5 * (m / bias) / (sqrt(v + 2) + 0.25)
            for w, m, v in zip(weights, moments, corrected, strict=True)
        ]

    w1 = moved(W, keras.M1, due_1, 0.75)
    w2 = moved(w1, keras.M2, due_2, 0.9375)
    rows_w1 = moved(W, ROWS_M1, rows_1, 0.75)
    rows_w2 = moved(rows_w1, ROWS_M2, rows_2, 0.9375)
    maxima = [{"vhat": values} for values in largest] if largest else [{}] * 4
    dense = [
        (w1, {"m": keras.M1, "v": keras.V1, **maxima[0]}),
        (w2, {"m": keras.M2, "v": keras.V2, **maxima[1]}),
    ]
    sparse = [
        (rows_w1, {"m": ROWS_M1, "v": ROWS_V1, **maxima[2]}),
        (rows_w2, {"m": ROWS_M2, "v": ROWS_V2, **maxima[3]}),
    ]
    return opt, dense, sparse


def corrected(values, bias):
    return [v / bias for v in values]


@worked
def corrected_adam():
    return case(V_HAT_1, V_HAT_2, corrected(ROWS_V1, 0.25), corrected(ROWS_V2, 0.4375))


@worked
def corrected_amsgrad():
    largest = [keras.V1, [3, 4, 2.4375], ROWS_V1, [1, 4, 2.4375]]
    return case(
        V_HAT_1,
        corrected(largest[1], 0.4375),
        corrected(ROWS_V1, 0.25),
        corrected(largest[3], 0.4375),
        largest,
        amsgrad=True,
    )


@worked
def amsgrad_of_corrected():
    # Of 4, 16, 1 and 6.86, 6.86, 5.57.
    largest = [
        V_HAT_1,
        [V_HAT_2[0], 16, V_HAT_2[2]],
        [4, 0, 1],
        [4, 4 / 0.4375, V_HAT_2[2]],
    ]
    return case(*largest, largest, amsgrad=True, correct_first=True)


@worked
def adamax_epsilon_inside():
    opt = reference.Adamax(0.5, 0.25, 0.75, epsilon=0.25, epsilon_inside=True)
    u1 = [2.25, 4.25, 1.25]
    step_1, step_2 = 0.5 / (1 - 0.25), 0.5 / (1 - 0.25**2)
    w1 = [1 - step_1 * 1.5 / 2.25, -2 + step_1 * 3 / 4.25, 0.5 - step_1 * 0.75 / 1.25]
    u2 = [3.25, 0.75 * 4.25, 3.25]
    w2 = [
        w1[0] + step_2 * 1.875 / 3.25,
        w1[1] + step_2 * 0.75 / (0.75 * 4.25),
        w1[2] - step_2 * 2.4375 / 3.25,
    ]
    dense = [(w1, {"m": keras.M1, "v": u1}), (w2, {"m": keras.M2, "v": u2})]
    sparse = [
        ([w1[0], -2, w1[2]], {"m": ROWS_M1, "v": [2.25, 0, 1.25]}),
        (
            [w1[0], -2 + step_2 * 3 / 4.25, w2[2]],
            {"m": [1.5, -3, 2.4375], "v": [2.25, 4.25, 3.25]},
        ),
    ]
    return opt, dense, sparse


@worked
def adagrad_epsilon_inside():
    opt = reference.Adagrad(0.5, 1.0, epsilon=0.25, epsilon_inside=True)
    w1 = [
        1 - 0.5 * 2 / sqrt(5.25),
        -2 + 0.5 * 4 / sqrt(17.25),
        0.5 - 0.5 * 1 / sqrt(2.25),
    ]
    w2 = [w1[0] + 0.5 * 3 / sqrt(14.25), w1[1], w1[2] - 0.5 * 3 / sqrt(11.25)]
    dense = [
        (w1, {"accumulator": [5, 17, 2]}),
        (w2, {"accumulator": [14, 17, 11]}),
    ]
    sparse = [
        ([w1[0], -2, w1[2]], {"accumulator": [5, 1, 2]}),
        ([w1[0], w1[1], w2[2]], {"accumulator": [5, 17, 11]}),
    ]
    return opt, dense, sparse
