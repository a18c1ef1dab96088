"""Schedule-free Adam against optax; the averages that one evaluates."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from reference.conformance.rounding import FLOAT32
from tests.reference.families.sources import assert_optax_agrees


def free_adam(optax):
    return optax.contrib.schedule_free_adamw(
        0.125, b1=0.75, b2=0.96875, eps=2**-12, weight_decay=0.0
    )


def test_optax_takes_the_same_steps():
    """While the learning rate is constant: it weighs by squares of learning rates."""
    assert_optax_agrees(
        reference.ScheduleFreeAdamW(0.125, 0.75, 0.96875, 2**-12),
        free_adam,
        coefficients=FLOAT32,
    )


def test_the_averages_are_of_all_points():
    """Steps of 1, as the gradient is constant: z is 3, 2, 1, 0."""
    free = reference.ScheduleFreeAdamW(1.0, beta_1=0.5, beta_2=0.5, epsilon=0.0)
    w, state = {"a": np.array([4.0])}, None
    for t, average in enumerate([3, 2.5, 2, 1.5], start=1):
        w, state = free.run(w, [{"a": np.array([2.0])}], state)
        # Of thirty operations on numbers of at most 4 each is off by half an ulp.
        x = free.averaged(w, state)["a"]
        assert abs(x - average) <= 30 * t * 2 * 2.0**-52
    assert x.dtype == np.float64


def test_averages_keep_the_structure_of_the_weights():
    free = reference.ScheduleFreeAdamW()
    for params in (np.ones(2, np.float16), [np.ones(2)], (np.ones(1),)):
        averages = free.averaged(params, free.init(params))
        assert type(averages) is type(params)
        assert np.array_equal(averages, params)


def test_a_beta_1_that_changes_has_no_averages():
    free = reference.ScheduleFreeAdamW(beta_1=lambda: 0.5)
    with pytest.raises(ValueError, match="needs a beta_1 that is a number"):
        free.averaged(np.ones(1), free.init(np.ones(1)))
