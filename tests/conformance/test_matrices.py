"""Bounds on functions of whole matrices: sound, and not so wide that faults hide."""

from __future__ import annotations

import numpy as np
import pytest

from reference.conformance.judge import compare
from reference.conformance.rounding import FLOAT32, IEEE, SLACK, Bounded, Rounding
from reference.linalg import leading_pair, newton_schulz

MUON = 3.4445, -4.775, 2.0315
SHAPES = [(1, 1), (1, 7), (6, 4), (16, 16), (40, 100)]


def bounded(matrix, bound=0.0):
    whole = np.full(matrix.shape, bound)
    return Bounded(matrix.astype(np.float64), whole, Rounding(FLOAT32, IEEE))


def matrices(shape):
    """Well and badly conditioned, tiny and huge."""
    rng = np.random.default_rng(0)
    for scale in (1e-20, 1.0, 1e15):
        g = rng.normal(size=shape)
        yield scale * g
        yield scale * np.outer(g[:, 0], g[0]) + scale * 1e-3 * rng.normal(size=shape)


def worst(due, came):
    return float(compare(due, came.astype(np.float64))[0].max())


@pytest.mark.parametrize("shape", SHAPES)
def test_float32_is_within_the_bound_of_newton_schulz(shape):
    for g in matrices(shape):
        g = g.astype(np.float32)
        came = newton_schulz(g, *map(np.float32, MUON), 5)
        assert came.dtype == np.float32
        assert worst(newton_schulz(bounded(g), *MUON, 5), came) <= 1


@pytest.mark.parametrize("shape", SHAPES)
def test_float32_is_within_the_bound_of_the_leading_pair(shape):
    for g in matrices(shape):
        g = g.astype(np.float32)
        came = leading_pair(g)
        assert came.dtype == np.float32
        assert worst(leading_pair(bounded(g)), came) <= 1


@pytest.mark.parametrize(
    "function", [leading_pair, lambda g: newton_schulz(g, *MUON, 5)]
)
def test_an_inherited_error_is_within_the_bound(function):
    rng = np.random.default_rng(0)
    for g in matrices((6, 4)):
        size = 1e-3 * np.abs(g).max() / 24
        due = function(bounded(g, size))
        for _ in range(100):
            moved = g + rng.uniform(-size, size, g.shape)
            assert worst(due, function(moved)) <= 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda g: newton_schulz(g, *MUON, 4),
        lambda g: newton_schulz(g, 3.4445, -4.775, 2.04, 5),
        lambda g: newton_schulz(g, *MUON, 5) * (1 + 2.0**-6),
        lambda g: newton_schulz(g + 0.03 * np.eye(6, 4), *MUON, 5),
    ],
)
def test_a_wrong_iteration_is_beyond_the_bound(wrong):
    g = np.random.default_rng(0).normal(size=(6, 4))
    assert worst(newton_schulz(bounded(g), *MUON, 5), wrong(g)) > SLACK


@pytest.mark.parametrize("wrong", [lambda p: -p, lambda p: p.T.reshape(6, 4)])
def test_a_wrong_pair_is_beyond_the_bound(wrong):
    g = np.random.default_rng(0).normal(size=(6, 4))
    assert worst(leading_pair(bounded(g)), wrong(leading_pair(g))) > SLACK


def test_equal_singular_values_leave_the_pair_undecided():
    due = leading_pair(bounded(np.eye(3)))
    assert np.all(due.branch)
    assert worst(due, np.diag([0.0, 0.0, 1.0])) <= 1
