"""Adan and the optimistic rules against optax; kin."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from reference.conformance.rounding import FLOAT32
from tests.reference.families.sources import assert_optax_agrees, optax_in_float64
from tests.reference.test_ports import some_gradients, some_weights


def test_optax_has_the_same_adan_where_a_half_is_one_minus_a_half():
    assert_optax_agrees(
        reference.Adan(0.125, 0.875, 0.5, 0.96875, 2**-12),
        lambda optax: optax.adan(0.125, 0.875, 0.5, 0.96875, 2**-12, 0.0),
        lambda state: {
            "m": state[0].m,
            "v": state[0].v,
            "n": state[0].n,
            "previous_gradient": state[0].g,
        },
        coefficients=FLOAT32,
    )


def test_optax_weighs_a_change_of_the_gradient_by_one_minus_b2():
    """The paper by 1 - beta_2 too, where beta_2 is one minus the decay that b2 is."""
    zero, one = np.zeros(1), np.ones(1)
    adan = reference.Adan(1.0, beta_1=0.0, beta_2=0.75, beta_3=0.0, epsilon=0.0)
    _, state = adan.run(zero, [one, 3 * one])
    assert state.slots[0]["n"].item() == (3 + 0.75 * 2) ** 2
    with optax_in_float64() as optax:
        transform = optax.adan(1.0, b1=0.0, b2=0.75, b3=0.0, eps=0.0)
        state = transform.init(zero)
        for g in (one, 3 * one):
            _, state = transform.update(g, state, zero)
        assert state[0].n.item() == (3 + 0.25 * 2) ** 2


def test_without_beta_2_it_is_adam():
    """As in optax: with epsilon beside the corrected root."""
    assert_optax_agrees(
        reference.Adan(0.125, 0.875, 0.0, 0.96875, 2**-12),
        lambda optax: optax.adam(0.125, 0.875, 0.96875, 2**-12),
        coefficients=FLOAT32,
    )


def test_optax_takes_the_steps_of_optimistic_descent():
    assert_optax_agrees(
        reference.OptimisticGradientDescent(0.125, alpha=0.75, beta=0.5),
        lambda optax: optax.optimistic_gradient_descent(0.125, alpha=0.75, beta=0.5),
        lambda state: {"previous_gradient": state[0].previous_gradient},
    )


@pytest.mark.parametrize("nesterov", [True, False])
def test_optax_takes_the_steps_of_optimistic_adam(nesterov):
    assert_optax_agrees(
        reference.OptimisticAdam(
            0.125, 0.75, 0.5, 0.875, 0.96875, 2**-12, nesterov=nesterov
        ),
        lambda optax: optax.optimistic_adam_v2(
            0.125,
            alpha=0.75,
            beta=0.5,
            b1=0.875,
            b2=0.96875,
            eps=2**-12,
            nesterov=nesterov,
        ),
        lambda state: {"m": state[0].mu, "v": state[0].nu},
        coefficients=FLOAT32,
    )


def test_without_beta_it_is_gradient_descent():
    descent = reference.OptimisticGradientDescent(0.125, alpha=1.0, beta=0.0)
    w, _ = descent.run(some_weights(), some_gradients())
    plain, _ = reference.SGD(0.125).run(some_weights(), some_gradients())
    assert w.tobytes() == plain.tobytes()
