"""Clipping after duplicates are summed; what does not fit is refused, all of it."""

import numpy as np
import pytest
import tensorflow as tf

import tf_impl
from tests.tf_impl.cases import (
    CASES,
    DTYPES,
    EPS,
    keras_class,
    same,
    slices,
    state,
    train,
    variable,
)

TWICE = slices([[3.0, 4.0], [3.0, 4.0]], [1, 1])  # the gradient of row 1 is [6, 8]


def clipped(cls, grads, **clip):
    """Return the gradients that SGD sees."""
    variables = [tf.Variable(tf.zeros((4, 2), g.dtype)) for g in grads]
    optimizer = cls(1.0, **clip)
    optimizer.apply_gradients(list(zip(grads, variables, strict=True)))
    return [-v.numpy().astype(np.float64) for v in variables]


@pytest.mark.parametrize(
    "clip, ours, keras",
    [
        ({"clipnorm": 5.0}, [3.0, 4.0], 5 / 50**0.5 * np.array([6.0, 8.0])),
        ({"clipvalue": 3.5}, [3.5, 3.5], [6.0, 7.0]),
        ({"global_clipnorm": 5.0}, [3.0, 4.0], 5 / 50**0.5 * np.array([6.0, 8.0])),
    ],
)
def test_duplicates_are_summed_before_clipping(clip, ours, keras):
    for cls, expected in ((tf_impl.SGD, ours), (keras_class("SGD"), keras)):
        (result,) = clipped(cls, [TWICE], **clip)
        bound = 8 * EPS["float32"] * 8.0  # square, sum, root, quotient, product
        assert np.abs(result[1] - expected).max() <= bound
        assert not result[[0, 2, 3]].any()


@pytest.mark.parametrize("clip", ["clipnorm", "global_clipnorm"])
@pytest.mark.parametrize(
    "dtype, huge", [("float16", 300.0), ("float32", 1e20), ("bfloat16", 1e20)]
)
def test_norms_do_not_overflow(clip, dtype, huge):
    """Two gradients (h, 0, ...) and (0, h, ...): each clipped, or both together."""
    g = np.zeros((4, 2))
    g[0, 0] = huge
    grads = [tf.cast(g, dtype), tf.cast(g[:, ::-1], dtype)]
    expected = 1.0 if clip == "clipnorm" else 0.5**0.5
    for result in clipped(tf_impl.SGD, grads, **{clip: 1.0}):
        assert abs(np.abs(result).sum() - expected) <= 4 * EPS[dtype]
    theirs = clipped(keras_class("SGD"), grads, **{clip: 1.0})
    assert not all(abs(np.abs(r).sum() - expected) <= 0.1 for r in theirs)


def test_norms_of_tiny_and_zero_gradients():
    tiny = tf.fill((4, 2), tf.constant(2.0**-100))
    zero = tf.zeros((4, 2))
    for grad in (tiny, zero, slices(np.zeros((0, 2)), [])):
        for clip in ("clipnorm", "global_clipnorm"):
            (result,) = clipped(tf_impl.SGD, [grad], **{clip: 1.0})
            dense = tf.convert_to_tensor(grad) if grad is not tiny else tiny
            assert np.array_equal(result, dense.numpy())
    (result,) = clipped(tf_impl.SGD, [tiny], clipnorm=2.0**-101)
    assert abs(np.linalg.norm(result) * 2.0**101 - 1) <= 16 * EPS["float32"]


@pytest.mark.parametrize("clip", ["clipnorm", "global_clipnorm"])
@pytest.mark.parametrize("bad, elsewhere", [(np.inf, 0.0), (np.nan, np.nan)])
def test_an_infinite_norm_leaves_zero_and_an_unknown_one_nothing(clip, bad, elsewhere):
    """g * limit / norm: finite over infinite is 0, infinite over itself NaN."""
    grad = np.ones((4, 2), np.float32)
    grad[1, 1] = bad
    (result,) = clipped(tf_impl.SGD, [tf.constant(grad)], **{clip: 1.0})
    expected = np.full((4, 2), elsewhere)
    expected[1, 1] = np.nan
    assert np.array_equal(result, expected, equal_nan=True)


def test_gradient_transformers_see_summed_rows():
    seen = []

    def transform(grads_and_vars):
        seen.extend(grads_and_vars)
        return [(2 * tf.convert_to_tensor(g), v) for g, v in grads_and_vars]

    optimizer = tf_impl.SGD(1.0, gradient_transformers=[transform])
    w = tf.Variable(tf.zeros((4, 2)))
    optimizer.apply_gradients([(TWICE, w)])
    assert seen[0][0].indices.numpy().tolist() == [1]
    assert seen[0][0].dtype == tf.float32
    assert w.numpy()[1].tolist() == [-12.0, -16.0]
    with pytest.raises(ValueError, match="must have the shape"):
        broken = tf_impl.SGD(
            1.0, gradient_transformers=[lambda pairs: [(tf.ones(2), pairs[0][1])]]
        )
        broken.apply_gradients([(TWICE, w)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_clipping_keeps_dtypes(dtype):
    grads = [tf.ones((4, 2), dtype), slices([[3.0, 4.0]], [0], dtype)]
    for result in clipped(tf_impl.SGD, grads, clipnorm=1.0):
        assert abs(np.linalg.norm(result) - 1.0) <= 4 * EPS[dtype]


# Refusals

BAD = {
    "index too large": (slices(np.ones((3, 2)), [1, 4, 2]), r"0 \.\.\. 3.*\[1 4 2\]"),
    "negative index": (
        slices(np.ones((3, 2)), [1, -1, 2]),
        r"0 \.\.\. 3.*\[ 1 -1  2\]",
    ),
    "short row": (slices(np.ones((3, 1)), [1, 0, 2]), r"\(3, 2\), not \(3, 1\)"),
    "long row": (slices(np.ones((3, 5)), [1, 0, 2]), r"\(3, 2\), not \(3, 5\)"),
    "too few rows": (slices(np.ones((2, 2)), [1, 0, 2]), r"\(3, 2\), not \(2, 2\)"),
    "indices of rank 2": (
        tf.IndexedSlices(tf.ones((1, 2)), tf.constant([[1]])),
        r"one dimension, not the shape \(1, 1\)",
    ),
    "indices of floats": (
        tf.IndexedSlices(tf.ones((1, 2)), tf.constant([1.0])),
        "int32 or int64, not float32",
    ),
    "small indices": (
        tf.IndexedSlices(tf.ones((1, 2)), tf.constant([1], tf.int16)),
        "int32 or int64, not int16",
    ),
    "row to broadcast": (tf.ones(2), r"\(4, 2\), not \(2,\)"),
    "transposed": (tf.ones((2, 4)), r"\(4, 2\), not \(2, 4\)"),
    "other dtype": (tf.ones((4, 2), tf.float64), "must be float32.*not float64"),
}


@pytest.mark.parametrize("mode", ["eager", "function", "unknown shapes"])
@pytest.mark.parametrize("name, options", CASES)
def test_what_does_not_fit_is_refused_and_nothing_changes(name, options, mode):
    optimizer = tf_impl.OPTIMIZERS[name](learning_rate=0.1, **options)
    first, w, last = variable(), variable(), variable()
    one = tf.ones((4, 2))

    def step(grad):
        optimizer.apply_gradients([(one, first), (grad, w), (one, last)])

    step(one)
    before = [*state(optimizer, w), first.numpy(), last.numpy()]
    # one function for all sparse gradients of float32 rows, as data would come
    unknown = tf.function(
        lambda values, indices: step(tf.IndexedSlices(values, indices)),
        input_signature=[
            tf.TensorSpec(None, tf.float32),
            tf.TensorSpec(None, tf.int64),
        ],
    )
    unknown_dense = tf.function(step, input_signature=[tf.TensorSpec(None, tf.float32)])
    for grad, message in BAD.values():
        if mode == "eager":
            with pytest.raises(ValueError, match=message):
                step(grad)
        elif mode == "function":
            with pytest.raises((ValueError, tf.errors.InvalidArgumentError)):
                tf.function(lambda grad=grad: step(grad))()
        elif isinstance(grad, tf.IndexedSlices) and grad.indices.dtype == tf.int64:
            with pytest.raises(tf.errors.InvalidArgumentError):
                unknown(grad.values, grad.indices)
        elif isinstance(grad, tf.Tensor) and grad.dtype == tf.float32:
            with pytest.raises(tf.errors.InvalidArgumentError):
                unknown_dense(grad)
        after = [*state(optimizer, w), first.numpy(), last.numpy()]
        assert same(before, after)


def test_keras_half_updates_what_it_refuses():
    """Why: the rows before the bad one, and all variables before the bad one."""
    w = tf.Variable(tf.zeros((4, 2)))
    with pytest.raises(tf.errors.InvalidArgumentError):
        keras_class("SGD")(1.0).apply_gradients([(slices(np.ones((2, 2)), [1, 4]), w)])
    assert w[1, 0] == -1
    with pytest.raises(ValueError, match=r"0 \.\.\. 3"):
        tf_impl.SGD(1.0).apply_gradients([(slices(np.ones((2, 2)), [1, 4]), w)])
    assert w[1, 0] == -1


@pytest.mark.parametrize("name, options", CASES)
def test_xla_drops_rows_that_do_not_exist(name, options):
    """XLA cannot raise: the other rows get what they would get without the bad one."""
    optimizer, w = tf_impl.OPTIMIZERS[name](learning_rate=0.1, **options), variable()
    train(optimizer, w, steps=[0])
    weights, *slots = state(optimizer, w)

    @tf.function(jit_compile=True)
    def step(grad):
        optimizer.apply_gradients([(grad, w)])

    outcomes = []
    for nine, bad in ((9.0, [4, -1]), (0.0, [1, 2])):
        w.assign(weights)
        optimizer.set_weights(slots)
        rows = [[1.0, 2.0], [nine, nine], [3.0, 4.0], [nine, nine]]
        step(slices(rows, [1, bad[0], 2, bad[1]]))
        outcomes.append(state(optimizer, w))
    assert same(*outcomes)


def test_a_scalar_and_other_dtypes_are_refused():
    with pytest.raises(ValueError, match="scalar"):
        grad = tf.IndexedSlices(tf.ones(1), tf.constant([0]))
        tf_impl.SGD().apply_gradients([(grad, tf.Variable(1.0))])
    for dtype in (tf.complex64, tf.int32):
        with pytest.raises(ValueError, match=f"not {dtype.name}"):
            w = tf.Variable(tf.ones(2, dtype))
            tf_impl.SGD().apply_gradients([(tf.ones(2, dtype), w)])


def test_the_first_bad_step_makes_no_progress():
    optimizer, w = tf_impl.Nadam(), variable()
    with pytest.raises(ValueError):
        optimizer.apply_gradients([(tf.ones(2), w)])
    assert optimizer.iterations == 0
    assert optimizer._m_cache == 1


@pytest.mark.parametrize("name, options", CASES)
def test_numpy_arrays_are_gradients_too(name, options):
    outcomes = []
    for convert in (tf.constant, lambda x: tf.constant(x).numpy()):
        optimizer, w = (
            tf_impl.OPTIMIZERS[name](learning_rate=0.1, **options),
            variable(),
        )
        optimizer.apply_gradients([(convert([[0.5, 1.0]] * 4), w)])
        sparse = tf.IndexedSlices(convert([[2.0, 0.25]] * 2), convert([3, 3]))
        optimizer.apply_gradients([(sparse, w)])
        outcomes.append(state(optimizer, w))
    assert same(*outcomes)
