"""ASGD: decay of weights and rate. The average begins with the third step."""

from __future__ import annotations

from math import sqrt

import reference
from tests.reference.worked import G1, G2, W, worked

EVERY_ROW = {"ASGD": {"weight", "ax"}}


@worked
def asgd():
    opt = reference.ASGD(0.5, lambd=0.25, alpha=0.5, t0=0.0)
    eta = 0.5 / sqrt(1 + 0.25 * 0.5)

    def first(w, g):
        return w * (1 - 0.25 * 0.5) - 0.5 * g

    def second(w, g):
        return w * (1 - 0.25 * eta) - eta * g

    w1 = [first(w, g) for w, g in zip(W, G1, strict=True)]
    w2 = [second(w, g) for w, g in zip(w1, G2, strict=True)]
    rows_1 = [w1[0], first(-2, 0), w1[2]]
    rows_2 = [second(w1[0], 0), second(rows_1[1], -4), w2[2]]
    dense = [(w1, {"ax": w1}), (w2, {"ax": w2})]
    sparse = [(rows_1, {"ax": rows_1}), (rows_2, {"ax": rows_2})]
    return opt, dense, sparse
