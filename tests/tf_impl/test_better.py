"""What Keras' class does wrong, and ours does not; one test for each such point."""

import numpy as np
import pytest
import tensorflow as tf

import tf_impl
from tests.tf_impl.cases import EPS, keras_class, same, slices


def first_step(cls, gradient, dtype, start=0.0, **options):
    """Return how far the first step moves a weight from `start`."""
    w = tf.Variable(tf.cast(start, dtype), dtype=dtype)
    cls(**options).apply_gradients([(tf.cast(gradient, dtype), w)])
    return start - float(w)


def test_bfloat16_adam_moves():
    """0.999 rounds to 1 in bfloat16."""
    step = first_step(tf_impl.Adam, 1.0, "bfloat16", learning_rate=2.0**-8)
    assert abs(step * 2**8 - 1) <= 2 * EPS["bfloat16"]
    assert first_step(keras_class("Adam"), 1.0, "bfloat16") == 0
    assert np.isnan(first_step(keras_class("Nadam"), 1.0, "bfloat16"))
    assert np.isfinite(first_step(tf_impl.Nadam, 1.0, "bfloat16"))


def test_float16_adam_moves_as_it_should():
    """The first step is lr * g / (|g| + epsilon / sqrt(1 - beta_2))."""
    g = float(np.float16(1e-4))
    due = 2.0**-10 * g / (g + 1e-7 / 0.001**0.5)
    options = {"learning_rate": 2.0**-10}
    ours = first_step(tf_impl.Adam, g, "float16", **options)
    assert abs(ours - due) <= 2 * EPS["float16"] * due
    assert first_step(keras_class("Adam"), g, "float16", **options) == 0


def test_float64_nadam_has_096():
    """Keras' constant is float32(0.96) for every dtype."""
    mu = [0.9 * (1 - 0.5 * 0.96 ** (0.004 * t)) for t in (1, 2)]
    bar = (1 - mu[0]) / (1 - mu[0]) + mu[1] * 0.1 / (1 - mu[0] * mu[1])
    due = bar / (1 + 1e-7 / 1)  # v / (1 - beta_2) is 1
    ours = first_step(tf_impl.Nadam, 1.0, "float64", learning_rate=1.0)
    # 1 - 0.999**1 loses ten bits: its error is eps / 2 of 0.999 in 0.001, and the
    # root halves that; the rest are a dozen roundings.
    bound = (1000 / 2 + 12) * EPS["float64"]
    assert abs(ours - due) <= bound
    theirs = first_step(
        keras_class("Nadam"), 1.0, "float64", learning_rate=np.float64(1.0)
    )
    assert abs(theirs - due) > bound


@pytest.mark.parametrize("size", ["small", "large"])
def test_centered_rmsprop_survives_constant_gradients(size, request):
    """Keras: the variance rounds below zero for a quarter of them, as for 0.1."""
    gradients = tf.constant(np.geomspace(1e-2, 1e2, 1000), tf.float32)
    if size == "large":
        request.getfixturevalue("compile_all")
    for cls, finite in (
        (tf_impl.RMSprop, True),
        (keras_class("RMSprop"), False),
    ):
        w, optimizer = tf.Variable(tf.ones(1000)), cls(centered=True)

        @tf.function
        def steps(optimizer=optimizer, w=w):
            for _ in tf.range(400):
                optimizer.apply_gradients([(gradients, w)])

        optimizer._create_all_weights([w])
        steps()
        assert np.isfinite(w.numpy()).all() == finite


def test_ftrl_shows_a_nan_and_has_no_nan_of_its_own():
    for dtype in ("float16", "float32"):
        nan = tf.constant([np.nan, 1.0], dtype)
        for cls, is_nan in ((tf_impl.Ftrl, True), (keras_class("Ftrl"), False)):
            w = tf.Variable(tf.ones(2, dtype))
            cls().apply_gradients([(nan, w)])
            assert np.isnan(w[0]) == is_nan
    zero = slices(np.zeros((1, 2)), [1])
    for cls, is_nan in ((tf_impl.Ftrl, False), (keras_class("Ftrl"), True)):
        w = tf.Variable(tf.ones((4, 2)))
        cls(initial_accumulator_value=0.0).apply_gradients([(zero, w)])
        assert np.isnan(w[1]).all() == is_nan
        assert is_nan or not w[1].numpy().any()


def test_an_overflow_freezes_a_weight_dense_and_sparse_alike():
    """g = 1e20: v is infinite, then stays so. Keras' dense kernel makes it NaN."""

    def run(cls, sparse):
        w, optimizer = tf.Variable([[1.0], [1.0]]), cls(0.1)
        for g in (1e20, 1.0, 1.0):
            grad = tf.constant([[g], [1.0]])
            if sparse:
                grad = tf.IndexedSlices(grad, tf.constant([0, 1]), tf.constant([2, 1]))
            optimizer.apply_gradients([(grad, w)])
        return w.numpy()

    assert same([run(tf_impl.Adam, False)], [run(tf_impl.Adam, True)])
    assert run(tf_impl.Adam, False)[0] == 1.0
    assert np.isnan(run(keras_class("Adam"), False)[0])
    assert run(keras_class("Adam"), True)[0] == 1.0


def test_sparse_adam_is_the_same_in_a_function():
    """Keras: the graph optimizer turns (g * g) * c into g * (g * c)."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(50, 8)).astype("float32")
    grad = tf.IndexedSlices(values, tf.range(50), tf.constant([50, 8]))
    equal = []
    for cls in (tf_impl.Adam, keras_class("Adam")):
        outcomes = []
        for wrap in (lambda f: f, tf.function):
            w, optimizer = tf.Variable(tf.zeros((50, 8))), cls()
            wrap(lambda o=optimizer, w=w: o.apply_gradients([(grad, w)]) and None)()
            outcomes.append(optimizer.get_slot(w, "v").numpy())
        equal.append(same(outcomes[:1], outcomes[1:]))
    assert equal == [True, False]


def test_momentum_given_as_an_option_keeps_its_epsilon_inside_the_root():
    """RMSprop, as in Keras: lr * g / sqrt(r + epsilon), not / (sqrt(r) + epsilon)."""
    g = 1e-4
    for cls in (tf_impl.RMSprop, keras_class("RMSprop")):
        step = first_step(cls, g, "float32", learning_rate=1.0, momentum=2.0**-20)
        due = g / np.sqrt(0.1 * g * g + 1e-7)
        assert abs(step - due) <= 16 * EPS["float32"] * due
