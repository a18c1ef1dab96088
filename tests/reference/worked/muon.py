"""Muon, by hand: of diagonal matrices, whose entries are the singular values.

Two steps of p(s) = 2 s - 3/2 s^3 + 1/2 s^5. AdamW's numbers have beta_1 = 1/4,
beta_2 = 3/4, epsilon = 1/4, half the learning rate, and an eighth for the decay.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

import reference
from tests.reference.worked import W, worked, worked_matrix

EVERY_ROW = {"Muon": {"weight", "momentum", "velocity"}}


def muon(**options):
    return reference.Muon(
        0.5,
        adam_beta_1=0.25,
        adam_beta_2=0.75,
        epsilon=0.25,
        muon_a=2.0,
        muon_b=-1.5,
        muon_c=0.5,
        adam_lr_ratio=0.5,
        momentum=0.75,
        ns_steps=2,
        weight_decay=0.5,
        adam_weight_decay=0.125,
        **options,
    )


def p(s):
    return 2 * s - 1.5 * s**3 + 0.5 * s**5


def orthogonal(diagonal):
    """Of a matrix with this diagonal: over its length, then p twice."""
    length = sqrt(diagonal[0] ** 2 + diagonal[1] ** 2) + 1e-7
    return [p(p(d / length)) for d in diagonal]


WEIGHT = np.array([[1.0, -2.0, 0.5], [3.0, 1.0, -1.0]])


def on_diagonal(values):
    matrix = np.zeros((2, 3))
    matrix[0, 0], matrix[1, 1] = values
    return matrix


def case(scale, nesterov, tall=False, **options):
    """First gradient diag(3, -4), second diag(1, 2)."""
    momenta = [3, -4], [0.75 * 3 + 1, 0.75 * -4 + 2]
    looked_at = momenta
    if nesterov:
        looked_at = [3 + 0.75 * 3, -4 - 0.75 * 4], [1 + 0.75 * 3.25, 2 - 0.75 * 1]
    w, steps = WEIGHT, []
    for m, u in zip(momenta, looked_at, strict=True):
        w = w - 0.5 * 0.5 * w - 0.5 * scale * on_diagonal(orthogonal(u))
        steps.append((w, on_diagonal(m)))
    turn = np.transpose if tall else np.asarray
    return (
        muon(nesterov=nesterov, **options),
        turn(WEIGHT),
        [turn(on_diagonal(g)) for g in ([3, -4], [1, 2])],
        [(turn(w), {"momentum": turn(m)}) for w, m in steps],
    )


@worked_matrix
def muon_nesterov():
    return case(0.25 * sqrt(3), True, rms_rate=0.25)


@worked_matrix
def muon_nesterov_of_a_tall_matrix():
    return case(0.25 * sqrt(3), True, rms_rate=0.25, tall=True)


@worked_matrix
def muon_without_nesterov():
    return case(0.25 * sqrt(3), False, rms_rate=0.25)


@worked_matrix
def muon_unscaled_nesterov():
    return case(1, True, rms_rate=None)


@worked_matrix
def muon_unscaled():
    return case(1, False, rms_rate=None, tall=True)


@worked
def muon_leaves_vectors_to_adamw():
    step_1 = 0.25 * sqrt(1 - 0.75) / (1 - 0.25)
    step_2 = 0.25 * sqrt(1 - 0.75**2) / (1 - 0.25**2)

    def run(moments):
        w = np.array(W)
        for step, (m, v) in zip((step_1, step_2), moments, strict=True):
            w = w - 0.5 * 0.125 * w - step * np.array(m) / (np.sqrt(v) + 0.25)
            yield w, {"momentum": m, "velocity": v}

    m1, v1 = [0.75 * 2, 0.75 * -4, 0.75 * 1], [0.25 * 4, 0.25 * 16, 0.25 * 1]
    m2 = [0.25 * m1[0] - 0.75 * 3, 0.25 * m1[1], 0.25 * m1[2] + 0.75 * 3]
    v2 = [0.75 * v1[0] + 0.25 * 9, 0.75 * v1[1], 0.75 * v1[2] + 0.25 * 9]
    r1, n1 = [m1[0], 0, m1[2]], [v1[0], 0, v1[2]]
    r2, n2 = [0.25 * m1[0], 0.75 * -4, m2[2]], [0.75 * v1[0], 0.25 * 16, v2[2]]
    return (
        muon(),
        list(run([(m1, v1), (m2, v2)])),
        list(run([(r1, n1), (r2, n2)])),
    )
