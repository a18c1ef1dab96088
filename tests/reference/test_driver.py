"""What ``Optimizer.init``, ``step`` and ``run`` do around a rule."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

import reference
from reference import (
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Ftrl,
    IndexedSlices,
    Nadam,
    RMSprop,
    State,
    deduplicate,
)
from reference.conformance.rounding import FORMATS
from reference.optimizer import BLOCK, Optimizer, hyper
from reference.rule import rule, shared_rule
from reference.schedules import LearningRateSchedule, PiecewiseConstantDecay
from reference.sparse import touched_rows

EXAMPLES = [
    pytest.param(cls, options, id="-".join([name, *options]))
    for name, cls in reference.OPTIMIZERS.items()
    for options in cls.examples
]
every_example = pytest.mark.parametrize(("cls", "options"), EXAMPLES)
POLICIES = (None, "every_row", "touched_rows")


def slices(values, indices, dtype=np.float64):
    return IndexedSlices(np.array(values, dtype), np.array(indices))


def numbers(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


def copied(tree):
    """A deep copy of weights, gradients or a state."""
    if isinstance(tree, np.ndarray):
        return tree.copy()
    if isinstance(tree, list | tuple):
        return type(tree)(copied(x) for x in tree)
    if isinstance(tree, dict):
        return {key: copied(x) for key, x in tree.items()}
    if isinstance(tree, IndexedSlices):
        return replace(tree, values=tree.values.copy(), indices=tree.indices.copy())
    if isinstance(tree, State):
        return State(tree.iterations, copied(tree.slots), copied(tree.shared))
    return tree


def same(a, b):
    """Bitwise equality of two trees, dtypes and shapes included."""
    if isinstance(a, np.ndarray | np.generic):
        a, b = np.asarray(a), np.asarray(b)
        if a.dtype == np.longdouble:  # whose bytes include padding
            return b.dtype == a.dtype and np.array_equal(a, b)
        return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, IndexedSlices):
        return same(a.values, b.values) and same(a.indices, b.indices)
    if isinstance(a, State):
        return (
            a.iterations == b.iterations
            and same(a.slots, b.slots)
            and same(a.shared, b.shared)
        )
    return a == b


def frozen(tree):
    """The same tree; writing into its arrays raises an error."""
    if isinstance(tree, np.ndarray):
        tree.flags.writeable = False
    elif isinstance(tree, list | tuple):
        any(frozen(x) for x in tree)
    elif isinstance(tree, dict):
        any(frozen(x) for x in tree.values())
    elif isinstance(tree, IndexedSlices):
        any(frozen(x) for x in (tree.values, tree.indices))
    elif isinstance(tree, State):
        frozen(tree.slots)


# --- structures and state ---------------------------------------------------------


def test_the_structure_of_the_weights_is_the_structure_of_the_result():
    a, b = np.array([1.0, 2.0]), np.array([[3.0]])
    ga, gb = np.array([0.5, 1.0]), np.array([[2.0]])
    want_a, want_b = np.array([0.5, 1.0]), np.array([[1.0]])
    Pair = namedtuple("Pair", "a b")
    sgd = SGD(1.0)
    for structure, gradients, want in [
        (a, ga, want_a),
        ([a, b], [ga, gb], [want_a, want_b]),
        ((a, b), (ga, gb), (want_a, want_b)),
        ([a, b], (ga, gb), [want_a, want_b]),
        ({"x": a, "y": b}, {"y": gb, "x": ga}, {"x": want_a, "y": want_b}),
        (Pair(a, b), Pair(ga, gb), Pair(want_a, want_b)),
    ]:
        new, state = sgd.step(structure, gradients, sgd.init(structure))
        assert type(new) is type(structure)
        assert same(new, want)
        assert state.iterations == 1


def test_no_weights_give_no_weights():
    sgd = SGD()
    for nothing in ([], (), {}):
        new, state = sgd.step(nothing, nothing, sgd.init(nothing))
        assert new == nothing and type(new) is type(nothing)
        assert state.slots == ()


def test_a_scalar_weight_stays_a_scalar():
    new, _ = SGD(0.5).run(np.array(3.0), [np.array(2.0)])
    assert same(new, np.array(2.0))


@every_example
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "longdouble"])
def test_init_gives_each_slot_its_start_and_the_dtype_of_the_weight(
    cls, options, dtype
):
    optimizer = cls(**options)
    weights = [np.ones(shape, dtype) for shape in [(), (3,), (2, 0), (2, 1, 3)]]
    state = optimizer.init(weights)
    assert state.iterations == 0
    for w, slots in zip(weights, state.slots, strict=True):
        declared = {s.name: s for s in optimizer.rule_for(w.shape).slots.values()}
        assert tuple(slots) == tuple(declared)
        assert set(slots) <= set(optimizer.slots)
        for name, slot in slots.items():
            start = declared[name].start
            value = getattr(optimizer, start) if isinstance(start, str) else start
            assert slot.shape == declared[name].shape_for(w.shape)
            assert slot.dtype == w.dtype
            assert np.all(slot == np.array(value, dtype))
    assert state.shared == ({"momentum_cache": 1.0} if issubclass(cls, Nadam) else {})


def test_slots_have_the_names_of_keras():
    assert SGD().slots == ()
    assert SGD(momentum=0.5).slots == ("momentum",)
    assert RMSprop(centered=True, momentum=0.5).slots == ("rms", "momentum", "mg")
    assert Adam(amsgrad=True).slots == ("m", "v", "vhat")
    assert reference.Adamax().slots == ("m", "v")
    assert Nadam().slots == ("m", "v")
    assert Adagrad().slots == ("accumulator",)
    assert Adadelta().slots == ("accum_grad", "accum_var")
    assert Ftrl().slots == ("accumulator", "linear")


def test_accumulators_start_where_the_constructor_says():
    w = np.zeros(2)
    for cls in (Adagrad, Ftrl):
        state = cls(initial_accumulator_value=0.25).init(w)
        assert same(state.slots[0]["accumulator"], np.array([0.25, 0.25]))


# --- purity and time --------------------------------------------------------------


@every_example
@pytest.mark.parametrize("policy", POLICIES)
def test_no_argument_is_changed(cls, options, policy):
    optimizer = cls(**options, sparse=policy, clipvalue=1.5, global_clipnorm=2.0)
    params = [numbers(1, 3, 2), numbers(2, 4, 2), numbers(3, 2), numbers(4, BLOCK + 1)]
    grads = [
        numbers(5, 3, 2),
        IndexedSlices(numbers(6, 3, 2), np.array([2, 0, 2])),
        None,
        numbers(7, BLOCK + 1),
    ]
    params, state = optimizer.run(params, [grads])
    given = params, grads, state
    before = copied(given)
    frozen(given)
    new, after = optimizer.step(*given, constraints=lambda w: w * 0.5)
    assert same(given, before)
    assert not same(new[0], params[0])
    assert after.iterations == state.iterations + 1


@every_example
def test_a_weight_without_gradient_is_left_alone_and_takes_part_later(cls, options):
    optimizer = cls(**options)
    a, b = numbers(1, 3), numbers(2, 3)
    ga, gb = numbers(3, 3), numbers(4, 3)
    state = optimizer.init([a, b])
    (a1, b1), first = optimizer.step([a, b], [ga, None], state)
    assert same(b1, b) and same(first.slots[1], state.slots[1])
    assert not same(a1, a)
    (_, b2), second = optimizer.step([a1, b1], [None, gb], first)
    assert same(second.slots[0], first.slots[0])
    # its first gradient comes at t = 2, with fresh slots
    late = State(1, (state.slots[1],), first.shared)
    want, want_state = optimizer.step([b], [gb], late)
    assert same(b2, want[0]) and same(second.slots[1], want_state.slots[0])
    assert second.iterations == 2


def test_a_key_without_gradient_is_a_weight_without_gradient():
    w = {"a": np.array([1.0]), "b": np.array([2.0])}
    new, _ = SGD(1.0).run(w, [{"b": np.array([0.5])}])
    assert same(new, {"a": np.array([1.0]), "b": np.array([1.5])})


def test_t_counts_steps_not_gradients():
    """Adam with betas of zero in the averages has steps that do not show t; these do.

    m = g / 2, v = g**2, lr * sqrt(1) / (1 - 2**-t): the second step of b is at t = 2.
    """
    adam = Adam(1.0, beta_1=0.5, beta_2=0.0, epsilon=0.0)
    a = b = np.array([0.0])
    g = np.array([1.0])
    (_, b), _ = adam.run([a, b], [[g, None], [None, g]])
    assert b.tolist() == [-0.5 / (1 - 0.25)]


@every_example
@pytest.mark.parametrize("decay", [0.0, 0.5])
def test_a_resume_in_the_middle_changes_nothing(cls, options, decay):
    if decay and issubclass(cls, Nadam):
        decay = 0.0  # Nadam refuses it
    schedule = PiecewiseConstantDecay([1, 3], [0.5, 0.25, 1.0])
    optimizer = cls(**{**options, "learning_rate": schedule, "decay": decay})
    grads = [
        [numbers(s, 3), IndexedSlices(numbers(s + 9, 2, 2), np.array([s % 3, 1]))]
        for s in range(5)
    ]
    params = [numbers(20, 3), numbers(21, 3, 2)]
    whole = optimizer.run(params, grads)
    half = optimizer.run(params, grads[:2])
    again = cls(**{**options, "learning_rate": schedule, "decay": decay})
    params, state = copied(half)
    for each in grads[2:]:
        params, state = again.step(params, each, state)
    assert same((params, state), whole)


def test_run_is_step_after_step():
    adam = Adam(0.1)
    w, gradients = numbers(1, 3), [numbers(s, 3) for s in (2, 3)]
    state = adam.init(w)
    stepped = w
    for g in gradients:
        stepped, state = adam.step(stepped, g, state)
    assert same(adam.run(w, gradients), (stepped, state))
    assert same(adam.run(w, iter(gradients), adam.init(w)), (stepped, state))
    assert same(adam.run(w, []), (w, adam.init(w)))


# --- the order: schedule, duplicates, clipping, rule, constraint, count -------------


def test_the_whole_order_by_hand():
    seen = []

    class Halving(LearningRateSchedule):
        def __call__(self, step):
            seen.append(("schedule", step))
            return 0.5 / (step + 1)

    def at_least_a_quarter(w):
        seen.append(("constraint", w.tolist()))
        return np.maximum(w, 0.25)

    sgd = SGD(Halving(), clipvalue=2.0)
    w = np.array([[1.0], [1.5]])
    state = sgd.init(w)
    # row 0 sums to 3, which is clipped to 2: 1 - 0.5 * 2 = 0, constrained to 0.25
    g = slices([[1.5], [1.5]], [0, 0])
    w, state = sgd.step(w, g, state, constraints=at_least_a_quarter)
    assert w.tolist() == [[0.25], [1.5]]
    # row 1 sums to -1 after parts beyond the clip: 1.5 + 0.25 * 1
    g = slices([[-5.0], [4.0]], [1, 1])
    w, state = sgd.step(w, g, state, constraints=at_least_a_quarter)
    assert w.tolist() == [[0.25], [1.75]]
    assert state.iterations == 2
    assert seen == [
        ("schedule", 0),
        ("constraint", [[0.0], [1.5]]),
        ("schedule", 1),
        ("constraint", [[0.25], [1.75]]),
    ]


def step_of(optimizer, g, shape):
    """Minus the step of gradient descent at rate 1 from zero: the gradient it saw."""
    zeros = np.zeros(shape)
    return (zeros - optimizer.run(zeros, [g])[0]).tolist()


def test_clipvalue_limits_each_element_of_the_sum():
    sgd = SGD(1.0, clipvalue=2.0)
    assert step_of(sgd, np.array([-3.0, 1.0, 2.5, -2.0]), 4) == [-2, 1, 2, -2]
    assert step_of(sgd, slices([1.5, 1.5, -9], [0, 0, 2]), 3) == [2, 0, -2]


def test_clipnorm_scales_each_gradient_after_duplicates_are_summed():
    sgd = SGD(1.0, clipnorm=5.0)
    # (6, 8) has norm 10; Keras takes the norm of the rows before it sums them
    twice = slices([[3.0, 4.0], [3.0, 4.0]], [1, 1])
    assert step_of(sgd, twice, (2, 2)) == [[0, 0], [3, 4]]
    assert step_of(sgd, np.array([30.0, -40.0]), 2) == [3, -4]
    assert step_of(sgd, np.array([3.0, -4.0]), 2) == [3, -4]
    small = np.array([0.1, 0.2, -0.3])
    assert step_of(sgd, small, 3) == small.tolist()


def test_cancelling_duplicates_have_no_norm():
    sgd = SGD(1.0, clipnorm=5.0)
    g = slices([[300.0, 0.0], [-300.0, 0.0], [3.0, 4.0]], [0, 0, 1])
    assert step_of(sgd, g, (2, 2)) == [[0, 0], [3, 4]]


def test_global_clipnorm_scales_all_gradients_by_one_factor():
    sgd = SGD(1.0, global_clipnorm=3.5)
    params = [np.zeros((2, 2)), np.zeros(1), np.zeros(1)]
    # rows sum to (2, 3); with 6 beside it the joint norm is 7
    grads = [slices([[1.0, 1.5], [1.0, 1.5]], [1, 1]), np.array([6.0]), None]
    new, _ = sgd.run(params, [grads])
    assert [(-w).tolist() for w in new] == [[[0, 0], [1, 1.5]], [3], [0]]
    joint_norm_is_seven = SGD(1.0, global_clipnorm=7.0).run(params, [grads])[0]
    assert [(-w).tolist() for w in joint_norm_is_seven] == [[[0, 0], [2, 3]], [6], [0]]


def test_clipvalue_comes_before_a_norm():
    g = np.array([3.0, 100.0])  # (3, 4) after clipvalue, of norm 5
    assert step_of(SGD(1.0, clipvalue=4.0, clipnorm=2.5), g, 2) == [1.5, 2]
    assert step_of(SGD(1.0, clipvalue=4.0, global_clipnorm=2.5), g, 2) == [1.5, 2]


def test_a_zero_gradient_survives_the_norms():
    g = np.zeros(3)
    assert step_of(SGD(1.0, clipnorm=1.0), g, 3) == [0, 0, 0]
    assert step_of(SGD(1.0, global_clipnorm=1.0), g, 3) == [0, 0, 0]


def test_half_precision_gradients_are_clipped_in_float64():
    g = np.array([300.0, 400.0], np.float16)  # squares overflow in float16
    new, _ = SGD(1.0, clipnorm=5.0).run(np.zeros(2, np.float16), [g])
    assert same(new, np.array([-3.0, -4.0], np.float16))


def test_decay_divides_the_learning_rate_by_one_plus_decay_times_iterations():
    sgd = SGD(1.0, decay=1.0)
    g, w = np.array([1.0]), np.array([0.0])
    assert sgd.run(w, [g])[0].tolist() == [-1.0]
    assert sgd.run(w, [g] * 2)[0].tolist() == [-1.5]
    assert sgd.run(w, [g] * 4)[0].tolist() == [-1.5 - 1 / 3 - 1 / 4]


def test_decay_acts_on_a_schedule_too():
    sgd = SGD(PiecewiseConstantDecay([0], [1.0, 0.5]), decay=3.0)
    assert sgd.run(np.array([0.0]), [np.array([1.0])] * 2)[0].tolist() == [-1 - 0.5 / 4]


def test_a_callable_is_asked_at_each_step():
    rates = iter([1.0, 0.25])
    sgd = SGD(lambda: next(rates))
    assert sgd.run(np.array([0.0]), [np.array([1.0])] * 2)[0].tolist() == [-1.25]
    with pytest.raises(StopIteration):
        sgd.run(np.array([0.0]), [np.array([1.0])])


def test_any_hyperparameter_may_be_callable():
    fixed = Adam(0.5, beta_1=0.25, beta_2=0.75, epsilon=0.125)
    asked = Adam(lambda: 0.5, lambda: 0.25, lambda: 0.75, lambda: 0.125)
    w, g = numbers(1, 4), [numbers(2, 4), numbers(3, 4)]
    assert same(fixed.run(w, g), asked.run(w, g))
    fixed, asked = SGD(0.5, momentum=0.75), SGD(0.5, momentum=lambda: 0.75)
    assert same(fixed.run(w, g), asked.run(w, g))


def test_a_callable_momentum_has_its_slot_even_where_it_gives_zero():
    assert SGD(momentum=lambda: 0.0).slots == ("momentum",)
    assert RMSprop(momentum=lambda: 0.0).slots == ("rms", "momentum")


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_a_schedule_or_callable_outside_the_domain_is_refused_when_asked(bad):
    class Bad(LearningRateSchedule):
        def __call__(self, step):
            return bad

    for rate in (Bad(), lambda: bad):
        with pytest.raises(ValueError, match=r"learning_rate must lie in \[0, inf\)"):
            SGD(rate).run(np.zeros(1), [np.ones(1)])


def test_constraints_dense_and_sparse():
    sgd = SGD(1.0)
    unit = lambda w: w / np.sqrt(np.sum(w * w, axis=-1, keepdims=True))  # noqa: E731
    w, g = np.array([[0.0, 0.0], [3.0, 0.0]]), np.array([[0.0, -2.0], [0.0, -4.0]])
    assert sgd.run(w, [g], constraints=unit)[0].tolist() == [[0, 1], [0.6, 0.8]]
    # a constraint sees the whole weight, untouched rows too
    half = lambda w: w / 2  # noqa: E731
    new, _ = sgd.run(w, [slices([[0.0, -4.0]], [1])], constraints=half)
    assert new.tolist() == [[0, 0], [1.5, 2]]


def test_constraints_follow_the_structure_and_skip_weights_without_gradient():
    sgd, one = SGD(1.0), np.array([1.0])
    minus = np.negative
    for params, grads, constraints, want in [
        ([one, one], [one, one], [minus, None], [[-0.0], [0.0]]),
        ([one, one], [one * 3, None], minus, [[2.0], [1.0]]),
        ((one, one), (one * 3, one * 4), (None, minus), [[-2.0], [3.0]]),
    ]:
        new, _ = sgd.run(params, [grads], constraints=constraints)
        assert [w.tolist() for w in new] == want
    named, _ = sgd.run(
        {"a": one, "b": one}, [{"a": one * 3, "b": one * 4}], constraints={"b": minus}
    )
    assert {k: v.tolist() for k, v in named.items()} == {"a": [-2.0], "b": [3.0]}


def test_a_constraint_may_write_into_what_it_gets():
    def clip(w):
        return np.clip(w, 0.0, 1.0, out=w)

    w, g = np.array([2.0, -2.0]), np.array([0.5, 0.5])
    before = w.copy()
    assert SGD(1.0).run(w, [g], constraints=clip)[0].tolist() == [1.0, 0.0]
    assert same(w, before)


def test_a_constraint_keeps_the_dtype_of_the_weight():
    new, _ = SGD(1.0).run(
        np.ones(2, np.float32), [np.ones(2)], constraints=lambda w: w + np.float64(0.1)
    )
    assert same(new, np.full(2, np.float32(0.1)))


# --- numbers ------------------------------------------------------------------------


@every_example
def test_blocks_give_what_small_pieces_give(cls, options):
    optimizer = cls(**options)
    if not optimizer.elementwise:
        return  # never cut into blocks
    size = 2 * BLOCK + 37
    w, gradients = numbers(1, size), [numbers(2, size), numbers(3, size)]
    whole, state = optimizer.run(w, gradients)
    cuts = [0, 5, BLOCK - 1, BLOCK + 3, size]
    for low, high in pairwise(cuts):
        for start in range(low, high, BLOCK // 2):
            part = slice(start, min(high, start + BLOCK // 2))
            small, small_state = optimizer.run(w[part], [g[part] for g in gradients])
            assert same(whole[part], small)
            for name, slot in small_state.slots[0].items():
                assert same(state.slots[0][name][part], slot)


@every_example
def test_memory_layout_is_no_input(cls, options):
    optimizer = cls(**options)
    w, g = numbers(1, 90, 120), numbers(2, 90, 120)  # more than a block
    want = optimizer.run(w, [g, g])
    strided = np.repeat(w, 2, axis=1)[:, ::2]
    for layout, gradient in [
        (np.asfortranarray(w), g),
        (strided, np.asfortranarray(g)),
    ]:
        new, state = optimizer.run(layout, [gradient, gradient])
        assert same(new, want[0])
        assert same(state, want[1])


@every_example
@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("policy", POLICIES)
def test_narrow_weights_are_updated_in_float64_and_rounded_once(
    cls, options, name, policy
):
    optimizer = cls(**options, sparse=policy)
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    w, g = numbers(1, 200, 3).astype(dtype), numbers(2, 200, 3).astype(dtype)
    rows = np.arange(200) // 3
    for gradient, wide_gradient in [
        (g, g.astype(np.float64)),
        (IndexedSlices(g, rows), IndexedSlices(g.astype(np.float64), rows)),
    ]:
        state = optimizer.init(w)
        wide_state = State(
            0,
            ({n: s.astype(np.float64) for n, s in state.slots[0].items()},),
            state.shared,
        )
        new, after = optimizer.step(w, gradient, state)
        wide, wide_after = optimizer.step(
            w.astype(np.float64), wide_gradient, wide_state
        )
        rounded = FORMATS[name].round
        assert new.dtype == dtype
        assert same(new.astype(np.float64), rounded(wide))
        for slot, values in after.slots[0].items():
            assert values.dtype == dtype
            due = rounded(wide_after.slots[0][slot])
            assert same(values.astype(np.float64), due)


def test_bfloat16_is_rounded_once_not_by_way_of_float32():
    """Beside the middle of 1 and its successor, by less than float32 can say."""
    just_above = 1 + 2.0**-8 + 2.0**-40
    w = np.zeros(2, ml_dtypes.bfloat16)
    new, _ = SGD(1.0).run(w, [np.array([-just_above, just_above])])
    assert new.astype(np.float64).tolist() == [1 + 2.0**-7, -1 - 2.0**-7]
    just_below = 1 + 2.0**-7 + 2.0**-8 - 2.0**-40
    new, _ = SGD(1.0).run(w, [np.array([-just_below, just_below])])
    assert new.astype(np.float64).tolist() == [1 + 2.0**-7, -1 - 2.0**-7]
    values = np.array([1.0, 2.0**-8, 2.0**-40], ml_dtypes.bfloat16)
    summed = deduplicate(IndexedSlices(values, np.array([0, 0, 0]))).values
    assert summed.astype(np.float64).tolist() == [1 + 2.0**-7]


def test_bfloat16_keeps_nan_infinity_and_overflow():
    w = np.zeros(5, ml_dtypes.bfloat16)
    g = np.array([np.nan, np.inf, -np.inf, 3.4e38, 1e300])
    new = SGD(1.0).run(w, [-g])[0].astype(np.float64)
    assert np.array_equal(
        new, [np.nan, np.inf, -np.inf, np.inf, np.inf], equal_nan=True
    )


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant <= 52, reason="longdouble is float64 here"
)
def test_longdouble_weights_are_updated_in_longdouble():
    tiny = np.longdouble(2) ** -60
    w = np.ones(2, np.longdouble)
    new, state = SGD(1.0, momentum=0.5).run(w, [np.array([tiny, -tiny])])
    assert same(new, np.array([1 - tiny, 1 + tiny]))
    assert same(state.slots[0]["momentum"], np.array([-tiny, tiny]))


@every_example
def test_integer_gradients_are_numbers(cls, options):
    optimizer = cls(**options)
    w = numbers(1, 3, 2)
    whole, rows = np.array([[1, -2], [0, 3], [4, 5]]), np.array([2, 0, 2], np.int32)
    for grad in (whole, IndexedSlices(whole, rows)):
        real = (
            replace(grad, values=whole.astype(float))
            if isinstance(grad, IndexedSlices)
            else whole.astype(float)
        )
        assert same(optimizer.run(w, [grad, grad]), optimizer.run(w, [real, real]))


def test_integer_hyperparameters_are_real_numbers():
    whole = Adam(1, beta_1=0, beta_2=0, epsilon=1)
    assert whole == Adam(1.0, beta_1=0.0, beta_2=0.0, epsilon=1.0)
    assert type(whole.learning_rate) is float


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("clip", [{}, {"clipvalue": 1.0}, {"clipnorm": 1.0}])
@every_example
def test_nan_and_infinity_flow_without_warning(cls, options, clip):
    optimizer = cls(**options, **clip)
    g = np.array([np.nan, np.inf, -np.inf, 1e300])
    for dtype in (np.float64, np.float16):
        w = np.ones(4, dtype)
        new, _ = optimizer.run(w, [g, g])
        assert np.isnan(new[0])
        both = IndexedSlices(np.array([np.inf, -np.inf]), np.array([1, 1]))
        new, _ = optimizer.run(w, [both])
        assert np.isnan(new[1])


# --- what is refused ----------------------------------------------------------------

W = np.zeros((3, 2))
ROW = np.ones((1, 2))

MALFORMED = {
    "negative index": (slices(ROW, [-1]), ValueError, r"lie in \[0, 3\), got \[-1\]"),
    "index out of range": (slices(ROW, [3]), ValueError, r"lie in \[0, 3\), got \[3\]"),
    "many indices out of range": (
        IndexedSlices(np.ones((6, 2)), np.arange(3, 9)),
        ValueError,
        r"got \[3, 4, 5, 6, 7\] and more",
    ),
    "real indices": (slices(ROW, [1.0]), TypeError, "must be integers, got.*float64"),
    "boolean indices": (slices(ROW, [True]), TypeError, "must be integers, got.*bool"),
    "table of indices": (slices(ROW, [[1]]), ValueError, r"one-dimensional.*\(1, 1\)"),
    "scalar index": (slices(ROW, 1), ValueError, r"one-dimensional, got shape \(\)"),
    "too many rows": (slices(ROW, [0, 1]), ValueError, r"\(1, 2\) for 2 indices"),
    "too few indices": (slices(ROW, np.zeros(0, int)), ValueError, "for 0 indices"),
    "scalar values": (slices(1.0, [0]), ValueError, r"shape \(\) for 1 indices"),
    "rows too long": (slices([[1, 2, 3]], [0]), ValueError, r"\(2,\).*got \(3,\)"),
    "rows of another rank": (slices([1], [0]), ValueError, r"\(2,\).*got \(\)"),
    "another dense_shape": (
        IndexedSlices(ROW, np.array([0]), (4, 2)),
        ValueError,
        r"dense_shape \(4, 2\) is not the weights' \(3, 2\)",
    ),
    "dense of another shape": (
        np.ones((2, 3)),
        ValueError,
        r"weight's shape \(3, 2\), got \(2, 3\)",
    ),
    "dense that would broadcast": (np.ones(2), ValueError, r"\(3, 2\), got \(2,\)"),
    "complex": (np.ones((3, 2), complex), TypeError, "complex, weights are real"),
    "complex rows": (slices(ROW, [0], complex), TypeError, "complex"),
}


@pytest.mark.parametrize("case", MALFORMED)
def test_a_malformed_gradient_is_refused_before_anything_is_computed(case):
    bad, error, message = MALFORMED[case]
    asked = []
    sgd = SGD(lambda: asked.append(1) or 1.0, momentum=0.5)
    params = [np.ones(2), W]
    state = sgd.init(params)
    given = params, [np.ones(2), bad], state
    before = copied(given)
    with pytest.raises(error, match=f"gradient of weight 1.*{message}"):
        sgd.step(*given)
    assert same(given, before)
    assert not asked


def test_a_scalar_weight_refuses_rows():
    with pytest.raises(ValueError, match="scalar weight cannot take a sparse gradient"):
        SGD().run(np.array(1.0), [slices([1.0], [0])])


def refused(error, message, call):
    return pytest.param(call, error, message, id=message)


def with_state(optimizer, change):
    state = optimizer.init([np.ones(2)])
    return lambda: optimizer.step([np.ones(2)], [np.ones(2)], change(state))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        refused(
            ValueError,
            "no gradient was given: each of grads is None",
            lambda: SGD().run([W, W], [[None, None]]),
        ),
        refused(ValueError, "each of grads is None", lambda: SGD().run(W, [None])),
        refused(ValueError, "each of grads", lambda: SGD().run({"a": W}, [{}])),
        refused(
            ValueError,
            "a sequence of 2",
            lambda: SGD().run([W, W], [[np.ones((3, 2))]]),
        ),
        refused(ValueError, "a sequence of 1", lambda: SGD().run([W], [W])),
        refused(
            ValueError,
            r"grads must be a mapping with keys among \['a'\]",
            lambda: SGD().run({"a": W}, [{"b": W}]),
        ),
        refused(
            ValueError,
            "constraints must be a sequence of 1",
            lambda: SGD().run([W], [[W]], constraints=[None, None]),
        ),
        refused(
            TypeError, "floating dtype, got int64", lambda: SGD().init(np.ones(2, int))
        ),
        refused(
            TypeError,
            "floating dtype, got complex128",
            lambda: SGD().init([W, np.ones(2, complex)]),
        ),
        refused(
            ValueError,
            "the state belongs to 2 weights, got 1",
            with_state(Adam(), lambda s: replace(s, slots=s.slots * 2)),
        ),
        refused(
            ValueError,
            r"weight 0 has slots \['m', 'v'\], the rule needs \['m', 'v', 'vhat'\]",
            with_state(
                Adam(amsgrad=True),
                lambda s: Adam().init([np.ones(2)]),
            ),
        ),
        refused(
            ValueError,
            r"slot m of weight 0 has shape \(3,\); it must have \(2,\) beside",
            with_state(Adam(), lambda s: Adam().init([np.ones(3)])),
        ),
        refused(
            ValueError,
            r"shared slots \[\], the rule needs \['momentum_cache'\]",
            with_state(Nadam(), lambda s: Adam().init([np.ones(2)])),
        ),
        refused(
            ValueError,
            r"shared slots \['momentum_cache'\], the rule needs \[\]",
            with_state(Adam(), lambda s: Nadam().init([np.ones(2)])),
        ),
        refused(
            ValueError,
            "clipnorm=1.0 and global_clipnorm=2.0",
            lambda: SGD(clipnorm=1.0, global_clipnorm=2.0),
        ),
        refused(
            ValueError,
            "sparse must be None or one of every_row, touched_rows, got 'lazy'",
            lambda: Adam(sparse="lazy"),
        ),
        refused(
            ValueError, "Nadam has no decay.*got decay=0.1", lambda: Nadam(decay=0.1)
        ),
        refused(
            ValueError,
            "to_dense needs a shape",
            lambda: slices(ROW, [0]).to_dense(),
        ),
        refused(
            ValueError,
            r"indices must lie in \[0, 1\)",
            lambda: slices(ROW, [1]).to_dense((1, 2)),
        ),
    ],
)
def test_what_does_not_fit_is_refused_with_a_reason(call, error, message):
    with pytest.raises(error, match=message):
        call()


DOMAINS = [
    pytest.param(cls, f.name, f.metadata["domain"], id=f"{name}-{f.name}")
    for name, cls in reference.OPTIMIZERS.items()
    for f in fields(cls)
    if "domain" in f.metadata
]


@pytest.mark.parametrize(("cls", "name", "domain"), DOMAINS)
def test_each_hyperparameter_is_held_to_its_domain(cls, name, domain):
    low, high = (float(end) for end in domain[1:-1].split(","))
    inside = [
        *([low] if domain[0] == "[" else []),
        *([high] if domain[-1] == "]" else []),
        *([np.nextafter(low, np.inf)] if np.isfinite(low) else [-1e9]),
        *([np.nextafter(high, -np.inf)] if np.isfinite(high) else [1e9]),
    ]
    outside = [
        np.nan,
        *([low] if domain[0] == "(" else []),
        *([high] if domain[-1] == ")" else []),
        *([np.nextafter(low, -np.inf), -np.inf] if np.isfinite(low) else []),
        *([np.nextafter(high, np.inf), np.inf] if np.isfinite(high) else []),
    ]
    if issubclass(cls, Nadam) and name == "decay":
        inside = [0.0]  # Nadam has none
    for value in inside:
        assert getattr(cls(**{name: value}), name) == value
    for value in outside:
        with pytest.raises(ValueError, match=rf"{name} must lie in ") as caught:
            cls(**{name: value})
        assert domain in str(caught.value) and str(value) in str(caught.value)
    for value in ("0.5", 1j, [0.5, 0.5]):
        with pytest.raises(TypeError, match=f"{name} must be a number in "):
            cls(**{name: value})


@pytest.mark.parametrize(("cls", "name", "domain"), DOMAINS)
def test_only_what_says_so_may_be_none(cls, name, domain):
    if "None" in next(f.type for f in fields(cls) if f.name == name):
        assert getattr(cls(**{name: None}), name) is None
    else:
        with pytest.raises(TypeError, match=f"{name} must be a number.*None"):
            cls(**{name: None})


def test_options_cannot_be_changed_after_construction():
    with pytest.raises(AttributeError):
        Adam().learning_rate = 0.5


@pytest.mark.parametrize("unknown", ["gamma", "amsgrad", "paper", "name", "sparse"])
def test_a_rule_that_names_what_is_no_number_of_its_class_is_refused(unknown):
    """Also options and labels, which are not numbers."""
    scope = {"rule": rule, "touched_rows": touched_rows}
    exec(
        f"@rule(a='momentum', sparse=touched_rows)\n"
        f"def wrong(w, g, a, t, learning_rate, decay, {unknown}):\n"
        f"    return w, a\n",
        scope,
    )
    with pytest.raises(TypeError, match=f"Wrong.wrong names {unknown}, which is nei"):

        @dataclass(frozen=True)
        class Wrong(Optimizer):
            learning_rate: float = hyper(0.1, "[0, inf)")
            amsgrad: bool = False
            wrong = scope["wrong"]


def test_a_shared_rule_that_names_something_undeclared_is_refused():
    with pytest.raises(TypeError, match=r"Wrong\.once names beta, which is neither"):

        @dataclass(frozen=True)
        class Wrong(Optimizer):
            learning_rate: float = hyper(0.1, "[0, inf)")

            @shared_rule(P="product")
            def once(P, beta):
                return (P * beta,)


def test_a_rule_may_name_what_its_class_and_its_bases_declare():
    @dataclass(frozen=True)
    class Descent(SGD):
        extra: float = hyper(0.5, "[0, 1]")
        constants = {"half": 0.5}  # noqa: RUF012

        @rule(sparse=touched_rows)
        def descent(w, g, t, learning_rate, extra, half):
            w = w - learning_rate * extra * half * t * g
            return w

        @property
        def selected(self):
            return Descent.descent

    new, _ = Descent(1.0).run(np.array([0.0]), [np.array([4.0])] * 2)
    assert new.tolist() == [-1.0 - 2.0]


def test_a_rule_on_touched_rows_sees_no_other_row():
    """The cost is that of the rows in the gradient, never that of the table."""
    shapes = []

    @dataclass(frozen=True)
    class Descent(SGD):
        @rule(sparse=touched_rows)
        def descent(w, g, learning_rate):
            shapes.append((w.shape, g.shape))
            return w - learning_rate * g

        @property
        def selected(self):
            return Descent.descent

    table = np.zeros((1000, 2))
    g = slices([[1, 2], [3, 4], [5, 6]], [7, 900, 7])
    Descent().run(table, [g])
    Descent(sparse="every_row").run(table, [g])
    assert shapes == [((2, 2), (2, 2)), ((1000, 2), (1000, 2))]


# --- where Keras does what no equation says -----------------------------------------


@pytest.mark.parametrize("centered", [False, True])
def test_rmsprop_epsilon_moves_under_the_root_with_momentum(centered):
    # g = 2 and rho = 3/4: r = 1; m = 1/2, so that the variance is 3/4
    w, g = np.array([0.0]), np.array([2.0])
    options = {"rho": 0.75, "centered": centered}
    variance = 0.75 if centered else 1.0
    plain = RMSprop(1.0, epsilon=3.0, **options).run(w, [g])[0]
    assert plain.tolist() == [-2 / (np.sqrt(variance) + 3)]
    moving = RMSprop(1.0, momentum=0.5, epsilon=3.0, **options).run(w, [g])[0]
    assert moving.tolist() == [-2 / np.sqrt(variance + 3)]


def test_ftrl_discards_initial_weights_on_a_zero_gradient():
    new, state = Ftrl(0.5).run(np.array([1.0, -2.0]), [np.zeros(2)])
    assert new.tolist() == [0.0, 0.0]
    assert state.slots[0]["linear"].tolist() == [0.0, 0.0]


def test_ftrl_keeps_initial_weights_of_rows_that_no_gradient_touches():
    w = np.array([[1.0], [-2.0], [3.0]])
    new, _ = Ftrl(0.5).run(w, [slices([[0.0]], [1])])
    assert new.tolist() == [[1.0], [0.0], [3.0]]
    new, _ = Ftrl(0.5, sparse="every_row").run(w, [slices([[0.0]], [1])])
    assert new.tolist() == [[0.0], [0.0], [0.0]]


def test_ftrl_with_nothing_accumulated_gives_zero():
    new, _ = Ftrl(initial_accumulator_value=0.0).run(np.array([1.0]), [np.zeros(1)])
    assert new.tolist() == [0.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_centered_variance_is_never_negative_on_constant_gradients(dtype, momentum):
    optimizer = RMSprop(centered=True, rho=0.5, momentum=momentum)
    g = (numbers(1, 500) * 10.0 ** np.arange(-3, 2).repeat(100)).astype(dtype)
    w, state = np.zeros(500, dtype), optimizer.init(np.zeros(500, dtype))
    below_zero = 0
    for _ in range(300):
        w, state = optimizer.step(w, g, state)
        r, m = (state.slots[0][n].astype(np.float64) for n in ("rms", "mg"))
        below_zero += np.count_nonzero(r - m**2 < 0)
        assert np.isfinite(w).all()
    assert below_zero, "the case that Keras takes the root of did not occur"


def test_nadam_refuses_decay_which_keras_overwrites():
    with pytest.raises(ValueError, match="schedule_decay warms its momentum"):
        Nadam(decay=0.004)
    assert Nadam(decay=0.0) == Nadam()


def test_nadam_cache_advances_at_steps_where_only_some_weights_have_gradients():
    # without warming every mu is beta_1 / 2 = 1/4
    nadam = Nadam(0.5, beta_1=0.5, beta_2=0.0, epsilon=0.0, schedule_decay=0.0)
    a, b, g = np.array([0.0]), np.array([0.0]), np.array([2.0])
    state = nadam.init([a, b])
    for step, grads in enumerate([[g, None], [None, g], [g, None]], start=1):
        (a, b), state = nadam.step([a, b], grads, state)
        assert state.shared == {"momentum_cache": 0.25**step}
        if step == 2:
            g_hat = 2 / (1 - 0.25**2)
            m_hat = 1 / (1 - 0.25**3)
            assert b.tolist() == [-0.5 * (0.75 * g_hat + 0.25 * m_hat) / 2]


def test_nadam_cache_is_the_product_of_the_warming_momenta():
    nadam = Nadam(beta_1=0.5, schedule_decay=100.0)
    _, state = nadam.run(np.zeros(1), [np.ones(1)] * 2)
    first, second = (0.5 * (1 - 0.5 * 0.96 ** (100.0 * t)) for t in (1, 2))
    assert state.shared["momentum_cache"] == first * second
