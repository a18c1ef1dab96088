"""Momentum, the proximal rules and AdagradDA beside TensorFlow 1's own; AddSign,
PowerSign; Addons' ProximalAdagrad.
"""

import json

import numpy as np
import pytest
import tensorflow as tf

import tf_impl
from tests.tf_impl.cases import assert_close, gradient, same, train, variable
from tf_impl.legacy_keras import keras

PENALTIES = {"l1_regularization_strength": 0.25, "l2_regularization_strength": 0.5}
V1 = {
    "Momentum": ("MomentumOptimizer", {"momentum": 0.75}),
    "Momentum nesterov": (
        "MomentumOptimizer",
        {"momentum": 0.75, "use_nesterov": True},
    ),
    "ProximalGradientDescent": ("ProximalGradientDescentOptimizer", PENALTIES),
    "ProximalAdagrad": ("ProximalAdagradOptimizer", PENALTIES),
    "AdagradDA": ("AdagradDAOptimizer", PENALTIES),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("case", V1)
def test_tensorflow_1_takes_the_same_steps(case, sparse):
    name, options = V1[case]
    w, v = variable(), variable()
    ours = tf_impl.OPTIMIZERS[case.split()[0]](0.125, **options)
    ours_after = train(ours, w, sparse)[0:1]
    count = tf.Variable(0, dtype=tf.int64)
    if "AdagradDA" in case:
        options = {"global_step": count, **options}
    theirs = getattr(tf.compat.v1.train, name)(0.125, **options)
    for step in range(3):
        theirs.apply_gradients([(gradient(step, sparse), v)], global_step=count)
    slots = theirs.get_slot_names()
    assert set(slots) == set(ours.get_slot_names())
    ours_after += [ours.get_slot(w, slot).numpy() for slot in slots]
    theirs_after = [v.numpy(), *(theirs.get_slot(v, slot).numpy() for slot in slots)]
    assert_close(ours, ours_after, theirs_after)
    assert np.all(ours_after[0] != variable().numpy())


def test_rmsprop_of_tensorflow_1_starts_from_ones():
    """A gradient of 0 leaves 3/4 of the average: of 1, where Keras has 0."""
    w, theirs = variable(), tf.compat.v1.train.RMSPropOptimizer(0.5, decay=0.75)
    theirs.apply_gradients([(tf.zeros_like(w), w)])
    assert np.all(theirs.get_slot(w, "rms").numpy() == 0.75)
    ours = tf_impl.RMSprop(0.5, rho=0.75)
    ours.apply_gradients([(tf.zeros_like(w), w)])
    assert np.all(ours.get_slot(w, "rms").numpy() == 0)


# Addons' ProximalAdagrad: a config of its class, and what its class cannot do.


def test_the_config_of_addons_is_read_and_decay_comes_back_too():
    config = {
        "name": "ProximalAdagrad",
        "learning_rate": 0.5,
        "initial_accumulator_value": 0.25,
        "l1_regularization_strength": 0.125,
        "l2_regularization_strength": 0.0625,
    }
    ours = tf_impl.ProximalAdagrad.from_config(config)
    train(ours, variable())
    assert ours.get_config() == {**config, "decay": 0.0}
    decaying = tf_impl.ProximalAdagrad(decay=0.5)
    assert tf_impl.ProximalAdagrad.from_config(decaying.get_config()).decay == 0.5


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_proximal_rules_train_half_precision(dtype):
    """The kernels of Addons' class and of TensorFlow 1 are for single and double."""
    w = tf.Variable(tf.ones([2], dtype))
    with pytest.raises(tf.errors.OpError, match="No OpKernel was registered"):
        tf.raw_ops.ResourceApplyProximalAdagrad(
            var=w.handle,
            accum=tf.Variable(w).handle,
            **dict.fromkeys(["lr", "l1", "l2"], tf.constant(0.5, dtype)),
            grad=tf.ones([2], dtype),
        )
    ours = tf_impl.ProximalAdagrad(0.5, 0.0, 0.5)
    ours.apply_gradients([(tf.constant([2.0, -2.0], dtype), w)])
    # Rate 0.5 / 2: 1 - 0.25 * 2 - 0.25 * 0.5 and 1 + 0.25 * 2 - 0.25 * 0.5.
    assert np.asarray(w.numpy(), np.float64).tolist() == [0.375, 1.375]


def test_a_nan_is_not_thresholded():
    w = variable()
    for name in ("ProximalGradientDescent", "ProximalAdagrad", "AdagradDA"):
        optimizer = tf_impl.OPTIMIZERS[name](0.5, l1_regularization_strength=1.0)
        optimizer.apply_gradients([(tf.fill(w.shape, np.nan), w)])
        assert np.all(np.isnan(w.numpy())), name


@pytest.mark.parametrize(
    "name, argument",
    [
        ("ProximalGradientDescent", "l1_regularization_strength"),
        ("ProximalAdagrad", "l2_regularization_strength"),
        ("ProximalAdagrad", "initial_accumulator_value"),
        ("AdagradDA", "l1_regularization_strength"),
    ],
)
def test_negative_strengths_are_refused(name, argument):
    with pytest.raises(ValueError, match=f"`{argument}` must be at least 0, not -1"):
        tf_impl.OPTIMIZERS[name](**{argument: -1})


def test_dual_averaging_refuses_squares_from_zero_as_tensorflow_1_does():
    with pytest.raises(ValueError, match="must be above 0, not 0"):
        tf_impl.AdagradDA(initial_gradient_squared_accumulator_value=0)
    with pytest.raises(ValueError, match="positive"):
        tf.compat.v1.train.AdagradDAOptimizer(
            0.1, None, initial_gradient_squared_accumulator_value=0.0
        )


# AddSign and PowerSign


@pytest.mark.parametrize("name", ["AddSign", "PowerSign"])
def test_the_decay_of_signs_follows_a_schedule_that_comes_back(name):
    """The paper's linear decay; by hand for AddSign in the reference's tests."""
    linear = keras.optimizers.schedules.PolynomialDecay(1.0, 2, end_learning_rate=0.0)
    w, optimizer = variable(), tf_impl.OPTIMIZERS[name](0.5, sign_decay=linear)
    v, other = variable(), tf_impl.OPTIMIZERS[name](0.5)
    config = json.loads(json.dumps(optimizer.get_config()))
    optimizer = tf_impl.OPTIMIZERS[name].from_config(config)
    for step, decay in enumerate([1.0, 0.5, 0.0]):
        other.sign_decay = decay
        train(other, v, steps=[step])
    train(optimizer, w, mode="function")
    assert same([w.numpy()], [v.numpy()])


def test_a_nan_average_gives_nan():
    """Its sign is neither positive nor negative nor 0."""
    for name in ("AddSign", "PowerSign"):
        w, optimizer = variable(), tf_impl.OPTIMIZERS[name]()
        optimizer._create_all_weights([w])
        optimizer.get_slot(w, "m").assign(tf.fill(w.shape, np.nan))
        optimizer.apply_gradients([(tf.ones_like(w), w)])
        assert np.all(np.isnan(w.numpy())), name
