"""Where torch and optax have epsilon, and what torch calls lr_decay."""

from __future__ import annotations

import pytest

import reference
from reference.conformance.rounding import FLOAT32
from tests.reference.families.sources import assert_optax_agrees, assert_torch_agrees

MOMENTS = {"m": "exp_avg", "v": "exp_avg_sq"}


@pytest.mark.parametrize("amsgrad", [False, True])
def test_torch_has_corrected_adam(amsgrad):
    assert_torch_agrees(
        reference.CorrectedAdam(0.1, 0.9, 0.99, 1e-4, amsgrad=amsgrad),
        "Adam",
        {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-4, "amsgrad": amsgrad},
        {**MOMENTS, "vhat": "max_exp_avg_sq"} if amsgrad else MOMENTS,
    )


def test_optax_has_corrected_adam():
    assert_optax_agrees(
        reference.CorrectedAdam(0.125, 0.875, 0.96875, 2**-12, 2**-10),
        lambda optax: optax.adam(0.125, 0.875, 0.96875, 2**-12, 2**-10),
        lambda state: {"m": state[0].mu, "v": state[0].nu},
        coefficients=FLOAT32,
    )


def test_optax_takes_the_largest_of_corrected_moments():
    assert_optax_agrees(
        reference.CorrectedAdam(
            0.125, 0.875, 0.96875, 2**-12, 2**-10, amsgrad=True, correct_first=True
        ),
        lambda optax: optax.amsgrad(0.125, 0.875, 0.96875, 2**-12, 2**-10),
        lambda state: {"m": state[0].mu, "v": state[0].nu, "vhat": state[0].nu_max},
        coefficients=FLOAT32,
    )


def test_torch_has_epsilon_inside_the_maximum_of_adamax():
    assert_torch_agrees(
        reference.Adamax(0.1, 0.9, 0.99, 1e-4, epsilon_inside=True),
        "Adamax",
        {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-4},
        {"m": "exp_avg", "v": "exp_inf"},
    )


def test_optax_has_epsilon_inside_the_maximum_of_adamax():
    assert_optax_agrees(
        reference.Adamax(0.125, 0.875, 0.96875, 2**-12, epsilon_inside=True),
        lambda optax: optax.adamax(0.125, 0.875, 0.96875, 2**-12),
        lambda state: {"m": state[0].mu, "v": state[0].nu},
        coefficients=FLOAT32,
    )


def test_optax_has_epsilon_inside_the_root_of_adagrad():
    assert_optax_agrees(
        reference.Adagrad(0.125, 0.25, 2**-12, epsilon_inside=True),
        lambda optax: optax.adagrad(0.125, 0.25, 2**-12),
        lambda state: {"accumulator": state[0].sum_of_squares},
    )


def test_torch_calls_decay_lr_decay():
    assert_torch_agrees(
        reference.Adagrad(0.1, 0.3, 1e-4, decay=0.01),
        "Adagrad",
        {"lr": 0.1, "lr_decay": 0.01, "initial_accumulator_value": 0.3, "eps": 1e-4},
        {"accumulator": "sum"},
    )
