"""Conditional gradient, by hand: 3/4 of the weight are kept, lambda is 2.

Of a single row or column both norms have the gradient's direction as corner.
"""

from __future__ import annotations

from math import sqrt

import reference
from tests.reference.worked import worked, worked_matrix

EVERY_ROW = {"ConditionalGradient": set()}


def steps(epsilon):
    first, second = sqrt(21) + epsilon, sqrt(18) + epsilon
    w1 = [
        0.75 * 1 - 0.25 * 2 * 2 / first,
        0.75 * -2 + 0.25 * 2 * 4 / first,
        0.75 * 0.5 - 0.25 * 2 * 1 / first,
    ]
    w2 = [
        0.75 * w1[0] + 0.25 * 2 * 3 / second,
        0.75 * w1[1],
        0.75 * w1[2] - 0.25 * 2 * 3 / second,
    ]
    first, second = sqrt(5) + epsilon, 5 + epsilon
    x1 = [0.75 * 1 - 0.25 * 2 * 2 / first, -2, 0.75 * 0.5 - 0.25 * 2 * 1 / first]
    x2 = [
        x1[0],
        0.75 * -2 + 0.25 * 2 * 4 / second,
        0.75 * x1[2] - 0.25 * 2 * 3 / second,
    ]
    return [(w1, {}), (w2, {})], [(x1, {}), (x2, {})]


@worked
def conditional_gradient():
    opt = reference.ConditionalGradient(0.75, lambda_=2.0, epsilon=1.0)
    return opt, *steps(1.0)


@worked
def conditional_gradient_nuclear():
    opt = reference.ConditionalGradient(0.75, lambda_=2.0, ord="nuclear")
    return opt, *steps(0.0)


@worked_matrix
def conditional_gradient_nuclear_of_a_matrix():
    """Of a diagonal matrix the largest entry is the corner, with its sign."""
    opt = reference.ConditionalGradient(0.75, lambda_=2.0, ord="nuclear")
    w = [[1.0, 2.0], [3.0, 4.0]]
    w1 = [[0.75, 1.5], [2.25, 3.0 + 0.5]]
    w2 = [[0.5625 - 0.5, 1.125], [1.6875, 2.625]]
    gradients = [[[3.0, 0.0], [0.0, -4.0]], [[3.0, 0.0], [0.0, 2.0]]]
    return opt, w, gradients, [(w1, {}), (w2, {})]
