"""Decoupled weight decay: second sources, kinship, and what its options mean."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import reference
from reference.conformance.rounding import FLOAT32
from reference.schedules import PiecewiseConstantDecay
from tests.reference.families.sources import (
    assert_optax_agrees,
    assert_torch_agrees,
)
from tests.reference.test_ports import MOMENTS, some_gradients, some_weights

MODERN = {"decay_rows": "every_row", "decay_times_learning_rate": True}
LEARNERS = [
    name
    for name, cls in reference.OPTIMIZERS.items()
    if cls(**{**cls.examples[0], "weight_decay": 0.5}).decays
]


@pytest.mark.parametrize("amsgrad", [False, True])
def test_torch_takes_the_steps_of_adamw(amsgrad):
    assert_torch_agrees(
        reference.AdamW(0.1, 0.8, 0.9, 1e-4, amsgrad, weight_decay=0.25, **MODERN),
        "AdamW",
        {
            "lr": 0.1,
            "betas": (0.8, 0.9),
            "eps": 1e-4,
            "weight_decay": 0.25,
            "amsgrad": amsgrad,
        },
        MOMENTS | ({"vhat": "max_exp_avg_sq"} if amsgrad else {}),
        corrected=True,
    )


def test_torch_takes_the_steps_of_nadamw():
    ours = reference.NadamW(
        0.125,
        0.875,
        0.96875,
        2**-12,
        schedule_decay=2**-8,
        weight_decay=0.25,
        decay_times_learning_rate=True,
    )
    assert_torch_agrees(
        ours,
        "NAdam",
        {
            "lr": 0.125,
            "betas": (0.875, 0.96875),
            "eps": 2**-12,
            "momentum_decay": 2**-8,
            "weight_decay": 0.25,
            "decoupled_weight_decay": True,
        },
        MOMENTS,
        coefficients=FLOAT32,
    )


def test_optax_takes_the_steps_of_adamw():
    assert_optax_agrees(
        reference.AdamW(0.125, 0.875, 0.9375, 0.0, weight_decay=0.25, **MODERN),
        lambda optax: optax.adamw(0.125, 0.875, 0.9375, 0.0, weight_decay=0.25),
        lambda state: {"m": state[0].mu, "v": state[0].nu},
        coefficients=FLOAT32,
        zeros=False,
    )


def test_optax_takes_the_steps_of_adamaxw():
    assert_optax_agrees(
        reference.AdamaxW(0.125, 0.875, 0.9375, 0.0, weight_decay=0.25),
        lambda optax: optax.adamaxw(0.125, 0.875, 0.9375, 0.0, weight_decay=0.25),
        lambda state: {"m": state[0].mu, "v": state[0].nu},
        coefficients=FLOAT32,
        zeros=False,
    )


def test_optax_takes_the_steps_of_sgdw():
    assert_optax_agrees(
        reference.SGDW(0.125, weight_decay=0.25, **MODERN),
        lambda optax: optax.chain(
            optax.add_decayed_weights(0.25), optax.scale_by_learning_rate(0.125)
        ),
        coefficients=FLOAT32,
    )


def test_the_lines_are_those_of_the_rule_after_the_decay():
    for name in ("Adam", "SGD", "Ftrl"):
        cls = reference.OPTIMIZERS[name]
        plain = cls().rule.source.split("):\n")[1]
        source = cls(weight_decay=0.5, sparse="every_row").rule.source
        assert source.endswith("    w = w - weight_decay * w\n" + plain)


def test_the_same_options_give_the_same_rule():
    assert reference.AdamW().rule is reference.AdamW(weight_decay=0.5).rule
    assert reference.AdamW().rule is not reference.AdamW(**MODERN).rule


@pytest.mark.parametrize("name", LEARNERS)
def test_a_decay_of_zero_is_no_decay(name):
    cls = reference.OPTIMIZERS[name]
    options = {n: v for n, v in cls.examples[0].items() if n != "weight_decay"}
    with_zero = cls(**options, weight_decay=0.0)
    shape = (len(some_weights()) // 4, 4)
    w = some_weights()[: shape[0] * 4].reshape(shape)
    gs = [g[: shape[0] * 4].reshape(shape) for g in some_gradients(True)][:2]
    decayed, _ = with_zero.run(w, gs)
    excluded, _ = replace(
        with_zero, weight_decay=0.5, multipliers=[{"weight_decay": 0}]
    ).run(w, gs)
    assert np.array_equal(decayed, excluded)


def test_without_a_step_the_weights_shrink_by_a_power():
    w, _ = reference.SGDW(0.0, weight_decay=0.5).run(np.array([8.0]), [np.zeros(1)] * 3)
    assert w.tolist() == [1]


def test_a_weight_without_gradient_does_not_decay():
    w, _ = reference.SGDW(0.0, weight_decay=0.5).run(
        [np.ones(1), np.ones(1)], [[np.zeros(1), None]]
    )
    assert [x.tolist() for x in w] == [[0.5], [1]]


def test_multipliers_are_each_weights_own():
    """keras-adamw's Keras file: each inherits all multipliers before it."""
    sgd = reference.SGD(
        0.5, multipliers=[{"learning_rate": 0.5}, {"learning_rate": 2}, {}]
    )
    w, _ = sgd.run([np.ones(1)] * 3, [[np.ones(1)] * 3])
    assert [x.tolist() for x in w] == [[0.75], [0], [0.5]]


def test_multipliers_are_refused_where_they_leave_the_domain_or_the_weights():
    with pytest.raises(ValueError, match="beta_1 has no multiples; of Adam only"):
        reference.Adam(multipliers=[{"beta_1": 2}])
    with pytest.raises(ValueError, match="the multiplier of learning_rate must lie in"):
        reference.Adam(multipliers=[{"learning_rate": -1}])
    with pytest.raises(ValueError, match="must lie in"):
        reference.Ftrl(multipliers=[{"learning_rate": 0}])
    with pytest.raises(ValueError, match="multipliers are for 1 weights, got 2"):
        reference.SGD(multipliers=[{}]).run([np.ones(1)] * 2, [[np.ones(1)] * 2])


def test_one_multiplier_of_the_schedule_anneals_both_once():
    eta = PiecewiseConstantDecay([0], [0.5, 0.0])
    for times, due in ((False, 1 - 0.25 - 0.25), (True, 1 - 0.125 - 0.25)):
        sgdw = reference.SGDW(
            0.5,
            weight_decay=0.5,
            decay_times_learning_rate=times,
            schedule_multiplier=eta,
        )
        one, state = sgdw.run(np.ones(1), [np.ones(1)])
        two, _ = sgdw.step(one, np.ones(1), state)
        assert (one.tolist(), two.tolist()) == ([due], [due])


def test_unknown_rows_are_refused():
    with pytest.raises(ValueError, match="decay_rows must be one of every_row"):
        reference.SGDW(decay_rows="all")
