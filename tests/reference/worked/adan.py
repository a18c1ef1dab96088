"""Adan, and the optimistic rules: what they do with the change of the gradient."""

from __future__ import annotations

from math import sqrt

import reference
from tests.reference.worked import G1, G2, W, keras, worked

EVERY_ROW = {
    "Adan": {"weight", "m", "v", "n", "previous_gradient"},
    "OptimisticGradientDescent": {"weight", "previous_gradient"},
    "OptimisticAdam": {"weight", "m", "v", "direction"},
}

CHANGES = [-5, 4, 2]  # G2 - G1
ROWS_M1, ROWS_V1 = [1.5, 0, 0.75], [1, 0, 0.25]
ROWS_M2, ROWS_V2 = [0.25 * 1.5, -3, 2.4375], [0.75 * 1, 4, 2.4375]


@worked
def adan():
    opt = reference.Adan(0.5, 0.25, 0.75, 0.75, 0.25)
    # m / 0.75 is g, n / 0.25 its square.
    w1 = [1 - 0.5 * 2 / 2.25, -2 + 0.5 * 4 / 4.25, 0.5 - 0.5 * 1 / 1.25]

    def second(w, m, v, n):
        u = m / 0.9375 + 0.75 * v / 0.4375
        return w - 0.5 * u / (sqrt(n / 0.4375) + 0.25)

    v2 = [0.25 * d for d in CHANGES]
    n2 = [  # g + 0.75 * change
        0.75 * 1 + 0.25 * (-3 - 3.75) ** 2,
        0.75 * 4 + 0.25 * (0 + 3) ** 2,
        0.75 * 0.25 + 0.25 * (3 + 1.5) ** 2,
    ]
    w2 = [second(*each) for each in zip(w1, keras.M2, v2, n2, strict=True)]
    dense = [
        (w1, {"m": keras.M1, "v": [0, 0, 0], "n": keras.V1, "previous_gradient": G1}),
        (w2, {"m": keras.M2, "v": v2, "n": n2, "previous_gradient": G2}),
    ]
    # At the second step the gradient of row 0 falls from 2 to 0, that of row 1 from 0
    # to -4.
    rows_v2 = [0.25 * -2, 0.25 * -4, v2[2]]
    rows_n2 = [0.75 * 1 + 0.25 * 1.5**2, 0.25 * (-4 - 3) ** 2, n2[2]]
    rows_w2 = [
        second(*each)
        for each in zip([w1[0], -2, w1[2]], ROWS_M2, rows_v2, rows_n2, strict=True)
    ]
    sparse = [
        (
            [w1[0], -2, w1[2]],
            {
                "m": ROWS_M1,
                "v": [0, 0, 0],
                "n": ROWS_V1,
                "previous_gradient": [2, 0, 1],
            },
        ),
        (
            rows_w2,
            {
                "m": ROWS_M2,
                "v": rows_v2,
                "n": rows_n2,
                "previous_gradient": [0, -4, 3],
            },
        ),
    ]
    return opt, dense, sparse


@worked
def optimistic():
    opt = reference.OptimisticGradientDescent(0.5, alpha=0.25, beta=0.75)
    w1 = [w - 0.5 * 0.25 * g for w, g in zip(W, G1, strict=True)]
    w2 = [
        w - 0.5 * (0.25 * g + 0.75 * change)
        for w, g, change in zip(w1, G2, CHANGES, strict=True)
    ]
    dense = [(w1, {"previous_gradient": G1}), (w2, {"previous_gradient": G2})]
    sparse = [
        ([w1[0], -2, w1[2]], {"previous_gradient": [2, 0, 1]}),
        (
            [
                w1[0] - 0.5 * (0.75 * -2),
                -2 - 0.5 * (0.25 * -4 + 0.75 * -4),
                w2[2],
            ],
            {"previous_gradient": [0, -4, 3]},
        ),
    ]
    return opt, dense, sparse


def case(nesterov):
    opt = reference.OptimisticAdam(0.5, 0.25, 0.75, 0.25, 0.75, 0.25, nesterov)

    def first(m, v, g):
        ahead = 0.25 * m / (1 - 0.25**2) + 0.75 * g / 0.75
        return (ahead if nesterov else m / 0.75) / (sqrt(v / 0.25) + 0.25)

    def second(m, v, g):
        ahead = 0.25 * m / (1 - 0.25**3) + 0.75 * g / 0.9375
        return (ahead if nesterov else m / 0.9375) / (sqrt(v / 0.4375) + 0.25)

    def moved(weights, new, old):
        return [
            w - 0.5 * (0.25 * u + 0.75 * (u - d))
            for w, u, d in zip(weights, new, old, strict=True)
        ]

    u1 = [first(*each) for each in zip(keras.M1, keras.V1, G1, strict=True)]
    u2 = [second(*each) for each in zip(keras.M2, keras.V2, G2, strict=True)]
    w1 = moved(W, u1, u1)
    rows_u1 = [u1[0], 0, u1[2]]
    rows_w1 = [w1[0], -2, w1[2]]
    rows_u2 = [second(*each) for each in zip(ROWS_M2, ROWS_V2, [0, -4, 3], strict=True)]
    dense = [
        (w1, {"m": keras.M1, "v": keras.V1, "direction": u1}),
        (moved(w1, u2, u1), {"m": keras.M2, "v": keras.V2, "direction": u2}),
    ]
    sparse = [
        (rows_w1, {"m": ROWS_M1, "v": ROWS_V1, "direction": rows_u1}),
        (
            moved(rows_w1, rows_u2, rows_u1),
            {"m": ROWS_M2, "v": ROWS_V2, "direction": rows_u2},
        ),
    ]
    return opt, dense, sparse


@worked
def optimistic_adam():
    return case(nesterov=False)


@worked
def optimistic_nadam():
    return case(nesterov=True)
