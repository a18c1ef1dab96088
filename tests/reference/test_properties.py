"""What holds for every optimizer, whatever the gradient; and which rules are kin.

Generated from ``reference.OPTIMIZERS``: each configuration, under its home library's
sparse policy and under the two that every optimizer has.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import reference
from reference import (
    SGD,
    Adagrad,
    Adam,
    Adamax,
    Ftrl,
    IndexedSlices,
    Nadam,
    RMSprop,
    State,
)
from reference.schedules import InverseTimeDecay, LearningRateSchedule
from tests.reference.worked import modules

few = settings(max_examples=5, deadline=None, derandomize=True, database=None)
"""For what runs on every configuration: a property still sees hundreds of inputs."""
many = settings(few, max_examples=30)

EXAMPLES = [
    pytest.param(cls, options, id="-".join([name, *options]))
    for name, cls in reference.OPTIMIZERS.items()
    for options in cls.examples
]
every_example = pytest.mark.parametrize(("cls", "options"), EXAMPLES)
every_policy = pytest.mark.parametrize("sparse", [None, "every_row", "touched_rows"])

EVERY_ROW: dict[str, set[str]] = {}
for module in modules():
    EVERY_ROW |= module.EVERY_ROW


def on_every_row(optimizer, shape):
    """The names of the tensors that change on rows without a gradient."""
    everything = {"weight", *optimizer.slots}
    if optimizer.sparse == "every_row":
        return everything
    whole = {name for name in everything if changed_as_a_whole(optimizer, name, shape)}
    if optimizer.sparse == "touched_rows":
        return whole
    name = type(optimizer).__name__
    if name == "RMSprop" and optimizer.momentum:
        name = "RMSprop-momentum"
    return whole | EVERY_ROW[name] & everything


def resting(optimizer, w, state, g):
    """The tensors after a step, on rows where the gradient has none (``g`` is zero)."""
    step = optimizer
    if optimizer.decays and "every_row" not in (optimizer.decay_rows, optimizer.sparse):
        step = replace(optimizer, multipliers=[{"weight_decay": 0.0}])
    new, old = tensors(*step.step(w, g, state)), tensors(w, state)
    moved = on_every_row(optimizer, w.shape)
    due = {name: new[name] if name in moved else old[name] for name in old}
    if optimizer.decays and step is optimizer and "weight" not in moved:
        wide = w.astype(np.float64)
        decay = optimizer.weight_decay
        if optimizer.decay_times_learning_rate:
            decay = optimizer.learning_rate * decay
        due["weight"] = (wide - decay * wide).astype(w.dtype)
    return due


def tells_rows_apart(optimizer):
    """Whether it does something else to untouched rows than a zero gradient does."""
    touched = "touched" in optimizer.selected.parameters
    return touched and optimizer.sparse != "every_row"


def changed_as_a_whole(optimizer, name, shape):
    """Whether a slot has no rows that go with those of a weight of this shape."""
    slots = optimizer.rule_for(shape).slots.values()
    return any(slot.name == name and slot.shape for slot in slots)


def tensors(weight, state):
    return {"weight": weight, **state.slots[0]}


def same(a, b):
    """Bitwise equality of two weights with their states."""
    (w, state), (other, other_state) = a, b
    first, second = tensors(w, state), tensors(other, other_state)
    return (
        state.iterations == other_state.iterations
        and state.shared == other_state.shared
        and list(first) == list(second)
        and all(first[name].dtype == second[name].dtype for name in first)
        and all(first[name].tobytes() == second[name].tobytes() for name in first)
    )


@dataclass
class Case:
    """A weight with a history, and a sparse gradient for it."""

    weight: np.ndarray
    before: np.ndarray
    slices: IndexedSlices

    def start(self, optimizer):
        """The weight and the state after one dense step, so that no slot is zero."""
        return optimizer.run(self.weight, [self.before])

    @property
    def touched(self):
        return np.unique(self.slices.indices)

    @property
    def untouched(self):
        return np.setdiff1d(np.arange(len(self.weight)), self.touched)


def eighths(dtype, shape):
    """Dyadic numbers whose sums are exact in each dtype, half precision included."""
    whole = hnp.arrays(np.int16, shape, elements=st.integers(-64, 64))
    return whole.map(lambda n: (n / 8).astype(dtype))


@st.composite
def cases(draw, unique=False, min_touched=0):
    dtype = draw(st.sampled_from([np.float64, np.float32, np.float16]))
    shape = draw(st.sampled_from([(6,), (4, 1), (5, 3), (3, 2, 2), (1, 2)]))
    rows = st.integers(0, shape[0] - 1)
    indices = draw(st.lists(rows, unique=unique, min_size=min_touched, max_size=7))
    index_dtype = draw(st.sampled_from([np.int32, np.int64, np.uint8]))
    return Case(
        draw(eighths(dtype, shape)),
        draw(eighths(dtype, shape)),
        IndexedSlices(
            draw(eighths(dtype, (len(indices), *shape[1:]))),
            np.array(indices, index_dtype),
        ),
    )


# --- sparse gradients -----------------------------------------------------------------


@every_example
@every_policy
@given(data=st.data())
@few
def test_splitting_and_permuting_duplicates_changes_nothing(cls, options, sparse, data):
    case = data.draw(cases(min_touched=1))
    optimizer = cls(**options, sparse=sparse)
    w, state = case.start(optimizer)
    values, indices = case.slices.values, case.slices.indices
    part = data.draw(eighths(values.dtype, values.shape))
    parts = np.concatenate([values - part, part]), np.concatenate([indices, indices])
    order = np.array(data.draw(st.permutations(range(2 * len(indices)))))
    split = IndexedSlices(parts[0][order], parts[1][order])
    assert same(optimizer.step(w, split, state), optimizer.step(w, case.slices, state))


@every_example
@every_policy
@given(case=cases(), clipnorm=st.sampled_from([0.5, 4.0]))
@few
def test_clipping_sees_the_sum_of_duplicates(cls, options, sparse, case, clipnorm):
    for clip in ("clipvalue", "clipnorm", "global_clipnorm"):
        optimizer = cls(**options, sparse=sparse, **{clip: clipnorm})
        w, state = case.start(optimizer)
        unique = reference.deduplicate(case.slices)
        assert same(
            optimizer.step(w, case.slices, state), optimizer.step(w, unique, state)
        )


@every_example
@given(case=cases())
@few
def test_touched_rows_leaves_untouched_rows_bitwise_unchanged(cls, options, case):
    optimizer = cls(
        **{**options, "sparse": "touched_rows", "decay_rows": "touched_rows"}
    )
    w, state = case.start(optimizer)
    new = tensors(*optimizer.step(w, case.slices, state))
    for name, old in tensors(w, state).items():
        if changed_as_a_whole(optimizer, name, w.shape):
            continue
        rows = case.untouched
        assert new[name][rows].tobytes() == old[rows].tobytes()


@every_example
@given(case=cases())
@few
def test_every_row_is_dense_on_the_scattered_gradient(cls, options, case):
    optimizer = cls(**options, sparse="every_row")
    w, state = case.start(optimizer)
    scattered = np.zeros_like(w)
    np.add.at(scattered, case.slices.indices, case.slices.values)
    assert same(
        optimizer.step(w, case.slices, state), optimizer.step(w, scattered, state)
    )


@every_example
@every_policy
@given(case=cases())
@few
def test_each_policy_does_what_its_table_says(cls, options, sparse, case):
    """Touched rows always take the dense result; others do, or keep what they have."""
    optimizer = cls(**options, sparse=sparse)
    w, state = case.start(optimizer)
    scattered = case.slices.to_dense(w.shape)
    dense = tensors(*optimizer.step(w, scattered, state))
    rest = resting(optimizer, w, state, scattered)
    new_weight, new_state = optimizer.step(w, case.slices, state)
    for name, new in tensors(new_weight, new_state).items():
        due = dense[name].copy()
        if not changed_as_a_whole(optimizer, name, w.shape):
            due[case.untouched] = rest[name][case.untouched]
        if name in on_every_row(optimizer, w.shape) and tells_rows_apart(optimizer):
            due, new = due[case.touched], new[case.touched]
        assert new.tobytes() == due.tobytes(), name
    assert new_state.iterations == state.iterations + 1


@every_example
@every_policy
@given(case=cases())
@few
def test_no_rows_still_advance_time_and_whatever_decays(cls, options, sparse, case):
    optimizer = cls(**options, sparse=sparse)
    w, state = case.start(optimizer)
    nothing = IndexedSlices(case.slices.values[:0], case.slices.indices[:0])
    new_weight, new_state = optimizer.step(w, nothing, state)
    _, zero_state = optimizer.step(w, np.zeros_like(w), state)
    assert new_state.iterations == zero_state.iterations == 2
    assert new_state.shared == zero_state.shared
    assert not issubclass(cls, Nadam) or new_state.shared != state.shared
    due = resting(optimizer, w, state, np.zeros_like(w))
    for name, new in tensors(new_weight, new_state).items():
        if name in on_every_row(optimizer, w.shape) and tells_rows_apart(optimizer):
            continue
        assert new.tobytes() == due[name].tobytes()


@every_example
@every_policy
@given(data=st.data())
@few
def test_rows_touched_once_each_are_a_dense_gradient(cls, options, sparse, data):
    case = data.draw(cases())
    optimizer = cls(**options, sparse=sparse)
    w, state = case.start(optimizer)
    dense = data.draw(eighths(w.dtype, w.shape))
    order = np.array(data.draw(st.permutations(range(len(w)))))
    rows = IndexedSlices(dense[order], order, w.shape)
    assert same(optimizer.step(w, rows, state), optimizer.step(w, dense, state))


# --- malformed input ----------------------------------------------------------------


@st.composite
def malformed(draw):
    """A case whose gradient fails in one way."""
    case = draw(cases(min_touched=1))
    values, indices = case.slices.values, case.slices.indices.astype(np.int64)
    rows = len(case.weight)
    place = draw(st.integers(0, len(indices) - 1))
    kind = draw(
        st.sampled_from(
            [
                "negative",
                "beyond",
                "real",
                "table",
                "longer",
                "shorter",
                "wider",
                "dense",
            ]
        )
    )
    if kind == "negative":
        indices[place] = -draw(st.integers(1, 2**40))
    elif kind == "beyond":
        indices[place] = rows + draw(st.integers(0, 2**40))
    elif kind == "real":
        indices = indices.astype(draw(st.sampled_from([np.float32, bool])))
    elif kind == "table":
        indices = indices[:, None]
    elif kind == "longer":
        values = np.concatenate([values, values[:1]])
    elif kind == "shorter":
        values = values[1:]
    elif kind == "wider":
        values = values[..., None]
    else:
        return case, np.zeros((rows + 1, *case.weight.shape[1:]))
    return case, IndexedSlices(values, indices)


@every_example
@every_policy
@given(bad=malformed())
@few
def test_malformed_input_is_refused_and_nothing_is_touched(cls, options, sparse, bad):
    case, gradient = bad
    optimizer = cls(**options, sparse=sparse)
    w, state = case.start(optimizer)
    params, both = [w, w], replace(state, slots=state.slots * 2)
    good = case.slices
    held = [w, *state.slots[0].values(), good.values, good.indices]
    if isinstance(gradient, IndexedSlices):
        held += [gradient.values, gradient.indices]
    before = [array.tobytes() for array in held]
    with pytest.raises((ValueError, TypeError), match="gradient of weight 1"):
        optimizer.step(params, [good, gradient], both)
    assert [array.tobytes() for array in held] == before
    assert both.iterations == 1


# --- kinship ------------------------------------------------------------------------

SHAPE = (5,)
ordinary = st.integers(1, 2**53).map(lambda n: n * 2.0**-50)
signed = st.tuples(ordinary, st.sampled_from([-1, 1])).map(lambda p: p[0] * p[1])
gradients = st.lists(
    hnp.arrays(np.float64, SHAPE, elements=signed), min_size=1, max_size=4
)
W = np.array([1.0, -2.5, 0.0, 3e-5, 700.0])


def weights(optimizer, steps):
    return optimizer.run(W, steps)[0].tolist()


@given(steps=gradients)
@many
def test_sgd_with_a_momentum_of_zero_is_sgd(steps):
    plain = weights(SGD(0.1), steps)
    for nesterov in (False, True):
        assert weights(SGD(0.1, momentum=0.0, nesterov=nesterov), steps) == plain
        # a callable keeps the slot, and the rule with momentum
        moving = SGD(0.1, momentum=lambda: 0.0, nesterov=nesterov)
        assert moving.slots == ("momentum",)
        assert weights(moving, steps) == plain


@given(steps=gradients)
@many
def test_rmsprop_with_a_momentum_of_zero_is_rmsprop_without_epsilon(steps):
    plain = RMSprop(0.1, epsilon=0.0)
    assert weights(plain, steps) == weights(
        RMSprop(0.1, momentum=lambda: 0.0, epsilon=0.0), steps
    )


@given(steps=gradients, inside=st.booleans())
@many
def test_rmsprop_told_where_epsilon_is_keeps_it_there_with_momentum(steps, inside):
    options = {"epsilon": 0.25, "epsilon_inside": inside}
    plain = weights(RMSprop(0.1, **options), steps)
    assert weights(RMSprop(0.1, momentum=lambda: 0.0, **options), steps) == plain
    # without a velocity it is nothing that the learning rate is outside of it
    assert weights(RMSprop(0.1, rate_inside=False, **options), steps) == plain


@given(steps=gradients, inside=st.booleans())
@many
def test_a_constant_rate_may_be_inside_the_velocity_or_outside(steps, inside):
    options = {"momentum": 0.5, "epsilon": 0.25, "epsilon_inside": inside}
    # a power of two scales a velocity exactly
    outside = RMSprop(0.125, rate_inside=False, **options)
    assert weights(outside, steps) == weights(RMSprop(0.125, **options), steps)


def test_a_rate_that_changes_may_not():
    """With rho 0 and gradients of 3, each adds 3 / (3 + 1) to the velocity."""

    class ThenFour(LearningRateSchedule):
        def __call__(self, step):
            return 1.0 if step == 0 else 4.0

    options = {"rho": 0.0, "momentum": 0.5, "epsilon": 1.0, "epsilon_inside": False}
    inside, outside = (
        RMSprop(ThenFour(), rate_inside=inside, **options) for inside in (True, False)
    )
    steps = [np.array([3.0])] * 2
    first = -0.75
    second = first - (0.5 * 0.75 + 4 * 0.75)
    assert inside.run(np.zeros(1), steps)[0].tolist() == [second]
    second = first - 4 * (0.5 * 0.75 + 0.75)
    assert outside.run(np.zeros(1), steps)[0].tolist() == [second]


@given(steps=gradients)
@many
def test_amsgrad_is_adam_while_the_second_moment_grows(steps):
    growing = np.cumsum(np.abs(steps), axis=0) * np.sign(steps)
    assert weights(Adam(0.1, amsgrad=True), growing) == weights(Adam(0.1), growing)


def test_amsgrad_is_not_adam_once_it_shrinks():
    steps = [np.full(SHAPE, g) for g in (100.0, 0.5)] + [np.zeros(SHAPE)] * 3
    assert weights(Adam(0.1, amsgrad=True), steps) != weights(Adam(0.1), steps)


@given(steps=gradients)
@many
def test_without_memory_all_adaptive_rules_are_one(steps):
    """The root of a square is exact: each divides ``g`` by ``|g| + epsilon``."""
    due = W
    for g in steps:
        due = due - 0.1 * g / (np.abs(g) + 0.25)
    for kin in (
        Adam(0.1, beta_1=0.0, beta_2=0.0, epsilon=0.25),
        Adamax(0.1, beta_1=0.0, beta_2=0.0, epsilon=0.25),
        Nadam(0.1, beta_1=0.0, beta_2=0.0, epsilon=0.25),
        RMSprop(0.1, rho=0.0, epsilon=0.25),
    ):
        assert weights(kin, steps) == due.tolist(), kin


@given(steps=gradients)
@many
def test_adam_without_first_moment_is_rmsprop_at_a_corrected_rate(steps):
    class Corrected(LearningRateSchedule):
        def __call__(self, step):
            return 0.1 * np.sqrt(1 - 0.75 ** (step + 1))

    adam = Adam(0.1, beta_1=0.0, beta_2=0.75)
    assert weights(adam, steps) == weights(RMSprop(Corrected(), rho=0.75), steps)


@given(g=hnp.arrays(np.float64, SHAPE, elements=signed))
@many
def test_the_first_steps_of_adagrad_and_ftrl_from_zero_are_one(g):
    zero = np.zeros(SHAPE)
    # a learning rate that is a power of two divides without rounding
    ftrl = Ftrl(0.125, initial_accumulator_value=0.5)
    adagrad = Adagrad(0.125, initial_accumulator_value=0.5, epsilon=0.0)
    assert ftrl.run(zero, [g])[0].tolist() == adagrad.run(zero, [g])[0].tolist()


@given(steps=gradients, beta_2=st.floats(0, 1, exclude_max=True))
@many
def test_adamax_forgets_nothing_while_gradients_grow(steps, beta_2):
    growing = np.cumsum(np.abs(steps), axis=0) * np.sign(steps)
    due = weights(Adamax(0.1, beta_2=0.0), growing)
    assert weights(Adamax(0.1, beta_2=beta_2), growing) == due


@every_example
@given(steps=gradients)
@few
def test_the_decay_argument_is_inverse_time_decay(cls, options, steps):
    if issubclass(cls, Nadam):
        with pytest.raises(ValueError, match="no decay"):
            cls(decay=0.5)
        return
    scheduled = cls(**{**options, "learning_rate": InverseTimeDecay(0.1, 1, 0.5)})
    decayed = cls(**{**options, "learning_rate": 0.1}, decay=0.5)
    assert same(decayed.run(W, steps), scheduled.run(W, steps))


@every_example
@given(steps=gradients)
@few
def test_a_clip_that_is_not_reached_changes_nothing(cls, options, steps):
    plain = cls(**options).run(W, steps)
    for clip in ("clipvalue", "clipnorm", "global_clipnorm"):
        assert same(cls(**options, **{clip: 1e6}).run(W, steps), plain)


@every_example
@given(steps=gradients)
@few
def test_a_learning_rate_of_zero_moves_nothing_but_the_averages(cls, options, steps):
    if cls is Ftrl:
        with pytest.raises(ValueError, match=r"learning_rate must lie in \(0, inf\)"):
            Ftrl(0.0)
        return
    if cls is reference.ConditionalGradient:
        return  # its learning rate is the part of the weight that is kept
    if not {"w", "learning_rate"} <= set(cls(**options).rule.parameters):
        return  # nothing is added to the weight, or not at this rate
    lowest = {"min_lr": 0.0} if "min_lr" in options else {}
    if cls(**options).decays:
        options = {**options, "weight_decay": 0.0}
    still = {**options, "learning_rate": 0.0, **lowest}
    w, state = cls(**still).run(W, steps)
    assert w.tolist() == W.tolist()
    rated = {**options, "learning_rate": 0.1}
    _, moved = cls(**rated).run(W, steps)
    averages = {"m", "v", "vhat", "rms", "mg", "accumulator"}
    if cls is reference.NovoGrad:
        averages -= {"m"}  # a velocity, which holds the learning rate
    for name in averages & set(state.slots[0]):
        assert np.array_equal(state.slots[0][name], moved.slots[0][name])


@pytest.mark.parametrize(
    "optimizer",
    [
        Adam(0.1, epsilon=0.0),
        Adam(0.1, epsilon=0.0, amsgrad=True),
        Adamax(0.1, epsilon=0.0),
        Nadam(0.1, epsilon=0.0),
        RMSprop(0.1, epsilon=0.0),
        RMSprop(0.1, momentum=0.5, epsilon=0.0),
        Adagrad(0.1, initial_accumulator_value=0.0, epsilon=0.0),
    ],
    ids=lambda optimizer: "-".join([type(optimizer).__name__, *optimizer.slots]),
)
@given(steps=gradients, power=st.integers(-40, 40))
@many
def test_without_epsilon_the_scale_of_the_gradient_is_no_input(optimizer, steps, power):
    scaled = [g * 2.0**power for g in steps]
    assert weights(optimizer, scaled) == weights(optimizer, steps)


@every_example
@given(steps=gradients)
@few
def test_elements_do_not_see_each_other(cls, options, steps):
    """An elementwise rule on a permuted weight is the permuted result."""
    optimizer = cls(**options)
    if not optimizer.elementwise:
        return
    order = np.array([3, 0, 4, 1, 2])
    w, state = optimizer.run(W, steps)
    other, other_state = optimizer.run(W[order], [g[order] for g in steps])
    slots = {name: slot[order] for name, slot in state.slots[0].items()}
    permuted = State(state.iterations, (slots,), state.shared)
    assert same((other, other_state), (w[order], permuted))
