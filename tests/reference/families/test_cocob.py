"""COCOB against optax; faults of Addons' class that ours has not."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from tests.reference.families.sources import assert_optax_agrees


def test_optax_takes_the_same_steps():
    """It keeps the first weights, where ours keeps how far the weight is from them."""
    assert_optax_agrees(
        reference.COCOB(alpha=4.0),
        lambda optax: optax.contrib.cocob(1.0, 4.0, 1e-8),
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_no_gradient_moves_nothing(dtype):
    """Addons, in float16: NaN, as 1e-8 is 0 there."""
    w, state = reference.COCOB().run(np.ones(2, dtype), [np.zeros(2)] * 3)
    assert w.tolist() == [1, 1]
    assert state.slots[0]["tilde_w"].tolist() == [0, 0]


def test_the_first_step_is_one_over_alpha():
    w, _ = reference.COCOB(alpha=8.0).run(np.zeros(3), [np.array([1e-6, -3.0, 1e6])])
    assert w.tolist() == [-1 / 8, 1 / 8, -1 / 8]


def test_alpha_below_one_is_refused():
    with pytest.raises(ValueError, match=r"alpha must lie in \[1, inf\), got 0.5"):
        reference.COCOB(alpha=0.5)
