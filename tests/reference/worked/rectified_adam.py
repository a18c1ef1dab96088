"""RAdam. In two steps the average is too short to rectify anything: momentum alone."""

from __future__ import annotations

import reference
from tests.reference.worked import keras, worked

EVERY_ROW = {
    "RectifiedAdam": {"m", "v", "vhat"},
    "RAdam": {"weight", "m", "v"},
}

# keras.M1 / (1 - 0.25) and keras.M2 / (1 - 0.25**2).
M_HAT_1 = [2, -4, 1]
M_HAT_2 = [-1.875 / 0.9375, -0.75 / 0.9375, 2.4375 / 0.9375]  # -2, -0.8, 2.6
SLOTS_1 = {"m": [1.5, 0, 0.75], "v": [1, 0, 0.25]}  # after the first sparse step
SLOTS_2 = {"m": [0.25 * 1.5, -3, 2.4375], "v": [0.75 * 1, 4, 2.4375]}


@worked
def rectified_adam():
    opt = reference.RectifiedAdam(0.5, beta_1=0.25, beta_2=0.75, weight_decay=0.25)
    w1 = [
        1 - 0.5 * (2 + 0.25 * 1),
        -2 - 0.5 * (-4 + 0.25 * -2),
        0.5 - 0.5 * (1 + 0.25 * 0.5),
    ]
    w2 = [w - 0.5 * (m + 0.25 * w) for w, m in zip(w1, M_HAT_2, strict=True)]
    dense = [
        (w1, {"m": keras.M1, "v": keras.V1}),
        (w2, {"m": keras.M2, "v": keras.V2}),
    ]
    sparse = [
        ([w1[0], -2, w1[2]], SLOTS_1),
        ([w1[0], -2 - 0.5 * (-3 / 0.9375 + 0.25 * -2), w2[2]], SLOTS_2),
    ]
    return opt, dense, sparse


@worked
def rectified_amsgrad():
    """The learning rate is at its height after one step of two, then at its least."""
    opt = reference.RectifiedAdam(
        0.5,
        beta_1=0.25,
        beta_2=0.75,
        amsgrad=True,
        total_steps=2,
        warmup_proportion=0.5,
        min_lr=0.25,
    )
    w1 = [1 - 0.5 * 2, -2 + 0.5 * 4, 0.5 - 0.5 * 1]
    w2 = [w - 0.25 * m for w, m in zip(w1, M_HAT_2, strict=True)]
    dense = [
        (w1, {"m": keras.M1, "v": keras.V1, "vhat": keras.V1}),
        (w2, {"m": keras.M2, "v": keras.V2, "vhat": [3, 4, 2.4375]}),
    ]
    sparse = [
        ([w1[0], -2, w1[2]], {**SLOTS_1, "vhat": [1, 0, 0.25]}),
        (
            [w1[0], -2 + 0.25 * 3 / 0.9375, w2[2]],
            {**SLOTS_2, "vhat": [1, 4, 2.4375]},
        ),
    ]
    return opt, dense, sparse


@worked
def radam():
    opt = reference.RAdam(0.5, beta_1=0.25, beta_2=0.75)
    w1 = [1 - 0.5 * 2, -2 + 0.5 * 4, 0.5 - 0.5 * 1]
    w2 = [w - 0.5 * m for w, m in zip(w1, M_HAT_2, strict=True)]
    dense = [
        (w1, {"m": keras.M1, "v": keras.V1}),
        (w2, {"m": keras.M2, "v": keras.V2}),
    ]
    sparse = [
        ([w1[0], -2, w1[2]], SLOTS_1),
        (  # row 0 moves on
            [w1[0] - 0.5 * 0.375 / 0.9375, -2 + 0.5 * 3 / 0.9375, w2[2]],
            SLOTS_2,
        ),
    ]
    return opt, dense, sparse
