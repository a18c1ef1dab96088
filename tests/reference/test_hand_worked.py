"""Every rule, two steps on three weights, against numbers worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from reference import IndexedSlices
from tests.reference.worked import CASES, G1, G2, MATRICES, S1, S2, compare, modules

modules()


@pytest.mark.parametrize("case", CASES)
def test_dense_steps(case):
    optimizer, dense, _ = CASES[case]
    compare(optimizer, dense, [np.array(G1), np.array(G2)], (3,))


@pytest.mark.parametrize("case", CASES)
def test_sparse_steps(case):
    optimizer, _, sparse = CASES[case]
    compare(optimizer, sparse, [S1, S2], (3,))


@pytest.mark.parametrize("case", CASES)
def test_sparse_steps_of_rows(case):
    optimizer, _, sparse = CASES[case]
    if optimizer.selected_for((3, 1)) is not optimizer.selected_for((3,)):
        return  # two axes have another rule
    of_rows = [
        IndexedSlices(slices.values.reshape(-1, 1), slices.indices)
        for slices in (S1, S2)
    ]
    compare(optimizer, sparse, of_rows, (3, 1))


@pytest.mark.parametrize("case", MATRICES)
def test_steps_of_matrices(case):
    optimizer, w, gradients, steps = MATRICES[case]
    compare(optimizer, steps, [np.array(g) for g in gradients], np.shape(w), w)


@pytest.mark.parametrize("name", reference.OPTIMIZERS)
def test_every_rule_is_worked(name):
    worked = {optimizer.selected_for((3,)) for optimizer, _, _ in CASES.values()}
    for optimizer, w, *_ in MATRICES.values():
        worked.add(optimizer.selected_for(np.shape(w)))
    rules = reference.OPTIMIZERS[name].rules()
    missing = {n for n, rule in rules.items() if rule not in worked}
    assert not missing, (
        f"{name}: no numbers worked by hand for {', '.join(sorted(missing))}; put them "
        "into tests/reference/worked, in the file of the family"
    )
