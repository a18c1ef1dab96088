"""Momentum, the proximal rules, AdagradDA, AddSign, PowerSign: kin, second sources.

TensorFlow's own classes are the second source in tests/tf_impl/families.
"""

from __future__ import annotations

import numpy as np
import pytest

import reference
from reference import IndexedSlices
from reference.schedules import PiecewiseConstantDecay
from tests.reference.families.sources import assert_optax_agrees, assert_torch_agrees
from tests.reference.test_ports import some_gradients, some_rows, some_weights


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_is_torch_sgd_velocity_included(nesterov):
    assert_torch_agrees(
        reference.Momentum(0.1, 0.9, nesterov),
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "nesterov": nesterov},
        {"momentum": "momentum_buffer"},
    )


def test_a_new_learning_rate_rescales_the_past_as_in_optax():
    def rate(count):
        return 0.125 if count <= 3 else 0.5

    def make(optax):
        import jax.numpy as jnp

        return optax.sgd(lambda count: jnp.where(count <= 3, 0.125, 0.5), 0.875)

    schedule = PiecewiseConstantDecay([3], [rate(3), rate(4)])
    assert_optax_agrees(reference.Momentum(schedule, 0.875), make)
    inside = reference.SGD(schedule, momentum=0.875)
    outside = reference.Momentum(schedule, momentum=0.875)
    gradients = [np.ones(1)] * 6
    assert not np.array_equal(
        inside.run(np.zeros(1), gradients)[0], outside.run(np.zeros(1), gradients)[0]
    )


def assert_equal_steps(one, other):
    """Bit for bit: the operations are the same but for those by 0 and 1."""
    dense = some_weights(), list(some_gradients())
    sparse = some_weights()[:24].reshape(8, 3), list(some_rows())
    for w, gradients in (dense, sparse):
        assert np.array_equal(one.run(w, gradients)[0], other.run(w, gradients)[0])


@pytest.mark.parametrize("nesterov", [False, True])
def test_momentum_of_zero_is_descent(nesterov):
    assert_equal_steps(reference.Momentum(0.1, 0.0, nesterov), reference.SGD(0.1))


def test_a_constant_learning_rate_may_be_inside_or_outside():
    """0.125 is a power of two: moving it out of the velocity rounds nothing."""
    assert_equal_steps(reference.Momentum(0.125, 0.9), reference.SGD(0.125, 0.9))


def test_kin_of_the_proximal_rules():
    assert_equal_steps(reference.ProximalGradientDescent(0.1), reference.SGD(0.1))


def test_proximal_adagrad_without_penalty_is_adagrad_without_epsilon():
    """Powers of two: the order of factors does not matter then."""
    w, g = np.array([1.0, -3.0]), np.array([4.0, -2.0])
    proximal = reference.ProximalAdagrad(0.5, initial_accumulator_value=0.0)
    adagrad = reference.Adagrad(0.5, initial_accumulator_value=0.0, epsilon=0.0)
    assert proximal.run(w, [g])[0].tolist() == adagrad.run(w, [g])[0].tolist()
    assert proximal.run(w, [g])[0].tolist() == [0.5, -2.5]


def test_the_first_step_of_dual_averaging_from_zero_is_that_of_adagrad():
    g = np.array([4.0, -4.0])
    dual = reference.AdagradDA(0.5, initial_gradient_squared_accumulator_value=9.0)
    adagrad = reference.Adagrad(0.5, initial_accumulator_value=9.0, epsilon=0.0)
    # -0.5 * 4 / sqrt(9 + 16)
    assert dual.run(np.zeros(2), [g])[0].tolist() == [-0.4, 0.4]
    assert adagrad.run(np.zeros(2), [g])[0].tolist() == [-0.4, 0.4]


def test_dual_averaging_discards_the_initial_weight_where_a_gradient_comes():
    """Dense zeros are gradients; a row that is not touched keeps its weight."""
    w = np.ones((3, 1))
    dense, _ = reference.AdagradDA().run(w, [np.zeros((3, 1))])
    touched = IndexedSlices(np.zeros((1, 1)), np.array([1]))
    sparse, _ = reference.AdagradDA().run(w, [touched])
    assert dense.ravel().tolist() == [0, 0, 0]
    assert sparse.ravel().tolist() == [1, 0, 1]


def test_kin_of_the_sign_rules():
    assert_equal_steps(reference.AddSign(0.1, sign_decay=0.0), reference.SGD(0.1))
    assert_equal_steps(reference.PowerSign(0.1, sign_decay=0.0), reference.SGD(0.1))
    assert_equal_steps(reference.PowerSign(0.1, base=1.0), reference.SGD(0.1))


@pytest.mark.parametrize(
    "optimizer, factor",
    [
        (reference.AddSign(0.5, beta=0.75, sign_decay=0.5), 1 - 0.5),
        (reference.PowerSign(0.5, base=4.0, beta=0.75, sign_decay=0.5), 1 / 2),
    ],
)
def test_steps_are_shorter_where_gradient_and_average_disagree(optimizer, factor):
    """m = 1, then 0.75 * 1 - 0.25 * 2 = 0.25, against a gradient of -2."""
    w, state = optimizer.run(np.zeros(1), [np.array([4.0])])
    after, state = optimizer.step(w, np.array([-2.0]), state)
    assert state.slots[0]["m"].tolist() == [0.25]
    assert (after - w).tolist() == [0.5 * factor * 2]


def test_the_weight_of_signs_may_follow_a_schedule():
    """f(t) = 1, then 0.5: factors 2 and 1.5 while signs agree."""
    schedule = PiecewiseConstantDecay([0], [1.0, 0.5])
    addsign = reference.AddSign(1.0, sign_decay=schedule)
    w, _ = addsign.run(np.zeros(1), [np.ones(1), np.ones(1)])
    assert w.tolist() == [-(2 + 1.5)]
