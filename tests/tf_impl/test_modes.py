"""Eager, tf.function and XLA; small and large variables; every float dtype."""

import numpy as np
import pytest
import tensorflow as tf

import reference
import tf_impl
from tests.tf_impl.cases import (
    CASES,
    DTYPES,
    START,
    assert_close,
    same,
    slices,
    train,
    variable,
)

SPARSE = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])


def make(name, options, **kwargs):
    return tf_impl.OPTIMIZERS[name](learning_rate=0.1, **options, **kwargs)


@SPARSE
@pytest.mark.parametrize("name, options", CASES)
def test_eager_equals_function_bit_for_bit(name, options, sparse):
    eager = train(make(name, options), variable(), sparse)
    graph = train(make(name, options), variable(), sparse, "function")
    assert same(eager, graph)


@SPARSE
@pytest.mark.parametrize("name, options", CASES)
def test_xla_is_within_rounding_of_eager(name, options, sparse):
    optimizer = make(name, options)
    eager = train(optimizer, variable(), sparse)
    compiled = train(make(name, options), variable(), sparse, "xla")
    assert_close(optimizer, eager, compiled)


@SPARSE
@pytest.mark.parametrize("name, options", CASES)
def test_large_variables_are_within_rounding_of_small(
    name, options, sparse, compile_all, monkeypatch
):
    large = train(make(name, options), variable(), sparse)
    assert same(large, train(make(name, options), variable(), sparse, "function"))
    monkeypatch.undo()
    optimizer = make(name, options)
    assert_close(optimizer, train(optimizer, variable(), sparse), large)


@SPARSE
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name, options", CASES)
def test_a_step_is_the_float64_step_rounded_once(name, options, dtype, sparse):
    """The first step, from slots that every dtype holds exactly enough."""
    options = {**options}
    optimizer = make(name, options)
    low = train(optimizer, variable(dtype), sparse, steps=[0])
    high = train(make(name, options), variable("float64"), sparse, steps=[0])
    assert [a.dtype for a in low if a.dtype != np.int64] == [
        tf.as_dtype(dtype).as_numpy_dtype
    ] * (len(low) - 1)
    assert_close(optimizer, low, high, dtype=dtype, steps=1)


@pytest.mark.parametrize("name, options", CASES)
def test_variables_of_several_dtypes_in_one_optimizer(name, options):
    together = [variable(dtype) for dtype in DTYPES]
    optimizer = make(name, options)
    for step in range(2):
        optimizer.apply_gradients(
            [(tf.cast(tf.ones((4, 2)) / (step + 1), w.dtype), w) for w in together]
        )
    for w in together:
        alone, single = variable(w.dtype.name), make(name, options)
        single._create_all_weights(together[:1])  # Nadam's cache has the first's dtype
        for step in range(2):
            gradient = tf.cast(tf.ones((4, 2)) / (step + 1), w.dtype)
            single.apply_gradients([(gradient, alone)])
        assert same([w.numpy()], [alone.numpy()])


@pytest.mark.parametrize("name, options", CASES)
def test_one_trace_serves_variables_that_come_later(name, options):
    """A second optimizer and variable of the same shape, after the first are gone."""
    for _ in range(2):
        w, optimizer = variable(), make(name, options)
        result = train(optimizer, w, mode="function")
        del w, optimizer
    assert same(result, train(make(name, options), variable()))


@pytest.mark.parametrize("name, options", CASES)
def test_a_variable_that_is_first_seen_late_starts_at_its_initial_slots(name, options):
    optimizer, first, late = make(name, options), variable(), variable()
    one = tf.ones((4, 2))
    optimizer.apply_gradients([(one, first)])
    optimizer.apply_gradients([(one, first), (one, late)])
    assert optimizer.iterations == 2
    for slot in optimizer.get_slot_names():
        shape = optimizer.get_slot(first, slot).shape
        assert optimizer.get_slot(late, slot).shape == shape
    fresh, other = make(name, options), variable()
    fresh.iterations.assign(1)
    if issubclass(tf_impl.OPTIMIZERS[name], tf_impl.Nadam):
        fresh._create_all_weights([other])
        momentum = float(fresh._momentum(tf.constant(2.0, tf.float64)))
        fresh._m_cache.assign(float(optimizer._m_cache) / momentum)
    fresh.apply_gradients([(one, other)])
    assert_close(fresh, [late.numpy()], [other.numpy()], steps=1)


@pytest.mark.parametrize("name, options", CASES)
def test_any_rank(name, options):
    for shape in [(), (3,), (2, 3, 1, 2)]:
        w, optimizer = tf.Variable(tf.ones(shape)), make(name, options)
        optimizer.apply_gradients([(tf.ones(shape), w)])
        flat, other = tf.Variable(tf.ones([int(np.prod(shape))])), make(name, options)
        other.apply_gradients([(tf.ones(flat.shape), flat)])
        assert same([w.numpy().ravel()], [flat.numpy()])
    w, optimizer = tf.Variable(tf.ones(4)), make(name, options)
    optimizer.apply_gradients([(tf.IndexedSlices(tf.ones(1), tf.constant([2])), w)])
    assert w[2] != 1 or name == "Ftrl"


@pytest.mark.parametrize("name, options", CASES)
def test_nan_in_a_gradient_gives_nan_there_and_nowhere_else(name, options):
    """But where `reference` has it, if the rule sees the whole variable."""
    bad = np.ones((4, 2), np.float32)
    bad[1, 0] = np.nan
    rule = reference.OPTIMIZERS[name](**options)
    for grad, given in (
        (bad, tf.constant(bad)),
        (reference.IndexedSlices(bad[1:2], np.array([1])), slices(bad[1:2], [1])),
    ):
        w, optimizer = variable(), make(name, options)
        optimizer.apply_gradients([(given, w)])
        due = bad if rule.elementwise else rule.run(START, [grad])[0]
        assert np.array_equal(np.isnan(w.numpy()), np.isnan(due))
