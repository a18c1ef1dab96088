"""Fromage, by hand, with learning rate 3/4: kappa is 1 / root(1 + 9/16) = 4/5."""

from __future__ import annotations

from math import sqrt

import reference
from tests.reference.worked import worked

EVERY_ROW = {"Fromage": {"weight"}}


@worked
def fromage():
    length = sqrt(1 + 4 + 0.25)
    w1 = [
        0.8 * (1 - 0.75 * length / sqrt(4 + 16 + 1) * 2),
        0.8 * (-2 + 0.75 * length / sqrt(4 + 16 + 1) * 4),
        0.8 * (0.5 - 0.75 * length / sqrt(4 + 16 + 1) * 1),
    ]
    length_1 = sqrt(w1[0] ** 2 + w1[1] ** 2 + w1[2] ** 2)
    w2 = [
        0.8 * (w1[0] + 0.75 * length_1 / sqrt(9 + 9) * 3),
        0.8 * w1[1],
        0.8 * (w1[2] - 0.75 * length_1 / sqrt(9 + 9) * 3),
    ]
    r1 = [
        0.8 * (1 - 0.75 * length / sqrt(4 + 1) * 2),
        0.8 * -2,
        0.8 * (0.5 - 0.75 * length / sqrt(4 + 1) * 1),
    ]
    length_1 = sqrt(r1[0] ** 2 + r1[1] ** 2 + r1[2] ** 2)
    r2 = [
        0.8 * r1[0],
        0.8 * (r1[1] + 0.75 * length_1 / sqrt(16 + 9) * 4),
        0.8 * (r1[2] - 0.75 * length_1 / sqrt(16 + 9) * 3),
    ]
    return reference.Fromage(0.75), [(w1, {}), (w2, {})], [(r1, {}), (r2, {})]


@worked
def fromage_of_short_gradients():
    """Both norms are below 8 and count as 8, so that their ratio is 1."""
    w1 = [0.8 * (1 - 0.75 * 2), 0.8 * (-2 + 0.75 * 4), 0.8 * (0.5 - 0.75)]
    w2 = [0.8 * (w1[0] + 0.75 * 3), 0.8 * w1[1], 0.8 * (w1[2] - 0.75 * 3)]
    r1 = [w1[0], 0.8 * -2, w1[2]]
    r2 = [0.8 * r1[0], 0.8 * (r1[1] + 0.75 * 4), w2[2]]
    opt = reference.Fromage(0.75, min_norm=8.0)
    return opt, [(w1, {}), (w2, {})], [(r1, {}), (r2, {})]
