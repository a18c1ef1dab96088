"""Muon against optax; its kin."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from reference.conformance.convention import BoundedArithmetic, ideal
from reference.conformance.judge import compare
from reference.conformance.rounding import FLOAT64, IEEE, SLACK
from tests.reference.families.sources import optax_in_float64


@pytest.mark.parametrize("shape", [(4, 4), (6, 4), (4, 6)])
@pytest.mark.parametrize("consistent_rms", [0.2, None])
def test_optax_takes_the_same_first_step(shape, consistent_rms):
    """Later its momentum is an average, which epsilon can tell from a sum."""
    if consistent_rms is None and shape[0] != shape[1]:
        return  # a scale of its own
    rng = np.random.default_rng(0)
    w, g = rng.normal(size=shape), rng.normal(size=shape)
    muon = reference.Muon(
        0.125, nesterov=False, rms_rate=consistent_rms, weight_decay=0.25
    )
    bounded = BoundedArithmetic(ideal(FLOAT64), FLOAT64, IEEE)
    [due], _ = muon.advance([bounded.lift(w)], [g], muon.init([w]), bounded)
    with optax_in_float64() as optax:
        transform = optax.contrib.muon(
            0.125,
            eps=1e-7,
            weight_decay=0.25,
            nesterov=False,
            consistent_rms=consistent_rms,
        )
        updates, _ = transform.update(g, transform.init(w), w)
        theirs = np.asarray(optax.apply_updates(w, updates))
    ratio, _ = compare(due, theirs)
    assert ratio.max() <= SLACK


def test_other_weights_are_adams():
    w, gradients = np.array([1.0, -2.0]), [np.array([3.0, 0.5])] * 3
    muon = reference.Muon(0.125, adam_weight_decay=0.0)
    adam = reference.Adam(0.125)
    assert np.array_equal(muon.run(w, gradients)[0], adam.run(w, gradients)[0])


def test_singular_values_end_near_one():
    """The default polynomial maps [1/10, 1] into [0.68, 1.14] in five steps."""
    s = np.linspace(0.1, 1, 10_001)
    for _ in range(5):
        s = 3.4445 * s - 4.775 * s**3 + 2.0315 * s**5
    rng = np.random.default_rng(0)
    u, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    g = u @ np.diag(np.linspace(1, 2, 8))
    step, _ = reference.Muon(1.0, rms_rate=None, weight_decay=0.0).run(
        np.zeros((8, 8)), [g]
    )
    singular = np.linalg.svd(step, compute_uv=False)
    assert s.min() <= singular.min() <= singular.max() <= s.max()


def test_a_tall_matrix_is_a_wide_one_transposed():
    rng = np.random.default_rng(0)
    w, g = rng.normal(size=(5, 3)), rng.normal(size=(5, 3))
    tall, _ = reference.Muon().run(w, [g])
    wide, _ = reference.Muon().run(w.T, [g.T])
    assert np.array_equal(tall, wide.T)
