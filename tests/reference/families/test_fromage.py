"""Fromage against optax."""

from __future__ import annotations

import reference
from tests.reference.families.sources import assert_optax_agrees


def test_optax_takes_the_same_steps():
    assert_optax_agrees(
        reference.Fromage(0.1, 1e-3), lambda optax: optax.fromage(0.1, 1e-3)
    )
