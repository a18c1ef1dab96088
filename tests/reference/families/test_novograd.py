"""NovoGrad against optax; Addons' fault with weights that are first seen late."""

from __future__ import annotations

import numpy as np

import reference
from tests.reference.families.sources import assert_optax_agrees


def test_optax_takes_the_same_steps():
    assert_optax_agrees(
        reference.NovoGrad(0.125, 0.9, 0.75, 1e-4, weight_decay=0.05),
        lambda optax: optax.novograd(0.125, 0.9, 0.75, eps=1e-4, weight_decay=0.05),
        lambda state: {"v": state[0].nu},
    )


def test_a_weight_that_is_first_seen_late_takes_a_first_step():
    """In Addons one of length 31.6 instead of 1, as v starts from (1 - beta_2) g^2."""
    novograd = reference.NovoGrad(1.0, epsilon=0.0, grad_averaging=True)
    weights, g = [np.array([5.0]), np.array([5.0])], np.array([4.0])
    (_, late), state = novograd.run(weights, [[g, None], [g, g]])
    assert late.tolist() == [5 - 4 / 4]
    assert state.slots[1]["v"] == 16


def test_rows_of_a_sparse_gradient_share_the_maximum():
    """In Addons amsgrad and rows raise an error of shapes."""
    novograd = reference.NovoGrad(1.0, epsilon=0.0, amsgrad=True)
    rows = reference.IndexedSlices(np.array([[4.0]]), np.array([1]))
    w, state = novograd.run(np.ones((3, 1)), [rows])
    assert w.ravel().tolist() == [1, 0, 1]
    assert state.slots[0]["vhat"] == 16
