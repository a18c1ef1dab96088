"""In a training loop: distribution, loss scale, mixed precision, constraints, fit."""

import copy

import numpy as np
import pytest
import tensorflow as tf

import tf_impl
from tests.tf_impl.cases import (
    CASES,
    DENSE,
    KERAS_CASES,
    NAMES,
    ROWS,
    assert_close,
    keras_class,
    same,
    slices,
    state,
    train,
    variable,
)
from tf_impl.legacy_keras import keras

SPARSE = pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])


def make(name, options, **kwargs):
    return tf_impl.OPTIMIZERS[name](learning_rate=0.1, **options, **kwargs)


# tf.distribute


@SPARSE
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name, options", CASES)
def test_two_replicas_are_one_device_with_the_summed_gradient(
    name, options, sparse, large, request
):
    if large:
        request.getfixturevalue("compile_all")
    strategy = tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"],
        cross_device_ops=tf.distribute.ReductionToOneDevice(),
    )
    with strategy.scope():
        optimizer, w = make(name, options), variable()

    @tf.function
    def step(values, indices):
        def replica():
            me = tf.distribute.get_replica_context().replica_id_in_sync_group
            grad = values[me]
            if sparse:
                grad = tf.IndexedSlices(grad, indices[me], tf.constant([4, 2]))
            optimizer.apply_gradients([(grad, w)])

        strategy.run(replica)

    single, v = make(name, options), variable()
    for number in range(2):
        # halves: their sums are exact in any order
        values = np.round(np.stack([DENSE[number], DENSE[2]])) + 0.5
        if sparse:
            values = values[:, :3]
            indices = np.array([ROWS[number], ROWS[2]])
            grad = slices(values.reshape(6, 2), indices.reshape(6))
        else:
            indices = np.zeros((2, 3))
            grad = tf.constant(values.sum(0), tf.float32)
        step(tf.constant(values, tf.float32), tf.constant(indices, tf.int64))
        single.apply_gradients([(grad, v)])
    replicas = [x.numpy() for x in strategy.experimental_local_results(w)]
    assert same(replicas[:1], replicas[1:])
    assert same(state(optimizer, w), state(single, v))


# Loss scale and mixed precision


@pytest.mark.parametrize("function", [False, True])
@pytest.mark.parametrize("name, options", CASES)
def test_a_loss_scale_leaves_finite_steps_alone_and_skips_others(
    name, options, function
):
    inner = make(name, options)
    scaled = keras.mixed_precision.LossScaleOptimizer(
        inner, dynamic=False, initial_scale=8.0
    )
    w, plain, v = variable(), make(name, options), variable()

    def step(grad):
        grad = scaled.get_unscaled_gradients([8.0 * grad])[0]
        scaled.apply_gradients([(grad, w)])

    if function:
        step = tf.function(step)
    for gradient in DENSE[:2]:
        step(tf.constant(gradient, tf.float32))
        plain.apply_gradients([(tf.constant(gradient, tf.float32), v)])
    assert same(state(inner, w), state(plain, v))

    dynamic = keras.mixed_precision.LossScaleOptimizer(make(name, options))
    w = variable()
    step = dynamic.apply_gradients
    if function:
        step = tf.function(lambda pairs: dynamic.apply_gradients(pairs) and None)
    dynamic.apply_gradients([(tf.ones((4, 2)), w)])
    before = state(dynamic.inner_optimizer, w)
    dynamic.apply_gradients([(tf.fill((4, 2), np.inf), w)])
    after = state(dynamic.inner_optimizer, w)
    skipped = [i for i in range(len(before)) if i != 1]  # Keras counts it all the same
    assert same([before[i] for i in skipped], [after[i] for i in skipped])


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_a_mixed_precision_model_trains(name, large, request):
    if large:
        request.getfixturevalue("compile_all")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(32, 4)).astype("float32")
    y = x @ np.array([[1.0], [-2.0], [0.5], [3.0]], np.float32)
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            keras.layers.Dense(8, dtype="mixed_float16", input_shape=(4,)),
            keras.layers.Dense(1, dtype="float32"),
        ]
    )
    fitting = {
        "Adadelta": {"learning_rate": 10.0},
        "ConditionalGradient": {"learning_rate": 0.97, "lambda_": 4.0},
        "LARS": {"learning_rate": 0.002},
        "SGD": {"learning_rate": 0.02},
    }.get(name, {"learning_rate": 0.05})
    model.compile(tf_impl.OPTIMIZERS[name](**fitting), "mse")
    losses = model.fit(x, y, epochs=6, batch_size=8, verbose=0).history["loss"]
    assert losses[-1] < losses[0]
    assert all(v.dtype == tf.float32 for v in model.optimizer.weights[2:])


def test_callbacks_change_the_learning_rate():
    model = keras.Sequential([keras.layers.Dense(1, input_shape=(1,))])
    model.compile(tf_impl.Adam(0.5), "mse")
    schedule = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate / 2)
    one = np.ones((2, 1))
    model.fit(one, one, epochs=2, verbose=0, callbacks=[schedule])
    assert model.optimizer.learning_rate == 0.125


# Constraints


@pytest.mark.parametrize("mode", ["eager", "function"])
@SPARSE
@pytest.mark.parametrize("name, options", CASES)
def test_constraints_hold_after_dense_and_sparse_steps(name, options, sparse, mode):
    w = variable(constraint=lambda x: tf.clip_by_value(x, -0.5, 0.5))
    optimizer = make(name, options)
    train(optimizer, w, sparse, mode, steps=[0])
    free, v = make(name, options), variable()
    train(free, v, sparse, mode, steps=[0])
    assert same([w.numpy()], [np.clip(v.numpy(), -0.5, 0.5)])
    assert same(optimizer.get_weights(), free.get_weights())
    if sparse and (name, options) in [case.values for case in KERAS_CASES]:
        with pytest.raises(RuntimeError, match="constraint"):
            train(keras_class(name)(0.1, **options), w, sparse, steps=[0])


# The rest of the protocol


def test_no_gradients_at_all():
    optimizer = tf_impl.Nadam()
    optimizer.apply_gradients([])
    assert optimizer.iterations == 0
    with pytest.raises(ValueError, match="No gradients"):
        optimizer.apply_gradients([(None, variable())])


@pytest.mark.parametrize("name, options", CASES)
def test_a_weight_without_gradient_stays(name, options):
    optimizer, w, still = make(name, options), variable(), variable()
    optimizer.apply_gradients([(tf.ones((4, 2)), w), (None, still)])
    assert same([still.numpy()], [variable().numpy()])


def test_the_cache_of_nadam_advances_once_a_step():
    """Keras leaves it alone when the step has no variable of the first one's dtype."""
    for cls, expected in ((tf_impl.Nadam, 2), (keras_class("Nadam"), 1)):
        optimizer, low, high = cls(), variable(), variable("float64")
        optimizer.apply_gradients([(tf.ones((4, 2)), low)])
        first = float(optimizer._m_cache)
        optimizer.apply_gradients([(tf.ones((4, 2), tf.float64), high)])
        second = float(optimizer._m_cache)
        assert (second != first) == (expected == 2)


@pytest.mark.parametrize("name, options", CASES)
def test_minimize_and_deepcopy(name, options):
    optimizer, w = make(name, options), variable()
    optimizer.minimize(lambda: tf.reduce_sum(w**2), [w])
    twin = copy.deepcopy(optimizer)
    assert twin.get_config() == optimizer.get_config()
    twin.learning_rate = 0.5
    assert optimizer.learning_rate == 0.1
    assert optimizer.iterations == 1


@pytest.mark.parametrize("name, options", CASES)
def test_hooks_work_without_apply_state(name, options):
    optimizer, w = make(name, options), variable()
    optimizer._create_all_weights([w])
    optimizer._resource_apply_dense(tf.ones((4, 2)), w)
    rows = tf.constant([1, 1])
    optimizer._resource_apply_sparse_duplicate_indices(tf.ones((2, 2)), w, rows)
    assert optimizer.iterations == 0
    other, v = make(name, options), variable()
    for grad in (tf.ones((4, 2)), slices(np.ones((2, 2)), [1, 1])):
        other.apply_gradients([(grad, v)])
        other.iterations.assign(0)
        if issubclass(tf_impl.OPTIMIZERS[name], tf_impl.Nadam):
            other._m_cache.assign(1.0)
    assert same([w.numpy()], [v.numpy()])


def test_a_subclass_may_do_without_apply_state():
    class Halved(tf_impl.Adam):
        def _resource_apply_dense(self, grad, var):
            return super()._resource_apply_dense(grad / 2, var)

        def _resource_apply_sparse(self, grad, var, indices):
            return super()._resource_apply_sparse(grad / 2, var, indices)

    optimizer, w = Halved(0.1), variable()
    plain, v = tf_impl.Adam(0.1), variable()
    for double, single in (
        (tf.fill((4, 2), 2.0), tf.ones((4, 2))),
        (slices(np.ones((2, 2)), [1, 1]), slices(np.ones((1, 2)), [1])),
    ):
        optimizer.apply_gradients([(double, w)])
        plain.apply_gradients([(single, v)])
    assert same(state(optimizer, w), state(plain, v))


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_is_read_under_a_strategy(name, tmp_path):
    strategy = tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"],
        cross_device_ops=tf.distribute.ReductionToOneDevice(),
    )

    def start(rate):
        with strategy.scope():
            optimizer, w = tf_impl.OPTIMIZERS[name](learning_rate=rate), variable()

        @tf.function
        def step():
            strategy.run(
                lambda: optimizer.apply_gradients([(tf.ones((4, 2)), w)]) and None
            )

        return optimizer, w, step

    optimizer, w, step = start(0.1)
    step()
    optimizer.learning_rate = 0.3
    path = tf.train.Checkpoint(optimizer=optimizer, w=w).write(str(tmp_path / "x"))
    again, v, resumed = start(0.7)
    status = tf.train.Checkpoint(optimizer=again, w=v).read(path)
    step()
    resumed()
    status.assert_consumed()
    assert again.learning_rate.numpy() == 0.3
    assert same([w.numpy()], [v.numpy()])


@pytest.mark.parametrize("name, options", CASES)
def test_graphs_of_the_first_tensorflow(name, options):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        optimizer, w = make(name, options), variable()
        updates = optimizer.get_updates(tf.reduce_sum(w * DENSE[0]), [w])
        session.run(tf.compat.v1.global_variables_initializer())
        session.run(updates)
        graph, count = session.run([w, optimizer.iterations])
    assert count == 1
    eager, v = make(name, options), variable()
    train(eager, v, steps=[0])
    assert_close(eager, [graph], [v.numpy()], steps=1)
