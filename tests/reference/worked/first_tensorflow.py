"""What TensorFlow 1 and its raw operations have beyond Keras."""

from __future__ import annotations

from math import sqrt

import reference
from tests.reference.worked import worked

# The sparse kernels and TensorFlow 1's _apply_sparse.
EVERY_ROW = {
    "Momentum": set(),
    "ProximalGradientDescent": set(),
    "ProximalAdagrad": set(),
    "AdagradDA": set(),
    "AddSign": {"m"},
    "PowerSign": {"m"},
}


@worked
def momentum():
    opt = reference.Momentum(0.25, momentum=0.5)
    a1 = [2, -4, 1]
    w1 = [1 - 0.25 * 2, -2 + 0.25 * 4, 0.5 - 0.25 * 1]  # 0.5, -1, 0.25
    a2 = [0.5 * 2 - 3, 0.5 * -4, 0.5 * 1 + 3]  # -2, -2, 3.5
    w2 = [0.5 + 0.25 * 2, -1 + 0.25 * 2, 0.25 - 0.25 * 3.5]
    dense = [(w1, {"momentum": a1}), (w2, {"momentum": a2})]
    sparse = [
        ([0.5, -2, 0.25], {"momentum": [2, 0, 1]}),
        ([0.5, -2 + 0.25 * 4, w2[2]], {"momentum": [2, -4, 3.5]}),
    ]
    return opt, dense, sparse


@worked
def momentum_nesterov():
    opt = reference.Momentum(0.25, momentum=0.5, use_nesterov=True)
    a1, a2 = [2, -4, 1], [-2, -2, 3.5]
    w1 = [  # 0.25, -0.5, 0.125
        1 - 0.25 * (2 + 0.5 * 2),
        -2 + 0.25 * (4 + 0.5 * 4),
        0.5 - 0.25 * (1 + 0.5 * 1),
    ]
    w2 = [
        0.25 + 0.25 * (3 + 0.5 * 2),
        -0.5 + 0.25 * (0 + 0.5 * 2),
        0.125 - 0.25 * (3 + 0.5 * 3.5),
    ]
    dense = [(w1, {"momentum": a1}), (w2, {"momentum": a2})]
    sparse = [
        ([0.25, -2, 0.125], {"momentum": [2, 0, 1]}),
        ([0.25, -2 + 0.25 * (4 + 0.5 * 4), w2[2]], {"momentum": [2, -4, 3.5]}),
    ]
    return opt, dense, sparse


@worked
def proximal_descent():
    """Thresholds are 0.25 * 1, divisors 1 + 0.25 * 1."""
    opt = reference.ProximalGradientDescent(
        0.25, l1_regularization_strength=1.0, l2_regularization_strength=1.0
    )
    w1 = [  # from 0.5, -1, 0.25: 0.2, -0.6, 0
        (1 - 0.25 * 2 - 0.25) / 1.25,
        (-2 + 0.25 * 4 + 0.25) / 1.25,
        0,
    ]
    w2 = [(0.2 + 0.25 * 3 - 0.25) / 1.25, (-0.6 + 0.25) / 1.25, (-0.75 + 0.25) / 1.25]
    dense = [(w1, {}), (w2, {})]
    sparse = [
        ([0.2, -2, 0], {}),
        ([0.2, (-2 + 0.25 * 4 + 0.25) / 1.25, w2[2]], {}),
    ]
    return opt, dense, sparse


@worked
def proximal_adagrad():
    opt = reference.ProximalAdagrad(
        0.5,
        initial_accumulator_value=1.0,
        l1_regularization_strength=0.5,
        l2_regularization_strength=1.0,
    )
    n1, n2 = [5, 17, 2], [14, 17, 11]
    r1 = [0.5 / sqrt(5), 0.5 / sqrt(17), 0.5 / sqrt(2)]
    r2 = [0.5 / sqrt(14), 0.5 / sqrt(17), 0.5 / sqrt(11)]
    w1 = [
        (1 - r1[0] * 2 - r1[0] * 0.5) / (1 + r1[0]),
        (-2 + r1[1] * 4 + r1[1] * 0.5) / (1 + r1[1]),
        0,  # 0.5 - 0.354 is less than 0.354 * 0.5
    ]
    w2 = [
        (w1[0] + r2[0] * 3 - r2[0] * 0.5) / (1 + r2[0]),
        (w1[1] + r2[1] * 0.5) / (1 + r2[1]),  # the penalty alone
        (0 - r2[2] * 3 + r2[2] * 0.5) / (1 + r2[2]),
    ]
    dense = [(w1, {"accumulator": n1}), (w2, {"accumulator": n2})]
    sparse = [
        ([w1[0], -2, 0], {"accumulator": [5, 1, 2]}),
        ([w1[0], w1[1], w2[2]], {"accumulator": [5, 17, 11]}),
    ]
    return opt, dense, sparse


@worked
def adagrad_da():
    """Thresholds are 0.5 * t; what is added to the roots is 0.5 * 0.5 * t."""
    opt = reference.AdagradDA(
        0.5,
        initial_gradient_squared_accumulator_value=1.0,
        l1_regularization_strength=0.5,
        l2_regularization_strength=0.5,
    )
    s1, s2 = [2, -4, 1], [2 - 3, -4, 1 + 3]
    n1, n2 = [5, 17, 2], [14, 17, 11]
    w1 = [
        -0.5 * (2 - 0.5) / (sqrt(5) + 0.25),
        0.5 * (4 - 0.5) / (sqrt(17) + 0.25),
        -0.5 * (1 - 0.5) / (sqrt(2) + 0.25),
    ]
    w2 = [
        0,  # |-1| is the threshold
        0.5 * (4 - 1) / (sqrt(17) + 0.5),
        -0.5 * (4 - 1) / (sqrt(11) + 0.5),
    ]
    slots = "gradient_accumulator", "gradient_squared_accumulator"
    dense = [
        (w1, dict(zip(slots, (s1, n1), strict=True))),
        (w2, dict(zip(slots, (s2, n2), strict=True))),
    ]
    sparse = [  # row 1 has t = 2 at its first gradient
        ([w1[0], -2, w1[2]], dict(zip(slots, ([2, 0, 1], [5, 1, 2]), strict=True))),
        (
            [w1[0], w2[1], w2[2]],
            dict(zip(slots, ([2, -4, 4], [5, 17, 11]), strict=True)),
        ),
    ]
    return opt, dense, sparse


# Averages with beta = 1/4. Every gradient here has the sign of the average with it.
M1 = [0.75 * 2, 0.75 * -4, 0.75 * 1]
M2 = [0.25 * 1.5 - 0.75 * 3, 0.25 * -3, 0.25 * 0.75 + 0.75 * 3]
M2_SPARSE = [0.25 * 1.5, 0.75 * -4, M2[2]]


@worked
def add_sign():
    """The factor is 0.75 + 0.5 = 1.25."""
    opt = reference.AddSign(0.25, alpha=0.75, beta=0.25, sign_decay=0.5)
    w1 = [1 - 0.25 * 1.25 * 2, -2 + 0.25 * 1.25 * 4, 0.5 - 0.25 * 1.25 * 1]
    w2 = [w1[0] + 0.25 * 1.25 * 3, w1[1], w1[2] - 0.25 * 1.25 * 3]
    dense = [(w1, {"m": M1}), (w2, {"m": M2})]
    sparse = [
        ([w1[0], -2, w1[2]], {"m": [1.5, 0, 0.75]}),
        ([w1[0], w1[1], w2[2]], {"m": M2_SPARSE}),
    ]
    return opt, dense, sparse


@worked
def power_sign():
    """The factor is 4**0.5 = 2."""
    opt = reference.PowerSign(0.25, base=4.0, beta=0.25, sign_decay=0.5)
    w1 = [1 - 0.25 * 2 * 2, -2 + 0.25 * 2 * 4, 0.5 - 0.25 * 2 * 1]  # 0, 0, 0
    w2 = [0 + 0.25 * 2 * 3, 0, 0 - 0.25 * 2 * 3]
    dense = [(w1, {"m": M1}), (w2, {"m": M2})]
    sparse = [
        ([0, -2, 0], {"m": [1.5, 0, 0.75]}),
        ([0, 0, -1.5], {"m": M2_SPARSE}),
    ]
    return opt, dense, sparse
