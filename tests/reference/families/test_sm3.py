"""SM3 against optax; axes of length 1; its kin."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from tests.reference.families.sources import assert_optax_agrees, optax_in_float64


def test_optax_takes_the_same_steps_with_a_vector():
    assert_optax_agrees(
        reference.SM3(0.1, 0.9, 1e-8),
        lambda optax: optax.sm3(0.1, 0.9),
        lambda state: {"accumulator_0": state[0].mu[0], "momentum": state[0].nu},
    )


@pytest.mark.parametrize("shape", [(4, 3), (2, 4, 3), (2, 2, 4, 3)])
def test_optax_takes_the_same_steps(shape):
    rng = np.random.default_rng(0)
    w, gradients = rng.normal(size=shape), list(rng.normal(size=(5, *shape)))
    ours, state = reference.SM3(0.1, 0.9, 1e-8).run(w, gradients)
    with optax_in_float64() as optax:
        transform = optax.sm3(0.1, 0.9)
        theirs, kept = w, transform.init(w)
        for g in gradients:
            updates, kept = transform.update(g, kept, theirs)
            theirs = optax.apply_updates(theirs, updates)
    # Five steps, each of fewer than 20 operations on each side. No weight or gradient
    # is larger than 4; a direction is at most 1, since v holds its own square.
    bound = 5 * 2 * 20 * 4 * np.finfo(np.float64).eps / 2
    assert np.all(np.abs(ours - np.asarray(theirs)) <= bound)
    for i, maxima in enumerate(kept[0].mu):
        error = state.slots[0][f"accumulator_{i}"].ravel() - np.ravel(maxima)
        assert np.all(np.abs(error) <= bound * np.max(maxima))


def test_one_axis_without_momentum_is_adagrad():
    w, gradients = np.array([1.0, -2.0]), [np.array([3.0, 0.5])] * 3
    sm3 = reference.SM3(0.125, momentum=0.0, epsilon=0.0)
    adagrad = reference.Adagrad(0.125, 0.0, 0.0)
    assert np.array_equal(sm3.run(w, gradients)[0], adagrad.run(w, gradients)[0])


def test_zero_over_zero_is_zero():
    w, _ = reference.SM3(epsilon=0.0).run(np.ones((2, 2)), [np.zeros((2, 2))])
    assert np.all(w == 1)


def test_five_axes_are_refused():
    with pytest.raises(ValueError, match="four axes at most"):
        reference.SM3().init(np.ones((1, 1, 1, 1, 1)))
