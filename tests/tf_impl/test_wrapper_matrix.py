"""Every wrapper around the optimizers of Keras, AdamW, LAMB; judged by `reference`."""

from __future__ import annotations

import numpy as np
import pytest

import reference
import tf_impl
from reference.conformance.convention import ideal
from reference.conformance.judge import Recording, judge
from reference.conformance.port import Setting, arguments
from reference.conformance.rounding import FLOAT32, SLACK
from reference.conformance.scenarios import Part, Program, Weight
from reference.gradients import IndexedSlices
from tf_impl.port import OptimizerV2Port

STEPS = 5
INNER = [
    name
    for name, cls in reference.OPTIMIZERS.items()
    if cls.home.startswith("tf.keras.optimizers.legacy.") or name in ("AdamW", "LAMB")
]
SETTINGS = {
    "eager": Setting(FLOAT32, "eager"),
    "function": Setting(FLOAT32, "function"),
    "two replicas": Setting(FLOAT32, "function", strategy="mirrored"),
}
# Each acts at one of the steps at least, and is at rest at another.
WRAPPERS = {
    "Lookahead": lambda inner: reference.Lookahead(inner, 2, 0.25),
    "MovingAverage": lambda inner: reference.MovingAverage(
        inner, 0.75, start_step=1, dynamic_decay=True
    ),
    "SWA": lambda inner: reference.SWA(inner, 1, 2),
    "ExponentialMovingAverage": lambda inner: reference.ExponentialMovingAverage(
        inner, 0.75, ema_overwrite_frequency=2
    ),
    "GradientAccumulation": lambda inner: reference.GradientAccumulation(inner, 2),
    "LossScaleOptimizer": lambda inner: reference.LossScaleOptimizer(
        inner, dynamic_growth_steps=2
    ),
    "MultiOptimizer": lambda inner: reference.MultiOptimizer(
        ((inner, (1,)), (reference.SGD(), ...))
    ),
}


def weights(unfit):
    """A vector with dense gradients and a table with sparse ones, duplicates too.

    ``unfit``: the step at which a gradient is infinite.
    """
    rng = np.random.default_rng(7)
    dense = [FLOAT32.round(rng.normal(size=3)) for _ in range(STEPS)]
    sparse = [
        IndexedSlices(
            FLOAT32.round(rng.normal(size=(3, 2))), np.array([2, step % 3, 2])
        )
        for step in range(STEPS)
    ]
    if unfit is not None:
        dense[unfit][1] = np.inf
    start = FLOAT32.round(rng.normal(size=3)), FLOAT32.round(rng.normal(size=(4, 2)))
    return tuple(
        Weight((Part(name, "", w, tuple(gradients)),))
        for name, w, gradients in zip(
            ("dense", "sparse"), start, (dense, sparse), strict=True
        )
    )


def assert_conforms(wrapper, setting):
    unfit = 2 if isinstance(wrapper, reference.LossScaleOptimizer) else None
    program = Program("wrapped", "", weights(unfit), STEPS, resume_before=3)
    port = OptimizerV2Port(tf_impl.WRAPPERS[type(wrapper).__name__])
    session = port.start(
        [weight.start for weight in program.weights],
        arguments(wrapper, port.accepts()),
        setting,
        wrapper.slots,
    )
    snapshots = [session.read()]
    for step in range(STEPS):
        if step == program.resume_before:
            session.resume()
        session.apply(program.gradients(step))
        snapshots.append(session.read())
    scores = judge(
        Recording(program, snapshots),
        wrapper,
        ideal(FLOAT32),
        setting,
        port.platform(setting),
    )
    assert {kind: score.failure for kind, score in scores.items()} == {
        "dense": None,
        "sparse": None,
    }
    slots = {slot for score in scores.values() for slot in score.ratios}
    assert {*wrapper.slots, "weight"} <= slots
    assert 0 < max(score.worst for score in scores.values()) <= SLACK


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", INNER)
@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrapper_around_optimizer(wrapper, name, setting):
    inner = reference.OPTIMIZERS[name]
    inner = inner(**inner.examples[-1])
    assert_conforms(WRAPPERS[wrapper](inner), SETTINGS[setting])


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_wrapper_in_a_function(wrapper):
    """The small part of the matrix."""
    assert_conforms(WRAPPERS[wrapper](reference.Adam()), SETTINGS["function"])


@pytest.mark.parametrize("setting", ["eager", "two replicas"])
def test_all_wrappers_at_once(setting):
    chain = reference.LossScaleOptimizer(
        reference.GradientAccumulation(
            reference.MovingAverage(reference.Lookahead(reference.Nadam(), 2), 0.5), 2
        )
    )
    assert_conforms(chain, SETTINGS[setting])


def test_the_matrix_has_every_wrapper_and_the_optimizers_that_matter():
    assert set(WRAPPERS) == set(reference.WRAPPERS)
    built_in = {"SGD", "RMSprop", "Adam", "Adadelta"}
    built_in |= {"Adagrad", "Adamax", "Nadam", "Ftrl"}
    assert built_in | {"AdamW", "LAMB"} == set(INNER)
