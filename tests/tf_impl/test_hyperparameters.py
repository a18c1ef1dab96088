"""Hyperparameters are real numbers, and may change at any time."""

import numpy as np
import pytest
import tensorflow as tf

import tf_impl
from tests.tf_impl.cases import CASES, KERAS, NAMES, keras_class, same, train, variable
from tf_impl.legacy_keras import keras

ExponentialDecay = keras.optimizers.schedules.ExponentialDecay
WITH_SCHEDULES = [name for name in KERAS if name != "Nadam"]


def moved(optimizer, function=False, gradient=1.0):
    """Return a function that takes a step of SGD from 0 and returns the weights."""
    w = tf.Variable(0.0, dtype=tf.float64)

    def step():
        optimizer.apply_gradients([(tf.constant(gradient, tf.float64), w)])

    if function:
        step = tf.function(step)

    def run():
        w.assign(0.0)
        step()
        return -float(w)

    return run


def test_float64_weights_see_float64_hyperparameters():
    assert moved(tf_impl.SGD(0.1))() == 0.1
    assert moved(keras_class("SGD")(0.1))() == float(np.float32(0.1)) != 0.1


def test_a_callable_and_epsilon_are_float64_too():
    assert moved(tf_impl.SGD(lambda: 0.1))() == 0.1
    assert moved(keras_class("SGD")(lambda: 0.1))() == float(np.float32(0.1))
    adagrad = tf_impl.Adagrad(1.0, initial_accumulator_value=0.0, epsilon=0.1)
    assert moved(adagrad)() == 1 / (1 + 0.1)
    clipped = tf_impl.SGD(1.0, clipvalue=0.1)
    assert moved(clipped)() == 0.1


@pytest.mark.parametrize("name, options", CASES)
def test_float64_steps_are_those_of_real_hyperparameters(name, options):
    """Given as float64 tensors, which Keras leaves alone, they change nothing."""
    config = tf_impl.OPTIMIZERS[name](learning_rate=0.1, **options).get_config()
    exact = {
        k: tf.constant(v, tf.float64)
        for k, v in config.items()
        if k in ("learning_rate", "beta_1", "beta_2", "rho", "beta")
    }
    given = train(tf_impl.OPTIMIZERS[name](**{**options, **exact}), variable("float64"))
    plain = train(
        tf_impl.OPTIMIZERS[name](learning_rate=0.1, **options), variable("float64")
    )
    assert same(given, plain)


def test_an_integer_is_a_float():
    ours, theirs = tf_impl.SGD(1), keras_class("SGD")(1)
    for optimizer in (ours, theirs):
        moved(optimizer)()
        optimizer.learning_rate = 0.5
    assert ours.learning_rate == 0.5
    assert theirs.learning_rate == 0


@pytest.mark.parametrize("function", [False, True])
@pytest.mark.parametrize("start", [1.0, lambda: 1.0])
def test_assigned_values_are_used_at_once(start, function):
    optimizer = tf_impl.SGD(start)
    run = moved(optimizer)
    assert run() == 1.0
    traced = moved(optimizer, function)
    optimizer.learning_rate = 0.3
    assert traced() == 0.3
    optimizer.learning_rate = 0.7
    assert traced() == 0.7
    optimizer.lr = 2
    assert traced() == 2.0
    optimizer.learning_rate.assign(0.1)
    assert traced() == 0.1
    optimizer.learning_rate = tf.constant(0.25)
    assert traced() == 0.25
    keras.backend.set_value(optimizer.learning_rate, 0.6)
    assert traced() == 0.6


def test_every_assignment_reaches_the_next_step():
    optimizer = tf_impl.SGD(1.0)
    run = moved(optimizer)
    run()
    optimizer.learning_rate = ExponentialDecay(np.float64(0.5), 1, 0.5)
    assert run() == 0.5 * 0.5
    optimizer.learning_rate = lambda: 0.3
    assert run() == 0.3
    optimizer.learning_rate = 0.1
    assert run() == 0.1
    optimizer.learning_rate = lambda: 0.2  # in the place of a number
    assert run() == 0.2
    with pytest.raises(TypeError):  # Keras: a variable cannot become a callable
        other = keras_class("SGD")(1.0)
        moved(other)()
        other.learning_rate = lambda: 0.3


def test_a_variable_of_the_users_is_followed():
    rate = tf.Variable(0.5, dtype=tf.float64)
    run = moved(tf_impl.SGD(rate), function=True)
    assert run() == 0.5
    rate.assign(0.1)
    assert run() == 0.1


def test_other_hyperparameters_change_in_traced_functions_too():
    optimizer = tf_impl.Ftrl(0.1)
    traced = moved(optimizer, function=True)
    traced()
    optimizer.learning_rate_power = -0.7
    # The weights start at 0 each time: n = 0.1, 1.1, 2.1 and z = 0, 1, 2, and the
    # result is z * lr / n**0.7: four roundings and those of the sum and the power.
    expected = 2 * 0.1 / 2.1**0.7
    assert abs(traced() - expected) <= 8 * 2.0**-53 * expected


@pytest.mark.parametrize("name", WITH_SCHEDULES)
def test_a_schedule_is_read_at_iterations(name):
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([1], [0.5, 0.25])
    w, optimizer = variable(), tf_impl.OPTIMIZERS[name](learning_rate=schedule)
    train(optimizer, w)
    v, other = variable(), tf_impl.OPTIMIZERS[name](learning_rate=0.5)
    train(other, v, steps=[0, 1])
    other.learning_rate = 0.25
    train(other, v, steps=[2])
    assert same([w.numpy()], [v.numpy()])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_counts_steps_exactly(dtype):
    """At step 70000 float16 is infinite: Keras' schedule gives 0 there."""
    for cls, expected in ((tf_impl.SGD, 0.5**0.7), (keras_class("SGD"), None)):
        optimizer = cls(ExponentialDecay(1.0, 100_000, 0.5))
        optimizer.iterations.assign(70_000)
        w = tf.Variable(tf.zeros((), dtype))
        optimizer.apply_gradients([(tf.ones((), dtype), w)])
        if expected is None:
            assert float(w) != float(tf.cast(-(0.5**0.7), dtype))
        else:
            assert float(w) == float(tf.cast(-expected, dtype))


@pytest.mark.parametrize("name", WITH_SCHEDULES)
def test_decay_divides_the_learning_rate(name):
    w, optimizer = variable(), tf_impl.OPTIMIZERS[name](learning_rate=0.1, decay=0.5)
    train(optimizer, w, steps=[0, 1])
    v, other = variable(), tf_impl.OPTIMIZERS[name](learning_rate=0.1)
    train(other, v, steps=[0])
    other.learning_rate = 0.1 / (1 + 0.5 * 1)
    train(other, v, steps=[1])
    assert same([w.numpy()], [v.numpy()])


def test_nadam_refuses_a_schedule_as_keras_does():
    for cls in (tf_impl.Nadam, keras_class("Nadam")):
        with pytest.raises(ValueError, match="LearningRateSchedule"):
            cls(ExponentialDecay(0.1, 1, 0.5))


@pytest.mark.parametrize("name", NAMES)
def test_lr_is_an_alias(name):
    with pytest.warns(UserWarning, match="deprecated"):
        optimizer = tf_impl.OPTIMIZERS[name](lr=0.5)
    assert optimizer.lr == optimizer.learning_rate == 0.5


@pytest.mark.parametrize(
    "name, arguments, message",
    [
        ("SGD", {"momentum": 1.5}, r"`momentum` must be between \[0, 1\].*=1.5"),
        ("RMSprop", {"momentum": -1}, r"`momentum` must be between \[0, 1\].*=-1"),
        ("Ftrl", {"learning_rate_power": 0.5}, "must be at most 0, not 0.5"),
        ("Ftrl", {"l1_regularization_strength": -1}, "must be at least 0, not -1"),
        ("Adagrad", {"initial_accumulator_value": -1}, "must be at least 0, not -1"),
        ("Adam", {"clipnorm": -1.0}, "clipnorm"),
    ],
)
def test_arguments_outside_their_domain_are_refused(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        tf_impl.OPTIMIZERS[name](**arguments)


def test_epsilon_zero_is_zero():
    assert tf_impl.Adam(epsilon=0).epsilon == 0
    assert keras_class("Adam")(epsilon=0).epsilon == 1e-7
    assert tf_impl.Adam(epsilon=None).epsilon == 1e-7
