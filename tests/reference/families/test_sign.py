"""SignSGD, Signum and Rprop beside torch and optax, and where those two differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import reference
from reference.schedules import PiecewiseConstantDecay
from tests.reference.families.sources import (
    assert_optax_agrees,
    assert_torch_agrees,
    optax_in_float64,
)
from tests.reference.test_ports import Case, some_gradients, some_weights, torch_steps


def test_optax_takes_the_same_steps_by_signs():
    assert_optax_agrees(reference.SignSGD(0.125), lambda o: o.sign_sgd(0.125))
    assert_optax_agrees(
        reference.Signum(0.125, 0.875),
        lambda o: o.signum(0.125, 0.875),
        lambda state: {"m": state[0].ema},
    )


def test_signum_without_memory_is_signsgd():
    w, gradients = some_weights(), list(some_gradients())
    signum, _ = reference.Signum(0.1, beta=0.0).run(w, gradients)
    assert np.array_equal(signum, reference.SignSGD(0.1).run(w, gradients)[0])


RPROP = reference.Rprop(0.125, 0.5, 1.25, 2.0**-5, 0.25)


def test_torch_takes_the_same_resilient_steps():
    assert_torch_agrees(
        RPROP,
        "Rprop",
        {"lr": 0.125, "etas": (0.5, 1.25), "step_sizes": (2.0**-5, 0.25)},
        {"prev": "prev", "step_size": "step_size"},
    )


def optax_rprop(w, gradients, *arguments):
    """Weights and step sizes after each step."""
    with optax_in_float64() as optax:
        transform = optax.rprop(*arguments)
        state = transform.init(w)
        for g in gradients:
            updates, state = transform.update(g, state)
            w = np.asarray(optax.apply_updates(w, updates))
            yield w, np.asarray(state[0].step_sizes)


def test_optax_takes_every_resilient_step_one_step_late():
    """Its step sizes are right; what it applies is the update of the step before."""
    gradients = [np.abs(g) + 1 for g in some_gradients()]  # no change of sign
    w, state = some_weights(), RPROP.init(some_weights())
    theirs = list(optax_rprop(w, gradients, 0.125, 0.5, 1.25, 2.0**-5, 0.25))
    assert np.array_equal(theirs[0][0], w)
    for g, (_, step_sizes), (late, _) in zip(
        gradients, theirs, theirs[1:], strict=False
    ):
        w, state = RPROP.step(w, g, state)
        assert np.array_equal(step_sizes, state.slots[0]["step_size"])
        assert np.array_equal(late, w)


def test_the_step_sizes_of_optax_are_ours_through_changes_of_sign():
    w, gradients = some_weights(), list(some_gradients())
    state = RPROP.init(w)
    turns = 0
    for g, (_, step_sizes) in zip(
        gradients,
        optax_rprop(w, gradients, 0.125, 0.5, 1.25, 2.0**-5, 0.25),
        strict=True,
    ):
        turns += np.count_nonzero(g * state.slots[0]["prev"] < 0)
        w, state = RPROP.step(w, g, state)
        assert np.array_equal(step_sizes, state.slots[0]["step_size"])
    assert turns > 0


def torch_rprop(w, gradients, lr, plus=1.2):
    case = Case(reference.Rprop(), "Rprop", {"lr": lr, "etas": (0.5, plus)}, {})
    *_, last = torch_steps(case, w, gradients)
    return last["w"]


def test_optax_does_not_limit_a_step_before_it_knows_a_sign():
    w, gradients = np.zeros(1), [np.ones(1)]
    assert reference.Rprop(100.0).run(w, gradients)[0].tolist() == [-50]
    assert torch_rprop(w, gradients, 100.0).tolist() == [-50]
    *_, (late, _) = optax_rprop(w, gradients * 2, 100.0)
    assert late.tolist() == [-100]


def test_a_product_of_tiny_gradients_has_no_sign_in_torch():
    """The product of 1e-200 and 1e-200 is 0: its step sizes neither grow nor shrink."""
    w = np.zeros(1)
    same, turned = ([np.array([1e-200]), np.array([sign * 1e-200])] for sign in (1, -1))
    ours = reference.Rprop(0.125, eta_plus=2.0)
    assert ours.run(w, same)[0].tolist() == [-(0.125 + 0.25)]
    assert torch_rprop(w, same, 0.125, 2.0).tolist() == [-(0.125 + 0.125)]
    assert ours.run(w, turned)[0].tolist() == [-0.125]
    assert torch_rprop(w, turned, 0.125, 2.0).tolist() == [-0.125 + 0.125]


def test_the_learning_rate_is_the_first_step_size_alone():
    rprop = reference.Rprop(0.125)
    w, state = rprop.run(np.zeros(1), [np.ones(1)])
    same, _ = rprop.step(w, np.ones(1), state)
    later, _ = replace(rprop, learning_rate=2.0).step(w, np.ones(1), state)
    assert later.tolist() == same.tolist()


def test_a_schedule_gives_the_first_step_size_by_its_first_value():
    schedule = PiecewiseConstantDecay([0], [0.125, 2.0])
    state = reference.Rprop(schedule).init(np.zeros(1))
    assert state.slots[0]["step_size"].tolist() == [0.125]
