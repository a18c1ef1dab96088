"""Configs, weights lists and checkpoints go over to the Keras class and come back."""

import json

import numpy as np
import pytest
import tensorflow as tf

import tf_impl
from tests.tf_impl.cases import (
    CASES,
    KERAS,
    KERAS_CASES,
    NAMES,
    assert_close,
    keras_class,
    same,
    state,
    train,
    variable,
)
from tf_impl.legacy_keras import keras

ExponentialDecay = keras.optimizers.schedules.ExponentialDecay


def ours(name, options):
    return tf_impl.OPTIMIZERS[name](learning_rate=0.1, **options)


def theirs(name, options):
    return keras_class(name)(learning_rate=0.1, **options)


PAIRS = pytest.mark.parametrize(
    "old, new",
    [(theirs, ours), (ours, theirs), (ours, ours)],
    ids=["keras-to-ours", "ours-to-keras", "ours-to-ours"],
)


def assert_goes_on(old, before, after, make_old, make_new):
    """Both went on for three steps; they may differ by rounding, ours not at all."""
    if make_old is make_new:
        assert same(before, after)
    else:
        assert_close(old, before, after, steps=3, hypers="float32")


# Configs


@pytest.mark.parametrize("name, options", CASES)
@pytest.mark.parametrize("trained", [False, True])
def test_a_config_comes_back_whole(name, options, trained):
    for extra in ({"clipnorm": 0.5}, {"clipvalue": 2, "decay": 0.25}, {}):
        optimizer = tf_impl.OPTIMIZERS[name](
            learning_rate=0.3, sparse="touched_rows", **options, **extra
        )
        if trained:
            train(optimizer, variable(), steps=[0])
        config = optimizer.get_config()
        again = json.loads(json.dumps(config))  # plain values
        copy = tf_impl.OPTIMIZERS[name].from_config(again)
        assert copy.get_config() == config
        assert extra.items() <= config.items()
        assert {**options, "sparse": "touched_rows"}.items() <= config.items()
    assert "sparse" not in tf_impl.OPTIMIZERS[name]().get_config()


@pytest.mark.parametrize("name, options", KERAS_CASES)
def test_configs_are_those_of_keras(name, options):
    config, rival = ours(name, options).get_config(), theirs(name, options).get_config()
    assert config == rival
    assert list(config) == list(rival)
    keras_class(name).from_config(dict(config))
    tf_impl.OPTIMIZERS[name].from_config(dict(rival))


@pytest.mark.parametrize("name", [name for name in KERAS if name != "Nadam"])
def test_a_schedule_comes_back(name):
    config = tf_impl.OPTIMIZERS[name](
        learning_rate=ExponentialDecay(0.5, 10, 0.9)
    ).get_config()
    copy = tf_impl.OPTIMIZERS[name].from_config(dict(config))
    assert isinstance(copy._get_hyper("learning_rate"), ExponentialDecay)
    assert copy.get_config() == config
    train(copy, variable(), steps=[0])
    if name == "Adagrad":  # Keras leaves a dict in the place of the schedule
        with pytest.raises((ValueError, TypeError)):
            train(keras_class(name).from_config(dict(config)), variable(), steps=[0])


def test_the_schedule_of_nadam_comes_back():
    for cls, kept in ((tf_impl.Nadam, 0.01), (keras_class("Nadam"), 0.004)):
        copy = cls.from_config(cls(schedule_decay=0.01).get_config())
        assert copy.get_config()["decay"] == kept
    config = tf_impl.Nadam(schedule_decay=0.01).get_config()
    assert keras_class("Nadam").from_config(config).get_config()["decay"] == 0.01


@pytest.mark.filterwarnings("ignore:The `lr` argument:UserWarning")
@pytest.mark.parametrize("name", NAMES)
def test_from_config_leaves_its_argument_alone(name):
    config = {"lr": 0.5, "name": "x"}
    optimizer = tf_impl.OPTIMIZERS[name].from_config(config)
    assert config == {"lr": 0.5, "name": "x"}
    assert optimizer.learning_rate == 0.5


# Weights lists


@PAIRS
@pytest.mark.parametrize("name, options", KERAS_CASES)
def test_weights_lists(name, options, old, new):
    first, w = old(name, options), variable()
    train(first, w)
    second, v = new(name, options), tf.Variable(w)
    second._create_all_weights([v])
    assert [x.name.split("/")[-1] for x in second.weights] == [
        x.name.split("/")[-1] for x in first.weights
    ]
    second.set_weights(first.get_weights())
    assert same(state(first, w), state(second, v))
    assert_goes_on(first, train(first, w), train(second, v), old, new)


@pytest.mark.parametrize("name, options", KERAS_CASES)
def test_the_order_of_weights_with_two_variables(name, options):
    names = []
    for make in (ours, theirs):
        a, b = tf.Variable([1.0, 2.0], name="a"), tf.Variable([[3.0]], name="b")
        optimizer = make(name, options)
        optimizer.apply_gradients([(tf.ones(2), a), (tf.ones((1, 1)), b)])
        names.append([x.name for x in optimizer.weights])
    assert names[0] == names[1]


def test_old_weights_lists_of_adam_lose_their_tail():
    for cls in (tf_impl.Adam, keras_class("Adam")):
        optimizer, w = cls(), variable()
        train(optimizer, w)
        weights = optimizer.get_weights()
        optimizer.set_weights([*weights, np.zeros((4, 2))])
        assert same(optimizer.get_weights(), weights)


@pytest.mark.parametrize("name", ["Adagrad", "Adadelta", "RMSprop"])
def test_old_weights_lists_without_iterations_start_at_zero(name):
    for cls in (tf_impl.OPTIMIZERS[name], keras_class(name)):
        optimizer, w = cls(), variable()
        train(optimizer, w)
        weights = optimizer.get_weights()
        optimizer.set_weights(weights[1:])
        assert optimizer.iterations == 0
        assert same(optimizer.get_weights()[1:], weights[1:])


# Checkpoints


@PAIRS
@pytest.mark.parametrize("built", [False, True], ids=["fresh", "built"])
@pytest.mark.parametrize("name, options", KERAS_CASES)
def test_checkpoints(name, options, old, new, built, tmp_path):
    first, w = old(name, options), variable()
    train(first, w)
    first.learning_rate = 0.05
    path = tf.train.Checkpoint(optimizer=first, w=w).write(str(tmp_path / "x"))

    second, v = new(name, options), tf.Variable(tf.zeros((4, 2)))
    if built:
        train(second, v, steps=[0])
    status = tf.train.Checkpoint(optimizer=second, w=v).read(path)
    after = train(second, v)
    status.assert_consumed()
    # A restored optimizer makes its slots before it counts, as in Keras.
    order = [x.name.split("/")[-1] for x in first.weights]
    names = [x.name.split("/")[-1] for x in second.weights]
    after = [after[0], *(after[1 + names.index(name)] for name in order)]
    assert_goes_on(first, train(first, w), after, old, new)
    assert np.float32(second.learning_rate) == np.float32(0.05)


def test_a_hyperparameter_from_keras_stands_for_its_decimal(tmp_path):
    first, w = keras_class("SGD")(0.3), variable()
    train(first, w)
    path = tf.train.Checkpoint(optimizer=first).write(str(tmp_path / "x"))
    for start in (0.3, 0.7, 0.3 + 2.0**-40):
        second = tf_impl.SGD(start)
        tf.train.Checkpoint(optimizer=second).read(path)
        rate = float(second.learning_rate)
        # what is stored is the rounding of the present value, or 0.3
        assert rate == (0.3 if start == 0.7 else start)


def test_an_integer_hyperparameter_from_keras_is_read(tmp_path):
    first, w = keras_class("SGD")(2), variable()
    train(first, w)
    path = tf.train.Checkpoint(optimizer=first).write(str(tmp_path / "x"))
    second = tf_impl.SGD(0.5)
    tf.train.Checkpoint(optimizer=second).read(path)
    assert second.learning_rate == 2.0
    other = keras_class("SGD")(0.5)
    with pytest.raises(ValueError, match="float32 for Tensor with dtype int32"):
        tf.train.Checkpoint(optimizer=other).read(path)
        train(other, variable())


@pytest.mark.parametrize("name", NAMES)
def test_saved_model(name, tmp_path):
    """A loaded model gives each slot its variable's shape, or ends: TensorFlow's."""
    module = tf.Module()
    module.w, module.optimizer = variable(), ours(name, {})

    @tf.function(input_signature=[])
    def step():
        module.optimizer.apply_gradients([(tf.ones((4, 2)), module.w)])

    module.step = step
    module.step()
    tf.saved_model.save(module, str(tmp_path))
    names = module.optimizer.get_slot_names()
    slots = [module.optimizer.get_slot(module.w, name) for name in names]
    if any(slot.shape != module.w.shape for slot in slots):
        with pytest.raises(ValueError, match="ncompatible"):
            tf.saved_model.load(str(tmp_path))
        return
    again = tf.saved_model.load(str(tmp_path))
    module.step()
    again.step()
    assert same([module.w.numpy()], [again.w.numpy()])
