"""RAdam where it rectifies; torch and optax; kin."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

import reference
from reference import State
from reference.conformance.rounding import FLOAT32
from tests.reference.families.sources import assert_optax_agrees, assert_torch_agrees
from tests.reference.worked import bound

M_6 = 0.5 * 1 + 0.5 * 3  # from m = 1 with g = 3
V_6 = 0.75 * 4 + 0.25 * 9  # from v = 4
# beta_2 = 3/4: averages of at most 7, at step 6 of 4.4.
POWER = 0.75**6
RHO = 7 - 12 * POWER / (1 - POWER)
R = sqrt((RHO - 4) * (RHO - 2) * 7 / (3 * 5 * RHO))
M_HAT = M_6 / (1 - 0.5**6)


def step_6(optimizer, **slots):
    slots = {name: np.array([value]) for name, value in slots.items()}
    w, _ = optimizer.step(np.array([1.0]), np.array([3.0]), State(5, (slots,)))
    return w


def assert_near(came, due):
    assert abs(came - due) <= bound([due, M_6, V_6, 9.0])


def test_the_sixth_step_is_rectified():
    radam = reference.RectifiedAdam(0.5, 0.5, 0.75, 0.25, sma_threshold=4)
    u = R * M_HAT / (sqrt(V_6 / (1 - POWER)) + 0.25)
    assert_near(step_6(radam, m=1.0, v=4.0), 1 - 0.5 * u)


def test_amsgrad_divides_by_the_largest():
    radam = reference.RectifiedAdam(0.5, 0.5, 0.75, 0.25, sma_threshold=4, amsgrad=True)
    u = R * M_HAT / (sqrt(16 / (1 - POWER)) + 0.25)
    assert_near(step_6(radam, m=1.0, v=4.0, vhat=16.0), 1 - 0.5 * u)


def test_a_threshold_that_is_not_reached_leaves_momentum():
    radam = reference.RectifiedAdam(0.5, 0.5, 0.75, 0.25, sma_threshold=4.5)
    assert_near(step_6(radam, m=1.0, v=4.0), 1 - 0.5 * M_HAT)


def test_the_form_of_torch_has_epsilon_beside_the_raw_root():
    # beta_2 = 7/8: averages of at most 15, at step 6 of 5.23.
    power = 0.875**6
    rho = 15 - 12 * power / (1 - power)
    r = sqrt((rho - 4) * (rho - 2) * 15 / (11 * 13 * rho))
    v = 0.875 * 4 + 0.125 * 9
    u = r * M_HAT * sqrt(1 - power) / (sqrt(v) + 0.25)
    radam = reference.RAdam(0.5, 0.5, 0.875, 0.25)
    assert rho > 5
    assert_near(step_6(radam, m=1.0, v=4.0), 1 - 0.5 * u)


def test_torch_takes_the_steps_of_radam():
    assert_torch_agrees(
        reference.RAdam(0.1, 0.9, 0.99, 1e-4),
        "RAdam",
        {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-4},
        {"m": "exp_avg", "v": "exp_avg_sq"},
    )


@pytest.mark.parametrize("threshold", [4.0, 5.0])
def test_optax_takes_the_steps_of_rectified_adam(threshold):
    assert_optax_agrees(
        reference.RectifiedAdam(0.125, 0.875, 0.96875, 2**-12, sma_threshold=threshold),
        lambda optax: optax.radam(0.125, 0.875, 0.96875, 2**-12, threshold=threshold),
        lambda state: {"m": state[0].mu, "v": state[0].nu},
        coefficients=FLOAT32,
    )


def test_the_learning_rate_rises_and_falls():
    """Momentum of one step: each weight moves by the rate of the step."""
    radam = reference.RectifiedAdam(
        8.0, beta_1=0.0, total_steps=6, warmup_proportion=0.5, min_lr=2.0
    )
    w, moved = 0.0, []
    state = radam.init(np.zeros(1))
    for _ in range(5):
        new, state = radam.step(np.array([w]), np.array([-3.0]), state)
        moved.append((new.item() - w) / 3)
        w = new.item()
    due = [8 * 1 / 3, 8 * 2 / 3, 8, 8 - 6 * 1 / 3, 8 - 6 * 2 / 3]
    for came, rate in zip(moved, due, strict=True):
        assert abs(came - rate) <= bound([w])
