"""Yogi against optax; kin."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from reference.conformance.rounding import FLOAT32
from tests.reference.families.sources import assert_optax_agrees


def test_optax_takes_the_steps_of_optax_yogi():
    assert_optax_agrees(
        reference.OptaxYogi(0.125, 0.875, 0.96875, 2**-10, 2**-20),
        # optax.yogi has no argument for the start.
        lambda optax: optax.chain(
            optax.scale_by_yogi(0.875, 0.96875, 2**-10, 0.0, 2**-20),
            optax.scale_by_learning_rate(0.125),
        ),
        lambda state: {"m": state[0].mu, "v": state[0].nu},
        coefficients=FLOAT32,
    )


@pytest.mark.parametrize("soft", [False, True])
def test_a_square_equal_to_v_changes_nothing(soft):
    yogi = reference.Yogi(
        activation="tanh" if soft else "sign", initial_accumulator_value=4.0
    )
    _, state = yogi.run(np.zeros(2), [np.array([2.0, -2.0])] * 3)
    assert state.slots[0]["v"].tolist() == [4, 4]


def test_an_unknown_activation_is_refused():
    with pytest.raises(ValueError, match="'sign' or 'tanh', got 'relu'"):
        reference.Yogi(activation="relu")
