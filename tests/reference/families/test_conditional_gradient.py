"""ConditionalGradient: Addons' faults; what the corner is."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from reference.schedules import PiecewiseConstantDecay

ONE = [np.array([1.0])]


def test_decay_counts():
    """Addons ignores it: 0.5 * 0.5 after two steps without a gradient."""
    opt = reference.ConditionalGradient(0.5, decay=1.0)
    w, _ = opt.run(np.array([1.0]), [np.array([0.0])] * 2)
    assert w.tolist() == [0.5 * 0.25]


def test_a_schedule_counts():
    """Addons raises an error."""
    opt = reference.ConditionalGradient(PiecewiseConstantDecay([0], [0.5, 0.25]))
    w, _ = opt.run(np.array([1.0]), [np.array([0.0])] * 2)
    assert w.tolist() == [0.5 * 0.25]


@pytest.mark.parametrize("ord", ["fro", "nuclear"])
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_a_zero_gradient_only_shrinks(ord, dtype):
    """Addons moves one element where the norm is nuclear, in half precision none."""
    opt = reference.ConditionalGradient(0.5, lambda_=4.0, ord=ord)
    w, _ = opt.run(np.ones((2, 3), dtype), [np.zeros((2, 3), dtype)])
    assert np.all(w == 0.5)


def test_the_corner_is_the_best_of_the_ball():
    """No matrix of nuclear norm 1 has a smaller inner product with the gradient."""
    rng = np.random.default_rng(0)
    g = rng.normal(size=(4, 3))
    opt = reference.ConditionalGradient(0.0, lambda_=1.0, ord="nuclear")
    corner, _ = opt.run(np.zeros((4, 3)), [g])
    others = rng.normal(size=(100, 4, 3))
    others /= np.linalg.norm(others, "nuc", axis=(1, 2))[:, None, None]
    assert np.sum(corner * g) < np.min(np.sum(others * g, axis=(1, 2)))


def test_more_axes_are_all_others_against_the_last():
    rng = np.random.default_rng(0)
    w, g = rng.normal(size=(2, 2, 3)), rng.normal(size=(2, 2, 3))
    opt = reference.ConditionalGradient(0.5, lambda_=4.0, ord="nuclear")
    cube, _ = opt.run(w, [g])
    matrix, _ = opt.run(w.reshape(4, 3), [g.reshape(4, 3)])
    assert np.array_equal(cube.reshape(4, 3), matrix)


def test_an_unknown_norm_is_refused():
    with pytest.raises(ValueError, match="ord must be one of fro, nuclear, got 'l1'"):
        reference.ConditionalGradient(ord="l1")
