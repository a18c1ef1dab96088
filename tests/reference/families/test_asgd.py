"""ASGD against torch; kin."""

from __future__ import annotations

import reference
from reference.conformance.rounding import FLOAT32
from tests.reference.families.sources import assert_torch_agrees
from tests.reference.test_ports import some_gradients, some_weights


def test_torch_takes_the_same_steps():
    """torch keeps the rate of a step, and the share of the average, in float32."""
    assert_torch_agrees(
        reference.ASGD(0.125, lambd=2**-6, alpha=0.75, t0=4.0),
        "ASGD",
        {"lr": 0.125, "lambd": 2**-6, "alpha": 0.75, "t0": 4.0},
        {"ax": "ax"},
        coefficients=FLOAT32,
    )


def test_without_decay_it_is_gradient_descent():
    w, _ = reference.ASGD(0.125, lambd=0.0).run(some_weights(), some_gradients())
    plain, _ = reference.SGD(0.125).run(some_weights(), some_gradients())
    assert w.tobytes() == plain.tobytes()


def test_before_t0_the_average_is_the_weight():
    w, state = reference.ASGD(t0=100.0).run(some_weights(), some_gradients())
    error = abs(state.slots[0]["ax"] - w)
    assert error.max() <= 2 * 2**-53 * abs(w).max()  # ax + (w - ax): two roundings
