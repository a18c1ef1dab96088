"""LAMB against optax and Keras 3; its kin."""

from __future__ import annotations

import numpy as np

import reference
from tests.reference.families.sources import assert_optax_agrees, assert_torch_agrees


def test_optax_takes_the_same_steps():
    assert_optax_agrees(
        reference.LAMB(0.1, 0.9, 0.99, 1e-4, weight_decay=0.05),
        lambda optax: optax.lamb(0.1, 0.9, 0.99, eps=1e-4, weight_decay=0.05),
        lambda state: {"m": state[0].mu, "v": state[0].nu},
    )


def test_without_adaptation_it_is_adamw_of_torch():
    assert_torch_agrees(
        reference.LAMB(0.1, 0.9, 0.99, 1e-4, weight_decay=0.05, layer_adaptation=False),
        "AdamW",
        {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-4, "weight_decay": 0.05},
        {"m": "exp_avg", "v": "exp_avg_sq"},
    )


def test_without_decay_both_forms_are_one():
    w, gradients = np.array([1.0, -2.0]), [np.array([3.0, 0.5])] * 3
    forms = [reference.LAMB(0.125, decay_first=first) for first in (False, True)]
    first, second = (form.run(w, gradients)[0] for form in forms)
    assert np.array_equal(first, second)


def test_a_weight_of_zeros_has_ratio_one():
    lamb = reference.LAMB(0.25, beta_1=0.5, beta_2=0.75, epsilon=1.0)
    w, _ = lamb.run(np.zeros(2), [np.array([1.0, 3.0])])
    assert w.tolist() == [-0.25 * 1 / 2, -0.25 * 3 / 4]


def test_no_half_precision_norm_overflows():
    """In Addons the squares of 300 x 300 ones sum to infinity in float16, then NaN."""
    w = np.ones((300, 300), np.float16)
    lamb = reference.LAMB(0.25, epsilon=0.0)
    w, _ = lamb.run(w, [np.ones_like(w)])
    assert np.all(w == 0.75)
