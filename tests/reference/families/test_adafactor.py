"""Adafactor against torch; Keras 3's faults; its kin."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from tests.reference.families.sources import assert_torch_agrees

ARGUMENTS = {"lr": 0.5, "eps": (1e-30, 1e-3), "weight_decay": 0.0}


def test_torch_takes_the_same_steps_with_a_vector():
    """torch adds no epsilon to squares: 1e-30 is far below the bound."""
    assert_torch_agrees(
        reference.Adafactor(0.5),
        "Adafactor",
        ARGUMENTS,
        {"v": "variance"},
        zeros=False,
    )


def test_torch_takes_the_same_steps_with_a_matrix():
    torch = pytest.importorskip("torch", reason="torch, a second source, is missing")
    rng = np.random.default_rng(0)
    w, gradients = rng.normal(size=(6, 4)), rng.normal(size=(5, 6, 4))
    theirs = torch.nn.Parameter(torch.tensor(w))
    optimizer = torch.optim.Adafactor([theirs], **ARGUMENTS)
    for g in gradients:
        theirs.grad = torch.tensor(g)
        optimizer.step()
    ours, state = reference.Adafactor(0.5).run(w, list(gradients))
    # Five steps, each of fewer than 100 operations on each side, sums of 24 included;
    # no intermediate is larger than 8, and no divisor smaller than 1/8.
    bound = 5 * 2 * 100 * 8 * 8 * np.finfo(np.float64).eps / 2
    assert np.all(np.abs(ours - theirs.detach().numpy()) <= bound)
    rows = optimizer.state[theirs]["row_var"].numpy()
    assert np.all(np.abs(state.slots[0]["r"] - rows.ravel()) <= bound)


def test_slots_take_the_memory_that_the_paper_promises():
    """Keras 3 keeps a third slot, of the weight's own shape."""
    state = reference.Adafactor().init([np.ones((100, 50)), np.ones(7), np.ones(())])
    shapes = [{n: s.shape for n, s in slots.items()} for slots in state.slots]
    assert shapes == [{"r": (100,), "c": (50,)}, {"v": (7,)}, {"v": ()}]


def test_without_relative_step_the_learning_rate_is_what_was_given():
    """In Keras 3 it is 1 / sqrt(t) at most, whatever relative_step says."""
    g = [np.array([1.0])] * 4
    still = {"clip_threshold": 1.0, "epsilon_1": 0.0}
    free = reference.Adafactor(1.0, relative_step=False, **still)
    w, state = free.run(np.array([1.0]), g[:1])
    for _ in range(3):
        before = w
        w, state = free.step(before, g[0], state)
        assert w == before - max(abs(before.item()), 1e-3)


def test_rows_without_a_gradient_stay_finite_in_half_precision():
    """In Keras 3 NaN, as epsilon_1 is lost in float16."""
    g = np.zeros((3, 2), np.float16)
    g[0] = 1
    w, _ = reference.Adafactor().run(np.ones_like(g), [g] * 3)
    assert np.all(np.isfinite(w))


def test_without_factoring_it_is_scaled_rmsprop():
    """From weights of rms 1, unclipped, the first direction is the gradient's sign."""
    w, _ = reference.Adafactor(0.25, epsilon_1=0.0).run(
        np.array([1.0, -1.0]), [np.array([3.0, -5.0])]
    )
    assert w.tolist() == [0.75, -0.75]
