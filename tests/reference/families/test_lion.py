"""Lion against optax, and what its steps are."""

from __future__ import annotations

import numpy as np

import reference
from reference.conformance.rounding import FLOAT32
from tests.reference.families.sources import assert_optax_agrees
from tests.reference.test_ports import some_gradients, some_weights


def test_optax_takes_the_same_steps():
    assert_optax_agrees(
        reference.Lion(0.125, 0.875, 0.96875),
        lambda optax: optax.lion(0.125, 0.875, 0.96875, weight_decay=0.0),
        lambda state: {"m": state[0].mu},
        coefficients=FLOAT32,
    )


def test_no_average_and_no_gradient_move_nothing():
    w, state = reference.Lion().run(np.ones(2), [np.zeros(2)] * 3)
    assert w.tolist() == [1, 1]
    assert state.slots[0]["m"].tolist() == [0, 0]


def test_a_step_is_the_learning_rate_or_nothing():
    w = some_weights() * 0
    lion = reference.Lion(0.125)
    state = lion.init(w)
    for g in some_gradients():
        new, state = lion.step(w, g, state)
        assert set(np.abs(new - w)) <= {0.0, 0.125}
        w = new
