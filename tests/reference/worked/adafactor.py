"""Adafactor, by hand: beta_2 is 0 at the first step and 1 - 2^-1 at the second."""

from __future__ import annotations

from math import sqrt

import numpy as np

import reference
from tests.reference.worked import G1, G2, W, worked, worked_matrix

EVERY_ROW = {"Adafactor": {"weight", "r", "c", "v"}}
OPTIONS = {"beta_2_decay": -1.0, "epsilon_1": 0.25, "clip_threshold": 0.5}


def rms(values):
    return sqrt(sum(v**2 for v in np.ravel(values)) / np.size(values))


def moved(w, u, rate):
    """The directions here are longer than the threshold: they are scaled to it."""
    assert rms(u) > 0.5
    return w - rate * rms(w) * u / (rms(u) / 0.5)


def unfactored_steps(rates):
    g1, g2 = np.array(G1), np.array(G2)
    v1 = g1**2 + 0.25
    w1 = moved(np.array(W), g1 / np.sqrt(v1), rates[0])
    v2 = 0.5 * v1 + 0.5 * (g2**2 + 0.25)
    w2 = moved(w1, g2 / np.sqrt(v2), rates[1])
    s1, s2 = np.array([2, 0, 1]), np.array([0, -4, 3])
    n1 = s1**2 + 0.25
    x1 = moved(np.array(W), s1 / np.sqrt(n1), rates[0])
    n2 = 0.5 * n1 + 0.5 * (s2**2 + 0.25)
    x2 = moved(x1, s2 / np.sqrt(n2), rates[1])
    return [(w1, {"v": v1}), (w2, {"v": v2})], [(x1, {"v": n1}), (x2, {"v": n2})]


@worked
def adafactor_unfactored():
    """The learning rate is 3/4, but at most 1 / root(2) at the second step."""
    opt = reference.Adafactor(0.75, **OPTIONS)
    return opt, *unfactored_steps([0.75, 1 / sqrt(2)])


@worked
def adafactor_unfactored_at_rate():
    opt = reference.Adafactor(0.75, relative_step=False, **OPTIONS)
    return opt, *unfactored_steps([0.75, 0.75])


MATRIX = [[1.0, -2.0, 0.5], [3.0, 1.0, -1.0]]
M1 = [[2.0, -4.0, 1.0], [1.0, 0.0, 3.0]]
M2 = [[-3.0, 0.0, 3.0], [1.0, 2.0, -1.0]]


def factored_steps(rates):
    # Means of squares over columns and over rows, each with 1/4 for epsilon_1.
    r1 = np.array([21 / 3 + 0.25, 10 / 3 + 0.25])
    c1 = np.array([5 / 2 + 0.25, 16 / 2 + 0.25, 10 / 2 + 0.25])
    r2 = 0.5 * r1 + 0.5 * np.array([18 / 3 + 0.25, 6 / 3 + 0.25])
    c2 = 0.5 * c1 + 0.5 * np.array([10 / 2 + 0.25, 4 / 2 + 0.25, 10 / 2 + 0.25])
    w = np.array(MATRIX)
    for g, r, c, rate in ((M1, r1, c1, rates[0]), (M2, r2, c2, rates[1])):
        v = [[r[i] * c[j] / ((r[0] + r[1]) / 2) for j in range(3)] for i in range(2)]
        w = moved(w, np.array(g) / np.sqrt(v), rate)
        yield w, {"r": r, "c": c}


@worked_matrix
def adafactor_factored():
    opt = reference.Adafactor(0.75, **OPTIONS)
    return opt, MATRIX, [M1, M2], list(factored_steps([0.75, 1 / sqrt(2)]))


@worked_matrix
def adafactor_factored_at_rate():
    opt = reference.Adafactor(0.75, relative_step=False, **OPTIONS)
    return opt, MATRIX, [M1, M2], list(factored_steps([0.75, 0.75]))
