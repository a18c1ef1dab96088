"""LARS against optax; its kin."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from tests.reference.families.sources import assert_optax_agrees


@pytest.mark.parametrize("nesterov", [False, True])
def test_optax_takes_the_same_steps(nesterov):
    assert_optax_agrees(
        reference.LARS(0.125, 0.9, 0.05, 0.01, nesterov=nesterov),
        lambda optax: optax.lars(
            0.125, 0.05, trust_coefficient=0.01, momentum=0.9, nesterov=nesterov
        ),
    )


@pytest.mark.parametrize("nesterov", [False, True])
def test_both_forms_of_momentum_are_one_without_momentum(nesterov):
    w, gradients = np.array([1.0, -2.0]), [np.array([3.0, 0.5])] * 3
    forms = [
        reference.LARS(0.125, 0.0, classic_momentum=classic, nesterov=nesterov)
        for classic in (True, False)
    ]
    first, second = (form.run(w, gradients)[0] for form in forms)
    assert np.array_equal(first, second)


def test_a_weight_of_zeros_moves_by_momentum():
    lars = reference.LARS(0.25, momentum=0.5)
    sgd = reference.SGD(0.25, momentum=0.5)
    g = [np.array([1.0, 3.0])]
    assert lars.run(np.zeros(2), g)[0].tolist() == sgd.run(np.zeros(2), g)[0].tolist()
