"""COCOB: with alpha = 2, the first bet is a half against the sign of the gradient."""

from __future__ import annotations

import reference
from tests.reference.worked import worked

EVERY_ROW = {"COCOB": set()}


@worked
def cocob():
    opt = reference.COCOB(alpha=2.0, learning_rate=0.5)
    w1 = [1 - 0.5 * 0.5, -2 + 0.5 * 0.5, 0.5 - 0.5 * 0.5]
    slots_1 = {
        "lr": [2, 4, 1],
        "grad_norm_sum": [2, 4, 1],
        "gradients_sum": [2, -4, 1],
        "tilde_w": [-0.5, 0.5, -0.5],
        "reward": [0, 0, 0],
    }
    # The third bet wins 3 * 0.5; the first loses what it does not have.
    bets = [1 / (3 * (5 + 3)) * 3, 0.5, -4 / (3 * (4 + 3)) * (3 + 1.5)]
    w2 = [w1[0] + 0.5 * (bets[0] + 0.5), w1[1], w1[2] + 0.5 * (bets[2] + 0.5)]
    slots_2 = {
        "lr": [3, 4, 3],
        "grad_norm_sum": [5, 4, 4],
        "gradients_sum": [-1, -4, 4],
        "tilde_w": bets,
        "reward": [0, 0, 1.5],
    }
    start = {"lr": 1e-8}
    of_rows_1 = {
        name: [values[0], start.get(name, 0), values[2]]
        for name, values in slots_1.items()
    }
    of_rows_2 = {
        name: [slots_1[name][0], slots_1[name][1], values[2]]
        for name, values in slots_2.items()
    }
    dense = [(w1, slots_1), (w2, slots_2)]
    sparse = [
        ([w1[0], -2, w1[2]], of_rows_1),
        ([w1[0], w1[1], w2[2]], of_rows_2),
    ]
    return opt, dense, sparse
