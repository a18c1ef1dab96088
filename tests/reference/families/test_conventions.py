"""Where torch and optax have epsilon and the rate; what torch calls lr_decay."""

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


AVERAGES = {"rms": "square_avg", "mg": "grad_avg"}


@pytest.mark.parametrize("centered", [False, True])
def test_torch_has_epsilon_and_rate_outside_in_rmsprop_with_momentum(centered):
    options = {"momentum": 0.9, "centered": centered}
    slots = AVERAGES if centered else {"rms": "square_avg"}
    assert_torch_agrees(
        rmsprop(0.1, 1e-4, epsilon_inside=False, rate_inside=False, **options),
        "RMSprop",
        {"lr": 0.1, "alpha": 0.875, "eps": 1e-4, **options},
        {**slots, "momentum": "momentum_buffer"},
    )


def rmsprop(rate, epsilon, **options):
    return reference.RMSprop(rate, 0.875, epsilon=epsilon, **options)


def kept_by_optax(state):
    """The averages, and the velocity where the chain has one."""
    found = {"rms": state[0].nu}
    if hasattr(state[0], "mu"):
        found["mg"] = state[0].mu
    if trace := [part.trace for part in state if hasattr(part, "trace")]:
        found["momentum"] = trace[0]
    return found


def kept_with_the_rate_inside(state):
    """The velocity of optax points the way of the step, ours the other way."""
    found = kept_by_optax(state)
    return {n: -v if n == "momentum" else v for n, v in found.items()}


@pytest.mark.parametrize("centered", [False, True])
def test_optax_has_epsilon_inside_the_root_of_rmsprop(centered):
    assert_optax_agrees(
        rmsprop(0.125, 2**-12, epsilon_inside=True, centered=centered),
        lambda optax: optax.rmsprop(0.125, 0.875, 2**-12, centered=centered),
        kept_by_optax,
    )


@pytest.mark.parametrize("centered", [False, True])
def test_optax_has_epsilon_outside_and_the_rate_inside_if_told(centered):
    options = {"momentum": 0.75, "centered": centered}
    assert_optax_agrees(
        rmsprop(0.125, 2**-12, epsilon_inside=False, **options),
        lambda optax: optax.rmsprop(0.125, 0.875, 2**-12, eps_in_sqrt=False, **options),
        kept_with_the_rate_inside,
    )


@pytest.mark.parametrize("centered", [False, True])
def test_a_chain_of_optax_has_epsilon_inside_and_the_rate_outside(centered):
    def chain(optax):
        scale = optax.scale_by_stddev if centered else optax.scale_by_rms
        return optax.chain(
            scale(0.875, 2**-12), optax.trace(0.75), optax.scale_by_learning_rate(0.125)
        )

    options = {"momentum": 0.75, "centered": centered, "rate_inside": False}
    assert_optax_agrees(rmsprop(0.125, 2**-12, **options), chain, kept_by_optax)
