"""Faults reported in public, each reduced to an input small enough to check by hand.

The data file names the public thread of each, with the value that the right rule gives
and the one that the faulty code gave. Right values have twelve significant digits.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import reference
from reference import IndexedSlices, State
from reference.schedules import (
    CosineDecay,
    InverseTimeDecay,
    PiecewiseConstantDecay,
)

DATA = Path(__file__).parents[1] / "data" / "known_bugs.json"
CASES = {case["id"]: case for case in json.loads(DATA.read_text())}
RUNS = [number for number, case in CASES.items() if "optimizer" in case]
DIGITS = 12


def half_a_unit(value):
    """Half a unit of the last of the twelve digits in which the value is given."""
    if value == 0 or not math.isfinite(value):
        return 0.0
    return 0.5 * 10.0 ** (math.floor(math.log10(abs(value))) + 1 - DIGITS)


def equals(came, given):
    """Whether every number rounds to the one given, to its last digit."""
    given = np.array(given, np.float64)  # "nan" and "inf" are read as numbers
    limits = np.array([half_a_unit(one) for one in given.flat]).reshape(given.shape)
    # One rounding of the comparison itself, which is in float64.
    limits += np.finfo(np.float64).eps * np.where(np.isfinite(given), abs(given), 0)
    return bool(np.all(np.abs(np.asarray(came, np.float64) - given) <= limits))


def weights_after(case, **changes):
    """The weights after all gradients of the case, in float64.

    Some cases come from libraries that add epsilon to the *corrected* root. Ours adds
    it to the raw root, so at step t ours has to be the epsilon of the case times
    sqrt(1 - beta_2**t).
    """
    arguments = {**case["arguments"], **changes}
    optimizer = getattr(reference, case["optimizer"])(**arguments)
    w = np.array(case["weights"])
    state = optimizer.init(w)
    for t, g in enumerate(case["gradients"], start=1):
        if case.get("epsilon_added_to") == "corrected root":
            correction = math.sqrt(1 - arguments["beta_2"] ** t)
            optimizer = replace(optimizer, epsilon=arguments["epsilon"] * correction)
        if "learning_rates" in case:
            rate = case["learning_rates"][t - 1]
            optimizer = replace(optimizer, learning_rate=rate)
        gradient = np.array(g)
        if "indices" in case:
            gradient = IndexedSlices(gradient, np.array(case["indices"][t - 1]))
        w, state = optimizer.step(w, gradient, state)
    return w


@pytest.mark.parametrize("number", RUNS)
def test_weights_have_the_right_value(number):
    case = CASES[number]
    w = weights_after(case)
    assert equals(w, case["right_value"])
    assert not equals(w, case["wrong_value"])


# --------------------------------------------------------------------------------------
# Two legitimate rules: ours is the one that the class names, and the other follows from
# it by a change that can be written down.


def test_7_adagrad_adds_epsilon_outside_the_root():
    case = CASES[7]  # its right value has epsilon under the root, as in Keras 3
    g, epsilon = 0.001, 1e-7

    def after(epsilon):
        adagrad = reference.Adagrad(0.1, 0.0, epsilon)
        return adagrad.run(np.array([1.0]), [np.array([g])])[0]

    assert equals(after(epsilon), case["wrong_value"])
    # The same step with the epsilon that makes the two roots equal.
    assert equals(after(math.sqrt(g**2 + epsilon) - g), case["right_value"])


def test_8_rmsprop_adds_epsilon_outside_the_root_and_inside_with_momentum():
    case = CASES[8]  # its right value has epsilon under the root
    gradients = [np.array([0.5]), np.array([0.5])]
    rmsprop = reference.RMSprop(0.1, rho=0.9, epsilon=1.0)
    assert equals(rmsprop.run(np.array([1.0]), gradients)[0], case["wrong_value"])
    almost_none = replace(rmsprop, momentum=1e-300)
    assert equals(almost_none.run(np.array([1.0]), gradients)[0], case["right_value"])


def test_57_and_59_the_learning_rate_is_inside_the_velocity_dense_and_sparse():
    rates, momentum, g = [0.1, 0.01, 0.01], 0.9, np.array([1.0])
    schedule = PiecewiseConstantDecay(boundaries=[0], values=[0.1, 0.01])
    sgd = reference.SGD(schedule, momentum)
    dense, _ = sgd.run(np.array([1.0]), [g] * 3)
    sparse, _ = sgd.run(np.ones(2), [IndexedSlices(g, np.array([0]))] * 3)
    assert equals(dense, CASES[57]["right_value"])
    assert not equals(dense, CASES[57]["wrong_value"])
    assert sparse.tolist() == [*dense, 1.0]  # the fault of 59: the two paths differ

    # torch keeps the rate outside; its velocity b is ours divided by -rate.
    w, state, previous = np.ones(2), None, rates[0]
    for rate in rates:
        outside = reference.SGD(rate, momentum * rate / previous)
        state = outside.init(w) if state is None else state
        slices = IndexedSlices(g, np.array([0]))
        w, state = outside.step(w, slices, state)
        previous = rate
    assert equals(w, CASES[59]["right_value"])
    assert not equals(w, CASES[59]["wrong_value"])


@pytest.mark.parametrize("number", [95, 96, 97])
def test_lazy_rows_are_the_other_named_policy(number):
    lazily = weights_after(CASES[number], sparse="touched_rows")
    assert equals(lazily, CASES[number]["wrong_value"])


def test_152_and_153_a_schedule_is_read_before_the_step_is_counted():
    def after(schedule):
        sgd = reference.SGD(schedule)
        return sgd.run(np.array([1.0]), [np.array([1.0])] * 2)[0]

    warm_up = CosineDecay(0.0, 100, warmup_target=0.1, warmup_steps=4)
    assert equals(after(warm_up), CASES[152]["right_value"])
    assert not equals(after(warm_up), CASES[152]["wrong_value"])
    # Counting from one, as Megatron-LM does, is the same line begun one step later.
    from_one = CosineDecay(0.025, 100, warmup_target=0.1, warmup_steps=3)
    assert equals(after(from_one), CASES[153]["right_value"])
    assert not equals(after(from_one), CASES[153]["wrong_value"])


# --------------------------------------------------------------------------------------
# NaN and half precision.


@pytest.mark.parametrize(
    "number, options, g, steps",
    [
        (16, {"learning_rate": 0.001}, 0.1, 280),
        (17, {"learning_rate": 0.1, "momentum": 1e-300}, 0.3, 270),
    ],
)
def test_16_and_17_centered_rmsprop_stays_finite(number, options, g, steps):
    case = CASES[number]
    rmsprop = reference.RMSprop(rho=0.95, epsilon=1e-8, centered=True, **options)
    gradients = [np.array([g], np.float32)] * steps
    w, state = rmsprop.run(np.array([1.0], np.float32), gradients)
    assert (case["right_value"], case["wrong_value"]) == ("finite", ["nan"])
    assert all(np.isfinite(one) for one in (w, *state.slots[0].values()))


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_16_and_17_the_variance_is_never_below_zero(momentum):
    """The variance of a constant gradient is g**2 rho**t (1 - rho**t).

    Once rho**t is less than eps / 2 (rho 0.95, t > 720) only its rounding is left, of
    either sign; epsilon 0 lets nothing hide a negative one.
    """
    rmsprop = reference.RMSprop(rho=0.95, momentum=momentum, epsilon=0.0, centered=True)
    gradients = np.geomspace(0.01, 10, 200)
    w = np.zeros_like(gradients)
    state = rmsprop.init(w)
    below_zero = False
    for _ in range(900):
        w, state = rmsprop.step(w, gradients, state)
        r, m = (state.slots[0][name] for name in ("rms", "mg"))
        below_zero |= bool(np.any(r - m**2 < 0))
        assert not np.any(np.isnan(w))
    assert below_zero  # the input does what it is there for


def test_18_a_zero_gradient_moves_no_half_precision_weight():
    case = CASES[18]
    adam = reference.Adam(0.001, epsilon=1e-8)
    start = np.array(case["right_value"], np.float16)
    w, state = adam.run(start, [np.zeros(3, np.float16)])
    assert w.dtype == np.float16
    assert w.tolist() == case["right_value"]
    assert not equals(w, case["wrong_value"])
    assert all(not values.any() for values in state.slots[0].values())


def test_19_adadelta_with_a_zero_gradient_moves_no_half_precision_weight():
    adadelta = reference.Adadelta(1.0, epsilon=1e-6)
    w, _ = adadelta.run(np.zeros(2, np.float16), [np.zeros(2, np.float16)])
    assert w.tolist() == CASES[19]["right_value"]["adadelta"]
    assert not equals(w, CASES[19]["wrong_value"]["novograd"])


def test_20_half_precision_weights_are_rounded_once():
    case = CASES[20]
    adam = reference.Adam(**case["arguments"])
    adam = replace(adam, epsilon=adam.epsilon * math.sqrt(1 - adam.beta_2))
    w, _ = adam.run(
        np.array(case["weights"], np.float16),
        [np.array(case["gradients"][0], np.float16)],
    )
    assert w.tolist() == np.array(case["right_value"], np.float16).tolist()


# --------------------------------------------------------------------------------------
# Purity.


@pytest.mark.parametrize("name", reference.OPTIMIZERS)
def test_47_and_49_no_argument_is_changed(name):
    assert CASES[47]["right_value"]["grad"] != CASES[47]["wrong_value"]["grad"]
    cls = reference.OPTIMIZERS[name]
    for example in cls.examples:
        optimizer = cls(**example, clipvalue=0.5, clipnorm=0.5)
        w = {"dense": np.array([2.0, 1.0]), "sparse": np.array([[2.0], [1.0]])}
        slices = IndexedSlices(np.array([[1.0], [3.0]]), np.array([1, 1]))
        grads = {"dense": np.array([1.0, -3.0]), "sparse": slices}
        state = optimizer.init(w)
        for _ in range(2):
            arrays = [*w.values(), grads["dense"], slices.values, slices.indices]
            arrays += [a for slots in state.slots for a in slots.values()]
            before = [array.copy() for array in arrays]
            iterations, shared = state.iterations, dict(state.shared)
            for array in arrays:
                array.flags.writeable = False
            new_w, new_state = optimizer.step(w, grads, state)
            for array, copy in zip(arrays, before, strict=True):
                assert array.tobytes() == copy.tobytes()
            assert (state.iterations, state.shared) == (iterations, shared)
            w, state = new_w, new_state


def test_49_the_gradient_of_the_caller_survives_decay_that_the_caller_adds():
    case = CASES[49]
    w, g = np.array([2.0]), np.array([1.0])
    new, _ = reference.SGD(0.1).run(w, [g + 0.5 * w])
    assert equals(new, case["right_value"]["w"])
    assert g.tolist() == case["right_value"]["grad"] != case["wrong_value"]["grad"]


# --------------------------------------------------------------------------------------
# The step count, resume, skipped steps.


def test_37_all_weights_share_the_step_count():
    case = CASES[37]
    # At t = 1 with epsilon on the corrected root, as in the report.
    adam = reference.Adam(0.01, epsilon=1e-8 * math.sqrt(1 - 0.999))
    start = [np.array(1.0)] * 3
    w, state = adam.run(start, [[np.array(0.5)] * 3])
    assert equals(w, case["right_value"])
    assert not equals(w, case["wrong_value"])
    assert state.iterations == 1


def copied(state):
    """A state as it comes back from a file."""
    return State(
        state.iterations,
        tuple({k: np.array(v) for k, v in slots.items()} for slots in state.slots),
        dict(state.shared),
    )


def test_146_a_reload_between_steps_changes_nothing():
    case = CASES[146]
    adam = reference.Adam(0.1, epsilon=1e-7)
    w, state = adam.run(np.array([1.0]), [np.array([1.0])])
    resumed, _ = adam.step(w, np.array([-1.0]), copied(state))
    assert equals(resumed, case["right_value"])
    lost = State(state.iterations, adam.init(w).slots)
    without, _ = adam.step(w, np.array([-1.0]), lost)
    assert equals(without, case["wrong_value"])  # the fault: slots lost, t kept


def test_147_the_step_count_is_part_of_the_state():
    case = CASES[147]
    adam = reference.Adam(0.1, epsilon=0.0)  # the report's round 0.1 leaves it out
    w, state = adam.run(np.array([1.0]), [np.array([1.0])] * 2)
    resumed, _ = adam.step(w, np.array([1.0]), copied(state))
    assert equals(w - resumed, case["right_value"])
    lost, _ = adam.step(w, np.array([1.0]), replace(state, iterations=0))
    assert equals(w - lost, case["wrong_value"])


def test_150_a_schedule_goes_on_where_it_stopped():
    case = CASES[150]
    sgd = reference.SGD(InverseTimeDecay(1.0, 1, 1.0))
    g = np.array([-1.0])
    _, state = sgd.run(np.array([0.0]), [g] * 101)  # steps 0 to 100
    moved, _ = sgd.step(np.array([0.0]), g, copied(state))
    assert equals(moved, [case["right_value"]])
    assert not equals(moved, [case["wrong_value"]])


def test_144_a_step_that_is_skipped_does_not_advance_the_schedule():
    case = CASES[144]
    sgd = reference.SGD(PiecewiseConstantDecay([0, 1], [0.1, 0.05, 0.025]))
    gradients = [np.array([g]) for g in (1.0, np.inf, 1.0)]
    w, _ = sgd.run(np.array([1.0]), [g for g in gradients if np.all(np.isfinite(g))])
    assert equals(w, case["right_value"])
    assert not equals(w, case["wrong_value"])


# --------------------------------------------------------------------------------------
# Duplicates and clipping.


def test_90_slices_that_cancel_leave_row_and_accumulator_alone():
    case = CASES[90]
    adagrad = reference.Adagrad(0.1, 0.1, 0.0)
    slices = IndexedSlices(np.array([0.1, -0.1]), np.array([0, 0]))
    w, state = adagrad.run(np.array([1.0, 2.0]), [slices])
    assert w.tolist() == case["right_value"]["w"] != case["wrong_value"]["w"]
    accumulator = state.slots[0]["accumulator"].tolist()
    assert accumulator == case["right_value"]["accum"] != case["wrong_value"]["accum"]


def test_111_clipnorm_is_of_each_weight_and_global_clipnorm_of_all():
    case = CASES[111]
    start = [np.zeros(2), np.zeros(2)]
    gradients = [np.array([3.0, 4.0]), np.array([0.0, 12.0])]
    own, _ = reference.SGD(1.0, clipnorm=6.5).run(start, [gradients])
    joint, _ = reference.SGD(1.0, global_clipnorm=6.5).run(start, [gradients])
    assert equals(-np.array(own), case["right_value"])
    assert equals(-np.array(joint), case["wrong_value"])


@pytest.mark.parametrize("scope", ["clipnorm", "global_clipnorm"])
def test_114_clipping_sees_the_sum_of_duplicates(scope):
    case = CASES[114]
    slices = IndexedSlices(np.array([3.0, 4.0]), np.array([0, 0]))
    sgd = reference.SGD(1.0, **{scope: 1.0})
    w, _ = sgd.run(np.zeros(2), [slices])
    assert equals(-w[:1], [case["right_value"]["row0"]])
    assert not equals(-w[:1], [case["wrong_value"]["row0"]])


def test_51_ftrl_shrinkage_enters_the_linear_term_alone():
    case = CASES[51]
    ftrl = reference.Ftrl(
        3.0, initial_accumulator_value=0.0, l2_shrinkage_regularization_strength=0.5
    )
    w, state = ftrl.run(np.array([1.0]), [np.array([0.1])])
    came = {"w": w, "accum": None, "linear": state.slots[0]["linear"]}
    came["accum"] = state.slots[0]["accumulator"]
    for name, values in came.items():
        assert equals(values, case["right_value"][name])
        assert not equals(values, case["wrong_value"][name])


def test_every_case_of_the_file_is_used():
    named = {
        int(number)
        for name in globals()
        if name.startswith("test_")
        for number in name.split("_")
        if number.isdigit()
    }
    assert named | set(RUNS) == set(CASES)
