"""AdaBelief against optax, and where it is rectified or has a maximum."""

from __future__ import annotations

from math import sqrt

import numpy as np

import reference
from reference import IndexedSlices, State
from reference.conformance.rounding import FLOAT32
from tests.reference.families.sources import assert_optax_agrees
from tests.reference.worked import bound


def test_optax_takes_the_same_steps():
    assert_optax_agrees(
        reference.AdaBelief(0.125, 0.875, 0.96875, 2**-12, rectify=False),
        lambda optax: optax.adabelief(0.125, 0.875, 0.96875, 2**-12, 2**-12),
        lambda state: {"m": state[0].mu, "v": state[0].nu},
        coefficients=FLOAT32,
    )


def test_the_sixth_step_is_rectified():
    """As test_rectified_adam: m = 2; v = 0.75 * 4 + 0.25 * (3 - 2)**2 + 0.25."""
    belief = reference.AdaBelief(0.5, 0.5, 0.75, 0.25, sma_threshold=4)
    for amsgrad in (False, True):
        belief = reference.AdaBelief(
            0.5, 0.5, 0.75, 0.25, amsgrad=amsgrad, sma_threshold=4
        )
        slots = {"m": np.array([1.0]), "v": np.array([4.0])}
        if amsgrad:
            slots["vhat"] = np.array([16.0])
        w, _ = belief.step(np.array([1.0]), np.array([3.0]), State(5, (slots,)))
        power = 0.75**6
        rho = 7 - 12 * power / (1 - power)
        r = sqrt((rho - 4) * (rho - 2) * 7 / (3 * 5 * rho))
        v = 16 if amsgrad else 3.5
        u = r * 2 / (1 - 0.5**6) / (sqrt(v / (1 - power)) + 0.25)
        assert abs(w - (1 - 0.5 * u)) <= bound([16.0])


def test_asked_for_every_row_it_is_dense_there_too():
    """epsilon and m**2 are then added to untouched rows as well."""
    row = IndexedSlices(np.array([2.0]), np.array([1]))
    slots = {"m": np.array([4.0, 4.0]), "v": np.array([4.0, 4.0])}
    for sparse, due in ((None, 0.5 * 4), ("every_row", 0.5 * 4 + 0.5 * 2**2 + 0.25)):
        belief = reference.AdaBelief(0.5, 0.5, 0.5, 0.25, rectify=False, sparse=sparse)
        _, state = belief.step(np.zeros(2), row, State(0, (dict(slots),)))
        assert state.slots[0]["v"].tolist() == [due, 0.5 * 4 + 0.5 * 1**2 + 0.25]
