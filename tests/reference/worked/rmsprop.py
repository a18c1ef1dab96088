"""Where torch, optax and Keras 3 have epsilon and the learning rate in RMSprop."""

from __future__ import annotations

from math import sqrt

import reference
from tests.reference.worked import keras, worked

EVERY_ROW = {}

# Averages of squares are 1, 4, 0.25 and 3, 3, 2.4375; those less the squared average
# of the gradient 0.75, 3, 0.1875 and then VARIANCE_2.
BESIDE = (
    [1 + 0.25, 2 + 0.25, 0.5 + 0.25],
    [sqrt(3) + 0.25, sqrt(3) + 0.25, sqrt(2.4375) + 0.25],
)
UNDER = (
    [sqrt(1.25), sqrt(4.25), sqrt(0.5)],
    [sqrt(3.25), sqrt(3.25), sqrt(2.6875)],
)
CENTERED_BESIDE = (
    [sqrt(0.75) + 0.25, sqrt(3) + 0.25, sqrt(0.1875) + 0.25],
    [sqrt(variance) + 0.25 for variance in keras.VARIANCE_2],
)
CENTERED_UNDER = (
    [sqrt(1), sqrt(3.25), sqrt(0.4375)],
    [sqrt(variance + 0.25) for variance in keras.VARIANCE_2],
)


def optimizer(**options):
    return reference.RMSprop(0.5, rho=0.75, epsilon=0.25, **options)


def still(roots, **options):
    """Without momentum: row 0 rests at the second sparse step, its averages decay."""
    opt, (first, second) = optimizer(**options), roots
    w1 = [1 - 0.5 * 2 / first[0], -2 + 0.5 * 4 / first[1], 0.5 - 0.5 * 1 / first[2]]
    w2 = [w1[0] + 0.5 * 3 / second[0], w1[1], w1[2] - 0.5 * 3 / second[2]]
    weights = [w1, w2, [w1[0], -2, w1[2]], [w1[0], w1[1], w2[2]]]
    r = [keras.V1, keras.V2, [1, 0, 0.25], [0.75 * 1, 4, 2.4375]]
    m = [keras.MG1, keras.MG2, [0.5, 0, 0.25], [0.75 * 0.5, -1, 0.9375]]
    return case(opt, weights, rms=r, mg=m)


def rate_in_velocity(roots, **options):
    """The second velocity is half the first and half of ``g`` over the root."""
    opt, (first, second) = optimizer(momentum=0.5, **options), roots
    a1 = [0.5 * 2 / first[0], -0.5 * 4 / first[1], 0.5 * 1 / first[2]]
    w1 = [1 - a1[0], -2 - a1[1], 0.5 - a1[2]]
    a2 = [
        0.5 * a1[0] - 0.5 * 3 / second[0],
        0.5 * a1[1],
        0.5 * a1[2] + 0.5 * 3 / second[2],
    ]
    w2 = [w1[0] - a2[0], w1[1] - a2[1], w1[2] - a2[2]]
    return moving(opt, w1, w2, a1, a2)


def rate_times_velocity(roots, **options):
    opt = optimizer(momentum=0.5, rate_inside=False, **options)
    first, second = roots
    a1 = [2 / first[0], -4 / first[1], 1 / first[2]]
    w1 = [1 - 0.5 * a1[0], -2 - 0.5 * a1[1], 0.5 - 0.5 * a1[2]]
    a2 = [0.5 * a1[0] - 3 / second[0], 0.5 * a1[1], 0.5 * a1[2] + 3 / second[2]]
    w2 = [w1[0] - 0.5 * a2[0], w1[1] - 0.5 * a2[1], w1[2] - 0.5 * a2[2]]
    return moving(opt, w1, w2, a1, a2)


def moving(opt, w1, w2, a1, a2):
    """With momentum: on rows without a gradient all rests."""
    weights = [w1, w2, [w1[0], -2, w1[2]], [w1[0], w1[1], w2[2]]]
    r = [keras.V1, keras.V2, [1, 0, 0.25], [1, 4, 2.4375]]
    a = [a1, a2, [a1[0], 0, a1[2]], [a1[0], a1[1], a2[2]]]
    m = [keras.MG1, keras.MG2, [0.5, 0, 0.25], [0.5, -1, 0.9375]]
    return case(opt, weights, rms=r, momentum=a, mg=m)


def case(opt, weights, **slots):
    """Two dense steps and two sparse ones; ``mg`` only where it is centered."""
    kept = [name for name in slots if opt.centered or name != "mg"]
    steps = [
        (w, {name: slots[name][i] for name in kept}) for i, w in enumerate(weights)
    ]
    return opt, steps[:2], steps[2:]


@worked
def rmsprop_epsilon_inside():
    return still(UNDER, epsilon_inside=True)


@worked
def rmsprop_epsilon_inside_centered():
    return still(CENTERED_UNDER, epsilon_inside=True, centered=True)


@worked
def rmsprop_momentum_epsilon_outside():
    return rate_in_velocity(BESIDE, epsilon_inside=False)


@worked
def rmsprop_momentum_epsilon_outside_centered():
    return rate_in_velocity(CENTERED_BESIDE, epsilon_inside=False, centered=True)


@worked
def rmsprop_momentum_rate_outside():
    return rate_times_velocity(UNDER, epsilon_inside=True)


@worked
def rmsprop_momentum_rate_outside_centered():
    return rate_times_velocity(CENTERED_UNDER, epsilon_inside=True, centered=True)


@worked
def rmsprop_momentum_epsilon_and_rate_outside():
    return rate_times_velocity(BESIDE, epsilon_inside=False)


@worked
def rmsprop_momentum_epsilon_and_rate_outside_centered():
    return rate_times_velocity(CENTERED_BESIDE, epsilon_inside=False, centered=True)
