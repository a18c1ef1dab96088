"""Sparse gradients: duplicates are a sum; what happens to rows that are not touched."""

import numpy as np
import pytest
import tensorflow as tf

import reference
import tf_impl
from tests.tf_impl.cases import (
    CASES,
    DENSE,
    KERAS_CASES,
    assert_close,
    gradient,
    keras_class,
    same,
    slices,
    state,
    train,
    variable,
)

# Tensors that change on every row, by class and options; none for all others.
EVERY_ROW = {
    "Adam": {"w", "m", "v", "vhat"},
    "Nadam": {"m", "v"},
    "RMSprop": {"rms", "mg"},
}


def every_row(name, options):
    return set() if "momentum" in options else EVERY_ROW.get(name, set())


def make(name, options, **kwargs):
    return tf_impl.OPTIMIZERS[name](learning_rate=0.1, **options, **kwargs)


def tensors(optimizer, w):
    slots = {n: optimizer.get_slot(w, n).numpy() for n in optimizer.get_slot_names()}
    return {"w": w.numpy(), **slots}


def after_warm_up(name, options, **kwargs):
    """Return an optimizer and weights with no slot at its initial value."""
    optimizer, w = make(name, options, **kwargs), variable()
    train(optimizer, w, steps=[0])
    return optimizer, w


@pytest.mark.parametrize("mode", ["eager", "function", "xla"])
@pytest.mark.parametrize("name, options", CASES)
def test_duplicates_are_a_sum_in_any_order(name, options, mode):
    values = np.array([[1.0, 2.0], [4.0, 0.5], [0.25, 8.0], [2.0, 1.0]])  # exact sums
    indices = np.array([3, 0, 3, 3])
    optimizer, w = after_warm_up(name, options)
    weights, *slots = state(optimizer, w)

    def step(grad):
        optimizer.apply_gradients([(grad, w)])

    if mode != "eager":
        step = tf.function(step, jit_compile=mode == "xla")
    outcomes = []
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 0, 1]):
        w.assign(weights)
        optimizer.set_weights(slots)
        step(slices(values[order], indices[order]))
        outcomes.append(state(optimizer, w))
    summed = slices([values[1], values[0] + values[2] + values[3]], [0, 3])
    w.assign(weights)
    optimizer.set_weights(slots)
    optimizer.apply_gradients([(summed, w)])
    if mode == "xla":
        assert_close(optimizer, outcomes[0], state(optimizer, w), steps=1)
    else:
        assert same(outcomes[0], state(optimizer, w))
    assert all(same(outcome, outcomes[0]) for outcome in outcomes)


@pytest.mark.parametrize("name, options", KERAS_CASES)
def test_untouched_rows_change_as_the_home_policy_says(name, options):
    for module in (tf_impl.OPTIMIZERS[name], keras_class(name)):
        optimizer, w = module(learning_rate=0.1, **options), variable()
        train(optimizer, w, steps=[0])
        before = tensors(optimizer, w)
        optimizer.apply_gradients([(slices(np.full((2, 2), 3.0), [1, 1]), w)])
        after = tensors(optimizer, w)
        untouched = [0, 2, 3]
        for tensor in after:
            changed = not np.array_equal(
                before[tensor][untouched], after[tensor][untouched]
            )
            expected = tensor in every_row(name, options)
            if tensor == "vhat":  # the maximum so far: it cannot fall
                expected = False
            assert changed == expected, (module, tensor)
            assert tensor == "vhat" or np.all(before[tensor][1] != after[tensor][1])


@pytest.mark.parametrize("name, options", CASES)
def test_touched_rows_leaves_all_others_bitwise_alone(name, options):
    options = {**options, "decay_rows": "touched_rows"}
    optimizer, w = after_warm_up(name, options, sparse="touched_rows")
    before = tensors(optimizer, w)
    optimizer.apply_gradients([(slices(np.full((2, 2), 3.0), [1, 1]), w)])
    after = tensors(optimizer, w)
    rest = [0, 2, 3]
    of_rows = [n for n in after if after[n].shape == w.shape]  # not means over them
    assert all(same([before[n][rest]], [after[n][rest]]) for n in of_rows)


@pytest.mark.parametrize("name, options", CASES)
def test_every_row_is_dense_on_the_scattered_gradient(
    name, options, sparse="every_row"
):
    optimizer, w = after_warm_up(name, options, sparse=sparse)
    optimizer.apply_gradients([(slices(DENSE[1][:3], [2, 0, 2]), w)])
    scattered = np.zeros((4, 2))
    scattered[0], scattered[2] = DENSE[1][1], DENSE[1][0] + DENSE[1][2]
    dense, other = after_warm_up(name, options)
    dense.apply_gradients([(tf.constant(scattered, tf.float32), other)])
    assert_close(dense, state(optimizer, w), state(dense, other), steps=2)


@pytest.mark.parametrize("name, options", KERAS_CASES)
def test_no_indices_still_count_and_decay(name, options):
    optimizer, w = after_warm_up(name, options)
    before = tensors(optimizer, w)
    optimizer.apply_gradients([(slices(np.zeros((0, 2)), []), w)])
    after = tensors(optimizer, w)
    assert optimizer.iterations == 2
    changed = {n for n in after if not same([before[n]], [after[n]])}
    assert changed == every_row(name, options) & set(after) - {"vhat"}


@pytest.mark.parametrize("name, options", CASES)
def test_int32_and_int64_indices_are_the_same(name, options):
    outcomes = []
    for dtype in (tf.int32, tf.int64):
        optimizer, w = make(name, options), variable()
        g = gradient(0, True)
        g = tf.IndexedSlices(g.values, tf.cast(g.indices, dtype), g.dense_shape)
        optimizer.apply_gradients([(g, w)])
        outcomes.append(state(optimizer, w))
    assert same(*outcomes)


@pytest.mark.parametrize("dtype, most", [("float16", 2048), ("bfloat16", 256)])
def test_duplicates_are_summed_in_float32(dtype, most):
    """4096 ones: Keras stops at what the dtype can count to by ones."""
    ones = slices(np.ones((4096, 2)), np.zeros(4096), dtype)
    for module, total in ((tf_impl, 4096), (None, most)):
        cls = module.SGD if module else keras_class("SGD")
        w = tf.Variable(tf.zeros((4, 2), dtype))
        cls(learning_rate=1.0, momentum=0.5).apply_gradients([(ones, w)])
        assert np.all(w[0].numpy() == -total)


def test_an_unknown_policy_is_refused():
    with pytest.raises(ValueError, match="`sparse` must be None, 'every_row' or"):
        tf_impl.Adam(sparse="lazy")


@pytest.mark.parametrize("name, options", CASES)
def test_compiled_tables_of_two_shapes_do_not_share_a_trace(name, options, compile_all):
    """A trace made for one handle serves any other, whatever the shape behind it."""
    gradient = tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]))
    optimizer = make(name, options)
    tables = [tf.Variable(tf.ones([rows, 2])) for rows in (4, 6)]
    optimizer.apply_gradients([(gradient, table) for table in tables])
    rule = reference.OPTIMIZERS[name](learning_rate=0.1, **options)
    given = reference.IndexedSlices(np.ones((1, 2)), np.array([0]))
    due = [rule.run(np.ones(table.shape), [given])[0] for table in tables]
    assert_close(optimizer, [table.numpy() for table in tables], due, steps=1)
