"""Lion: every weight moves by the learning rate, or not at all."""

from __future__ import annotations

import reference
from tests.reference.worked import worked

EVERY_ROW = {"Lion": {"weight", "m"}}


@worked
def lion():
    opt = reference.Lion(0.5, beta_1=0.75, beta_2=0.25)
    w1 = [1 - 0.5, -2 + 0.5, 0.5 - 0.5]
    m1 = [0.75 * 2, 0.75 * -4, 0.75 * 1]  # 1.5, -3, 0.75
    # 0.75 * m1 + 0.25 * g: 0.375, -2.25, 1.3125; beta_2 in its place: negative first.
    w2 = [w1[0] - 0.5, w1[1] + 0.5, w1[2] - 0.5]
    m2 = [0.25 * 1.5 - 0.75 * 3, 0.25 * -3, 0.25 * 0.75 + 0.75 * 3]
    dense = [(w1, {"m": m1}), (w2, {"m": m2})]
    sparse = [
        ([w1[0], -2, w1[2]], {"m": [1.5, 0, 0.75]}),  # sign of zero: row 1 stays
        ([w1[0] - 0.5, -2 + 0.5, w2[2]], {"m": [0.25 * 1.5, 0.75 * -4, m2[2]]}),
    ]
    return opt, dense, sparse
