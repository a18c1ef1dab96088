"""How an optimizer is compared with its exact counterpart in torch or optax."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest

from tests.reference.test_ports import (
    Case,
    assert_same,
    some_gradients,
    some_rows,
    some_weights,
    torch_steps,
)


def assert_torch_agrees(ours, theirs, arguments, state, *, sparse=False, **case):
    """torch.optim's class of that name takes the same steps, within the bound.

    ``state`` gives the names of torch's state behind our slots; ``case`` what else a
    ``Case`` of test_ports takes.
    """
    case = Case(ours, theirs, arguments, state, **case)
    if sparse:
        w, gradients = some_weights()[-24:].reshape(8, 3), list(some_rows())
    else:
        w, gradients = case.weights(), list(some_gradients(case.zeros))
    assert_same(case, w, gradients, torch_steps(case, w, gradients))


@contextlib.contextmanager
def optax_in_float64():
    """optax, with jax in float64 for the duration."""
    optax = pytest.importorskip("optax", reason="optax, a second source, is missing")
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    try:
        yield optax
    finally:
        jax.config.update("jax_enable_x64", before)


def assert_optax_agrees(ours, make, seen=lambda state: {}, **case):
    """The transformation ``make(optax)`` takes the same steps, within the bound.

    ``seen`` takes slots out of its state, by the names they have here.
    """
    case = Case(ours, "", {}, {}, **case)
    w, gradients = case.weights(), list(some_gradients(case.zeros))
    with optax_in_float64() as optax:
        transform = make(optax)

        def steps():
            weights, state = w, transform.init(w)
            for g in gradients:
                updates, state = transform.update(g, state, weights)
                weights = optax.apply_updates(weights, updates)
                assert weights.dtype == np.float64
                yield {"w": weights, **seen(state)}

        assert_same(case, w, gradients, steps())
