"""Schedule-free Adam: z takes the steps, x is their average, w is between the two."""

from __future__ import annotations

from math import sqrt

import reference
from tests.reference.worked import G1, G2, W, keras, worked
from tests.reference.worked.adan import ROWS_V1, ROWS_V2

EVERY_ROW = {"ScheduleFreeAdamW": {"weight", "offset", "velocity"}}


@worked
def schedule_free():
    opt = reference.ScheduleFreeAdamW(0.5, 0.75, 0.75, 0.25, warmup_steps=2)

    def first(w, g, v):  # rate 0.5 / 2; the average of one z is that z
        return w - 0.25 * g / (sqrt(v / 0.25) + 0.25)

    def second(z, g, v):
        new = z - 0.5 * g / (sqrt(v / 0.4375) + 0.25)
        average = (z + new) / 2
        return 0.25 * new + 0.75 * average, 0.75 * (new - average)

    w1 = [first(*each) for each in zip(W, G1, keras.V1, strict=True)]
    second_step = [second(*each) for each in zip(w1, G2, keras.V2, strict=True)]
    rows_w1 = [w1[0], -2, w1[2]]
    rows_second = [
        second(*each) for each in zip(rows_w1, [0, -4, 3], ROWS_V2, strict=True)
    ]
    dense = [
        (w1, {"offset": [0, 0, 0], "velocity": keras.V1}),
        (
            [w for w, _ in second_step],
            {"offset": [d for _, d in second_step], "velocity": keras.V2},
        ),
    ]
    sparse = [
        (rows_w1, {"offset": [0, 0, 0], "velocity": ROWS_V1}),
        (
            [w for w, _ in rows_second],
            {"offset": [d for _, d in rows_second], "velocity": ROWS_V2},
        ),
    ]
    return opt, dense, sparse
