"""LazyAdam against torch.optim.SparseAdam and Adam; Addons' fault with amsgrad."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from reference import IndexedSlices
from tests.reference.families.sources import assert_torch_agrees


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # inside torch
def test_torch_calls_it_sparse_adam():
    assert_torch_agrees(
        reference.LazyAdam(0.1, 0.9, 0.99, 1e-4),
        "SparseAdam",
        {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-4},
        {"m": "exp_avg", "v": "exp_avg_sq"},
        sparse=True,
    )


@pytest.mark.parametrize("amsgrad", [False, True])
def test_it_is_adam_on_touched_rows(amsgrad):
    lazy = reference.LazyAdam(amsgrad=amsgrad)
    adam = reference.Adam(amsgrad=amsgrad, sparse="touched_rows")
    assert lazy.rule.source == adam.rule.source
    assert lazy.policy == adam.policy


def test_amsgrad_keeps_the_maximum_of_touched_rows():
    """Addons' sparse update never writes vhat, so that it stays 0."""
    lazy = reference.LazyAdam(0.5, beta_1=0.0, beta_2=0.5, epsilon=0.0, amsgrad=True)
    rows = [IndexedSlices(np.array([g]), np.array([1])) for g in (4.0, 0.0)]
    _, state = lazy.run(np.zeros(2), rows)
    assert state.slots[0]["v"].tolist() == [0, 4]
    assert state.slots[0]["vhat"].tolist() == [0, 8]
