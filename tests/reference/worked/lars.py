"""LARS, by hand: halves, momentum 3/4, trust coefficient 1."""

from __future__ import annotations

from math import sqrt

import numpy as np

import reference
from tests.reference.worked import G1, G2, W, worked

EVERY_ROW = {"LARS": {"weight", "momentum"}}

G1_OF_ROWS, G2_OF_ROWS = [2, 0, 1], [0, -4, 3]


def length(vector):
    return sqrt(vector[0] ** 2 + vector[1] ** 2 + vector[2] ** 2)


def steps(step):
    """Dense and sparse steps, by ``step(w, g, v) -> (w, v)``."""

    def run(gradients):
        w, v = np.array(W), np.zeros(3)
        for g in gradients:
            w, v = step(w, np.array(g), v)
            yield w, {"momentum": v}

    return list(run((G1, G2))), list(run((G1_OF_ROWS, G2_OF_ROWS)))


def lars(**options):
    return reference.LARS(
        0.5, momentum=0.75, weight_decay_rate=0.5, eeta=1.0, **options
    )


@worked
def lars_classic():
    def step(w, g, v):
        g = g + w / 2
        v = 0.75 * v + 0.5 * (length(w) / length(g)) * g
        return w - v, v

    return lars(), *steps(step)


@worked
def lars_classic_nesterov():
    def step(w, g, v):
        g = g + w / 2
        scaled = 0.5 * (length(w) / length(g)) * g
        v = 0.75 * v + scaled
        return w - 0.75 * v - scaled, v

    return lars(nesterov=True), *steps(step)


@worked
def lars_popular():
    def step(w, g, v):
        v = 0.75 * v + g + w / 2
        return w - 0.5 * (length(w) / length(v)) * v, v

    return lars(classic_momentum=False), *steps(step)


@worked
def lars_popular_nesterov():
    def step(w, g, v):
        v = 0.75 * v + g + w / 2
        u = 0.75 * v + g + w / 2
        return w - 0.5 * (length(w) / length(u)) * u, v

    return lars(classic_momentum=False, nesterov=True), *steps(step)
