"""SM3, by hand: momentum 1/4, epsilon 1, learning rate 1/2."""

from __future__ import annotations

from math import sqrt

import numpy as np

import reference
from tests.reference.worked import worked, worked_matrix

EVERY_ROW = {"SM3": {"weight", "momentum", *(f"accumulator_{i}" for i in range(4))}}
SM3 = reference.SM3(0.5, momentum=0.25, epsilon=1.0)


@worked
def sm3_of_one_axis():
    v1, v2 = [4, 16, 1], [4 + 9, 16, 1 + 9]
    m1 = [0.75 * 2 / sqrt(5), -0.75 * 4 / sqrt(17), 0.75 * 1 / sqrt(2)]
    m2 = [
        0.25 * m1[0] - 0.75 * 3 / sqrt(14),
        0.25 * m1[1],
        0.25 * m1[2] + 0.75 * 3 / sqrt(11),
    ]
    w1 = [1 - 0.5 * m1[0], -2 - 0.5 * m1[1], 0.5 - 0.5 * m1[2]]
    w2 = [w1[0] - 0.5 * m2[0], w1[1] - 0.5 * m2[1], w1[2] - 0.5 * m2[2]]
    r1, r2 = [m1[0], 0, m1[2]], [0.25 * m1[0], -0.75 * 4 / sqrt(17), m2[2]]
    x1 = [w1[0], -2, w1[2]]
    x2 = [x1[0] - 0.5 * r2[0], -2 - 0.5 * r2[1], w2[2]]
    dense = [
        (w1, {"momentum": m1, "accumulator_0": v1}),
        (w2, {"momentum": m2, "accumulator_0": v2}),
    ]
    sparse = [
        (x1, {"momentum": r1, "accumulator_0": [4, 0, 1]}),
        (x2, {"momentum": r2, "accumulator_0": [4, 16, 10]}),
    ]
    return SM3, dense, sparse


W = [[1.0, -2.0], [0.5, 4.0]]
G1 = [[2.0, -1.0], [0.0, 3.0]]  # squares 4, 1; 0, 9
G2 = [[1.0, 2.0], [-2.0, 0.0]]  # squares 1, 4; 4, 0
# Maxima of rows 4, 9 and columns 4, 9; the smaller of both is 4, 4; 4, 9.
V2 = [[4 + 1, 4 + 4], [4 + 4, 9]]
# Then rows 8, 9 and columns 8, 9.


def cases(shape):
    """The matrix with axes of length 1 beside its own."""
    m1 = np.array([[0.75 * 2 / sqrt(5), -0.75 / sqrt(2)], [0, 0.75 * 3 / sqrt(10)]])
    m2 = 0.25 * m1 + np.array(
        [
            [0.75 * 1 / sqrt(6), 0.75 * 2 / sqrt(9)],
            [-0.75 * 2 / sqrt(9), 0],
        ]
    )
    w1 = np.array(W) - 0.5 * m1
    w2 = w1 - 0.5 * m2
    maxima = [([4, 9], [4, 9]), ([8, 9], [8, 9])]
    steps = []
    for w, m, (rows, columns) in zip((w1, w2), (m1, m2), maxima, strict=True):
        of_long = iter((rows, columns))
        slots = {
            f"accumulator_{i}": next(of_long) if size == 2 else [9]
            for i, size in enumerate(shape)
        }
        steps.append((w, {"momentum": m, **slots}))
    reshaped = [np.reshape(array, shape) for array in (W, G1, G2)]
    return SM3, reshaped[0], reshaped[1:], steps


@worked_matrix
def sm3_of_two_axes():
    return cases((2, 2))


@worked_matrix
def sm3_of_three_axes():
    return cases((2, 1, 2))


@worked_matrix
def sm3_of_three_axes_the_last_short():
    return cases((2, 2, 1))


@worked_matrix
def sm3_of_four_axes():
    return cases((2, 1, 1, 2))


@worked_matrix
def sm3_of_four_axes_the_middle_long():
    return cases((1, 2, 2, 1))
