"""Wrappers: whatever the inner optimizer does goes on; faults of others are none."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

import reference
import tf_impl
from tests.tf_impl.cases import same
from tf_impl.legacy_keras import OptimizerV2, keras
from tf_impl.wrapper import deserialized, serialized

# As they do nothing to the weights in two steps.
IDLE = {
    "Lookahead": lambda inner: tf_impl.Lookahead(inner),
    "MovingAverage": lambda inner: tf_impl.MovingAverage(inner),
    "SWA": lambda inner: tf_impl.SWA(inner),
    "ExponentialMovingAverage": lambda inner: tf_impl.ExponentialMovingAverage(inner),
    "GradientAccumulation": lambda inner: tf_impl.GradientAccumulation(inner, 1),
    "LossScaleOptimizer": lambda inner: tf_impl.LossScaleOptimizer(inner),
    "MultiOptimizer": lambda inner: tf_impl.MultiOptimizer([(inner, ...)]),
}
AVERAGES = ["MovingAverage", "SWA", "ExponentialMovingAverage"]
AROUND_ONE = [name for name in IDLE if name != "MultiOptimizer"]

wrappers = pytest.mark.parametrize("name", IDLE)
around_one = pytest.mark.parametrize("name", AROUND_ONE)
averages = pytest.mark.parametrize("name", AVERAGES)


def test_every_wrapper_is_tested():
    assert set(IDLE) == set(tf_impl.WRAPPERS) == set(reference.WRAPPERS)


def two_replicas():
    return tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
    )


def rows(values, indices, shape):
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices), shape)


class Scaled(tf_impl.SGD):
    """An optimizer whose `apply_gradients` takes more, and does more, than Keras'."""

    def apply_gradients(self, grads_and_vars, name=None, scale=1.0, **kwargs):
        scaled = [(g if g is None else g * scale, v) for g, v in grads_and_vars]
        return super().apply_gradients(scaled, name=name, **kwargs)


class CountedSteps(tf_impl.SGD):
    """An optimizer that reads the step count in a hook of its own."""

    def _coefficients(self, t, learning_rate):
        return {"learning_rate": learning_rate * t}


SCHEDULE = keras.optimizers.schedules.PiecewiseConstantDecay([0], [1.0, 0.25])
INNER = {
    "clipnorm": lambda: tf_impl.SGD(1.0, clipnorm=1.0),
    "clipvalue": lambda: tf_impl.SGD(1.0, clipvalue=0.5),
    "global_clipnorm": lambda: tf_impl.SGD(1.0, global_clipnorm=1.0),
    "transformers": lambda: tf_impl.SGD(
        1.0, gradient_transformers=[lambda pairs: [(-g, v) for g, v in pairs]]
    ),
    "no momentum": lambda: tf_impl.SGD(1.0),
    "nadam": lambda: tf_impl.Nadam(0.5),
    "schedule": lambda: tf_impl.SGD(SCHEDULE),
    "decay": lambda: tf_impl.Adam(0.5, decay=0.5),
    "touched rows": lambda: tf_impl.Adam(0.5, sparse="touched_rows"),
    "a hook": lambda: CountedSteps(0.5),
    "of Keras": lambda: keras.optimizers.legacy.Adam(0.5),
    "Nadam of Keras": lambda: keras.optimizers.legacy.Nadam(0.5),
}


@pytest.mark.parametrize("inner", INNER)
@wrappers
def test_all_that_the_inner_optimizer_does_goes_on(name, inner):
    """Addons' wrappers drop the inner clipping and transformers, end in a KeyError
    around SGD without momentum on sparse gradients, and in an AttributeError around
    Nadam."""
    left, right = IDLE[name](INNER[inner]()), INNER[inner]()
    dense = [tf.Variable([1.0, -2.0]), tf.Variable([1.0, -2.0])]
    table = [tf.Variable(tf.ones([3, 2])), tf.Variable(tf.ones([3, 2]))]
    for step in range(2):
        # Duplicates, whose sum is exact.
        g = rows([[3.0, 4.0], [8.0, 0.5], [1.0, 2.0]], [2, step, 2], [3, 2])
        for optimizer, w, v in zip((left, right), dense, table, strict=True):
            optimizer.apply_gradients([(tf.constant([30.0, 40.0]), w), (g, v)])
    assert same([dense[0].numpy()], [dense[1].numpy()])
    assert same([table[0].numpy()], [table[1].numpy()])
    assert left.iterations.numpy() == right.iterations.numpy() == 2


@wrappers
def test_arguments_of_apply_gradients_and_minimize_go_on(name):
    w, optimizer = tf.Variable(0.0), IDLE[name](Scaled(1.0))
    optimizer.apply_gradients([(tf.constant(-1.0), w)], scale=4.0)
    assert w.numpy() == 4.0
    if name in AROUND_ONE:
        optimizer.minimize(lambda: -w, [w], scale=2.0)
        assert w.numpy() == 6.0


@wrappers
def test_inner_exclude_lists_go_on(name):
    """Addons evaluates them in an `apply_gradients` that its wrappers do not call."""
    inner = tf_impl.AdamW(
        weight_decay=0.5, learning_rate=0.0, exclude_from_weight_decay=["bias"]
    )
    kernel, bias = tf.Variable(1.0, name="kernel"), tf.Variable(1.0, name="bias")
    IDLE[name](inner).apply_gradients([(tf.constant(1.0), v) for v in (kernel, bias)])
    assert (kernel.numpy(), bias.numpy()) == (0.5, 1.0)


@around_one
def test_hyperparameters_are_those_of_the_inner_optimizer(name):
    inner = tf_impl.SGD(0.5, momentum=0.25, clipnorm=8.0)
    optimizer = IDLE[name](inner)
    assert float(optimizer.learning_rate) == float(optimizer.lr) == 0.5
    assert float(optimizer.momentum) == 0.25 and optimizer.clipnorm == 8.0
    assert {"learning_rate", "momentum"} <= set(dir(optimizer))
    w = tf.Variable(0.0)

    @tf.function
    def step():
        optimizer.apply_gradients([(tf.constant(-1.0), w)])

    step()
    optimizer.learning_rate = 1.0
    optimizer.clipnorm = 4.0
    assert float(inner.learning_rate) == 1.0 and inner.clipnorm == 4.0
    step()
    assert w.numpy() == 0.5 + (0.25 * 0.5 + 1.0)
    with pytest.raises(AttributeError, match="has no attribute nothing"):
        optimizer.nothing  # noqa: B018


@wrappers
def test_state_is_counted_once_and_listed_whole(name):
    w, optimizer = tf.Variable([1.0]), IDLE[name](tf_impl.Adam())
    optimizer.apply_gradients([(tf.constant([1.0]), w)])
    assert optimizer.iterations.numpy() == 1
    weights = optimizer.weights
    assert len({id(v) for v in weights}) == len(weights)
    assert weights[0] is optimizer.iterations
    assert {"m", "v"} <= {v.name.split("/")[-1].split(":")[0] for v in weights}
    assert [v.name for v in optimizer.variables()] == [v.name for v in weights]
    assert optimizer.get_slot(w, "m").shape == w.shape


def long(name):
    """A wrapper at work: it acts within five steps."""
    inner = tf_impl.Adam(0.125)
    return {
        "Lookahead": lambda: tf_impl.Lookahead(inner, sync_period=2),
        "MovingAverage": lambda: tf_impl.MovingAverage(inner, 0.5, start_step=1),
        "SWA": lambda: tf_impl.SWA(inner, 1, 2),
        "ExponentialMovingAverage": lambda: tf_impl.ExponentialMovingAverage(
            inner, 0.5, ema_overwrite_frequency=2
        ),
        "GradientAccumulation": lambda: tf_impl.GradientAccumulation(inner, 2),
        "LossScaleOptimizer": lambda: tf_impl.LossScaleOptimizer(
            inner, dynamic_growth_steps=2
        ),
        "MultiOptimizer": lambda: tf_impl.MultiOptimizer([(inner, ...)]),
    }[name]()


def run(optimizer, variables, steps):
    for step in steps:
        dense = tf.constant([0.5 + step, -1.0])
        sparse = rows([[1.0], [2.0]], [step % 3, 0], [3, 1])
        optimizer.apply_gradients(zip([dense, sparse], variables, strict=True))


def some_variables():
    return [tf.Variable([1.0, 2.0], name="a"), tf.Variable(tf.ones([3, 1]), name="b")]


@pytest.mark.parametrize("way", ["checkpoint", "late restore", "weights"])
@wrappers
def test_training_goes_on_where_it_was_saved(name, way, tmp_path):
    """Addons' MultiOptimizer saves no state of its optimizers."""
    whole, optimizer = some_variables(), long(name)
    run(optimizer, whole, range(3))
    saved = [v.numpy() for v in whole]
    copy = type(optimizer).from_config(optimizer.get_config())
    variables = some_variables()
    if way == "weights":
        copy._create_all_weights(variables)
        copy.set_weights(optimizer.get_weights())
        for variable, value in zip(variables, saved, strict=True):
            variable.assign(value)
    else:
        checkpoint = tf.train.Checkpoint(o=optimizer, a=whole[0], b=whole[1])
        file = checkpoint.save(str(tmp_path / "c"))
        if way == "checkpoint":
            copy._create_all_weights(variables)
        status = tf.train.Checkpoint(o=copy, a=variables[0], b=variables[1])
        status = status.restore(file)
    run(optimizer, whole, range(3, 5))
    run(copy, variables, range(3, 5))
    if way != "weights":
        status.assert_consumed()
    left, right = ({v.name: v for v in each.weights} for each in (optimizer, copy))
    assert set(left) == set(right)
    assert same([left[n].numpy() for n in left], [right[n].numpy() for n in left])
    assert same([v.numpy() for v in whole], [v.numpy() for v in variables])


@wrappers
def test_the_config_is_data_and_left_alone(name):
    """Addons' MultiOptimizer is no JSON, and shares its optimizers with the copy."""
    optimizer = long(name)
    config = optimizer.get_config()
    text = json.dumps(config)
    copy = type(optimizer).from_config(config)
    assert json.dumps(config) == text == json.dumps(copy.get_config())
    through = deserialized(json.loads(json.dumps(serialized(optimizer))))
    assert type(through) is type(optimizer)
    assert json.dumps(through.get_config()) == text
    assert not set(map(id, inners(optimizer))) & set(map(id, inners(copy)))


def inners(optimizer):
    return getattr(optimizer, "optimizers", None) or [optimizer._optimizer]


def test_an_inner_optimizer_of_keras_or_of_yours_keeps_its_class():
    for inner in (keras.optimizers.legacy.Adam(), tf_impl.Adam()):
        copy = tf_impl.SWA.from_config(tf_impl.SWA(inner).get_config())
        assert type(copy._optimizer) is type(inner)
    config = tf_impl.SWA(Scaled()).get_config()
    copy = tf_impl.SWA.from_config(config, custom_objects={"Scaled": Scaled})
    assert type(copy._optimizer) is Scaled
    # Where Addons' config says no more than a name, it is that of a class of here.
    addons = {"class_name": "Adam", "config": tf_impl.Adam(0.5).get_config()}
    copy = tf_impl.Lookahead.from_config({"optimizer": addons, "sync_period": 3})
    assert type(copy._optimizer) is tf_impl.Adam


@pytest.mark.parametrize("name", ["adam", "Adam"])
def test_an_inner_optimizer_by_name(name):
    assert type(tf_impl.Lookahead(name)._optimizer) is tf_impl.Adam
    with pytest.raises(ValueError, match="no optimizer is called 'none'"):
        tf_impl.Lookahead("none")


@around_one
def test_around_each_of_two_replicas(name):
    strategy = two_replicas()
    with strategy.scope():
        mirrored, optimizer = tf.Variable([1.0, 2.0]), long(name)
    alone, other = tf.Variable([1.0, 2.0]), long(name)

    def replica(g):
        optimizer.apply_gradients([(tf.identity(g), mirrored)])

    step = tf.function(lambda g: strategy.run(replica, args=(g,)))
    for number in range(5):
        g = tf.constant([0.5 + number, -1.0])
        step(g / 2)
        other.apply_gradients([(g, alone)])
    first, second = (replica.numpy() for replica in mirrored.values)
    assert same([first], [second]) and same([first], [alone.numpy()])
    assert same(optimizer.get_weights(), other.get_weights())


# Averages.


@averages
def test_swapping_is_exact_and_reversible(name):
    """Addons swaps by adding and subtracting: (1e8, 1) becomes (0, 1e8)."""
    w, optimizer = tf.Variable(1e8), IDLE[name](tf_impl.SGD())
    optimizer.shadow_copy([w])
    average = optimizer.get_slot(w, "average")
    average.assign(1.0)
    optimizer.swap_weights()
    assert (w.numpy(), average.numpy()) == (1.0, 1e8)
    optimizer.swap_weights()
    assert (w.numpy(), average.numpy()) == (1e8, 1.0)
    tf.function(optimizer.swap_weights)()
    assert (w.numpy(), average.numpy()) == (1.0, 1e8)


@averages
def test_all_variables_are_swapped_whatever_the_last_step_was_for(name):
    """Addons swaps those of the last call of `apply_gradients`."""
    variables, optimizer = [tf.Variable(1.0), tf.Variable(1.0)], IDLE[name]("sgd")
    for var in variables:
        optimizer.apply_gradients([(tf.constant(0.0), var)])
        optimizer.get_slot(var, "average").assign(5.0)
    optimizer.swap_weights()
    assert [v.numpy() for v in variables] == [5.0, 5.0]


@averages
def test_swapping_needs_no_scope_and_reaches_all_replicas(name):
    """Addons raises a ValueError outside the scope of the strategy."""
    strategy = two_replicas()
    with strategy.scope():
        w, optimizer = tf.Variable(1.0), IDLE[name](tf_impl.SGD())
    optimizer.shadow_copy([w])
    for average in optimizer.get_slot(w, "average").values:
        average.assign(3.0)
    optimizer.swap_weights()
    assert [v.numpy() for v in w.values] == [3.0, 3.0]
    optimizer.swap_weights()
    assert [v.numpy() for v in w.values] == [1.0, 1.0]
    optimizer.assign_average_vars([w])
    assert [v.numpy() for v in w.values] == [3.0, 3.0]


@averages
def test_an_average_begins_at_the_weights(name):
    """Addons' SWA begins at zero, its MovingAverage after `shadow_copy`."""
    w, stranger, optimizer = tf.Variable(5.0), tf.Variable(7.0), IDLE[name]("sgd")
    assert not optimizer.has_shadow_copy
    optimizer.shadow_copy([w])
    assert optimizer.has_shadow_copy
    optimizer.assign_average_vars([w, stranger])
    assert (w.numpy(), stranger.numpy()) == (5.0, 7.0)
    optimizer.apply_gradients([(tf.constant(0.0), w)])
    assert optimizer.get_slot(w, "average").numpy() == 5.0


@averages
def test_an_average_sees_what_the_constraint_leaves(name):
    """Addons averages before the constraint."""
    w = tf.Variable(1.0, constraint=lambda w: tf.minimum(w, 1.0))
    optimizer = IDLE[name](tf_impl.SGD(1.0))
    optimizer.apply_gradients([(tf.constant(-5.0), w)])
    assert (w.numpy(), optimizer.get_slot(w, "average").numpy()) == (1.0, 1.0)


def test_slow_weights_see_what_the_constraint_leaves():
    w = tf.Variable(1.0, constraint=lambda w: tf.minimum(w, 1.0))
    optimizer = tf_impl.Lookahead(tf_impl.SGD(1.0), sync_period=1)
    optimizer.apply_gradients([(tf.constant(-5.0), w)])
    assert (w.numpy(), optimizer.get_slot(w, "slow").numpy()) == (1.0, 1.0)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_snapshots_are_taken_at_the_end_of_each_cycle_in_every_dtype(dtype):
    """Addons is a step late at the first cycle and early in count, and has a TypeError
    in any other dtype than float32."""
    w = tf.Variable(0.0, dtype=dtype)
    optimizer, averages = tf_impl.SWA(tf_impl.SGD(1.0), 2, 2), []
    for _ in range(6):
        optimizer.apply_gradients([(tf.constant(-1.0, dtype), w)])
        averages.append(float(optimizer.get_slot(w, "average")))
    assert averages == [1.0, 2.0, 2.0, 3.0, 3.0, 4.0]  # of 2, of 2 and 4, of 2, 4 and 6


def the_keras_3():
    keras_3 = pytest.importorskip("keras", reason="Keras 3, another source, is missing")
    if not keras_3.__version__.startswith("3"):
        pytest.skip("this Keras is not Keras 3")
    return keras_3


def test_the_average_of_keras_3():
    """A second source, but for a variable that comes late: Keras 3 starts it at 0."""
    keras_3 = pytest.importorskip(
        "keras", reason="Keras 3, a second source, is missing"
    )
    if not keras_3.__version__.startswith("3"):
        pytest.skip("this Keras is not Keras 3")
    theirs = keras_3.optimizers.SGD(
        1.0, use_ema=True, ema_momentum=0.5, ema_overwrite_frequency=3
    )
    v, w = keras_3.Variable([0.0]), tf.Variable([0.0])
    ours = tf_impl.ExponentialMovingAverage(tf_impl.SGD(1.0), 0.5, 3)
    for g in (-1.0, -3.0, 2.0, -1.0, 4.0):
        theirs.apply([tf.constant([g])], [v])
        ours.apply_gradients([(tf.constant([g]), w)])
        assert w.numpy().tolist() == np.asarray(v.value).tolist()
        average = np.asarray(theirs._model_variables_moving_average[0].value)
        assert ours.get_slot(w, "average").numpy().tolist() == average.tolist()


def test_keras_3_moves_its_average_between_steps():
    """Ours stays between steps."""
    keras_3 = pytest.importorskip(
        "keras", reason="Keras 3, a second source, is missing"
    )
    if not keras_3.__version__.startswith("3"):
        pytest.skip("this Keras is not Keras 3")
    theirs = keras_3.optimizers.SGD(
        1.0, use_ema=True, ema_momentum=0.5, gradient_accumulation_steps=2
    )
    v, w = keras_3.Variable([8.0]), tf.Variable([8.0])
    ours = tf_impl.GradientAccumulation(
        tf_impl.ExponentialMovingAverage(tf_impl.SGD(1.0), 0.5)
    )
    seen = []
    for _ in range(5):
        theirs.apply([tf.constant([-2.0])], [v])
        ours.apply_gradients([(tf.constant([-2.0]), w)])
        their = np.asarray(theirs._model_variables_moving_average[0].value)
        seen.append((float(ours.get_slot(w, "average")[0]), float(their[0])))
    # Steps at the second call, to 10, and the fourth, to 12: (10 + 12) / 2.
    assert [ours for ours, _ in seen] == [8.0, 10.0, 10.0, 11.0, 11.0]
    assert [theirs for _, theirs in seen] == [8.0, 10.0, 10.0, 11.0, 11.5]


# Accumulation and loss scaling.


@pytest.mark.parametrize("mode", ["eager", "function", "xla"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("inner", ["SGD", "Adam", "LazyAdam", "Adagrad"])
def test_accumulation_is_one_large_batch(inner, sparse, mode):
    inner = tf_impl.OPTIMIZERS[inner]
    w, v = tf.Variable(tf.ones([4, 1])), tf.Variable(tf.ones([4, 1]))
    optimizer, large = tf_impl.GradientAccumulation(inner(0.5), 2), inner(0.5)

    def step(values, indices):
        g = tf.IndexedSlices(values, indices, [4, 1])
        g = g if sparse else tf.convert_to_tensor(g)
        optimizer.apply_gradients([(g, w)])

    if mode != "eager":
        step = tf.function(step, jit_compile=mode == "xla")
    for shift in range(2):
        batches = [([[1.0], [2.0]], [shift, 0]), ([[4.0], [-8.0]], [0, 2])]
        for values, indices in batches:
            step(tf.constant(values), tf.constant(indices))
        values = np.concatenate([values for values, _ in batches]) / np.float32(2)
        together = rows(
            values.astype(np.float32), batches[0][1] + batches[1][1], [4, 1]
        )
        together = together if sparse else tf.convert_to_tensor(together)
        large.apply_gradients([(together, v)])
    apart = [np.abs(w.numpy() - v.numpy()).max()]
    apart += [
        np.abs(optimizer.get_slot(w, s).numpy() - large.get_slot(v, s).numpy()).max()
        for s in large.get_slot_names()
    ]
    # The same gradient, exact; XLA may fuse what is around it: a few roundings a step.
    assert max(apart) <= (0 if mode != "xla" else 2 * 8 * 2.0**-23 * 64)
    assert optimizer.iterations.numpy() == large.iterations.numpy() == 2


@pytest.mark.parametrize("mode", ["eager", "function"])
def test_a_gradient_that_stays_out_is_refused(mode):
    w, v, one = tf.Variable(1.0), tf.Variable(1.0), tf.constant(1.0)
    optimizer = tf_impl.GradientAccumulation("sgd")

    def both():
        optimizer.apply_gradients([(one, w), (one, v)])

    def one_alone():
        optimizer.apply_gradients([(one, w), (None, v)])

    if mode == "function":
        both, one_alone = tf.function(both), tf.function(one_alone)
    both()
    both()
    after = v.numpy()
    one_alone()
    one_alone()
    assert v.numpy() == after
    both()
    with pytest.raises((ValueError, tf.errors.OpError), match="has no gradient now"):
        one_alone()
    assert optimizer.micro_steps.numpy() == 1
    both()
    assert v.numpy() < after and optimizer.iterations.numpy() == 3


def test_a_micro_step_that_does_not_fit_is_refused_before_it_is_added():
    w, optimizer = tf.Variable([1.0, 2.0]), tf_impl.GradientAccumulation("sgd")
    with pytest.raises(ValueError, match="indices"):
        optimizer.apply_gradients([(rows([1.0], [2], [2]), w)])
    assert optimizer.micro_steps.numpy() == 0
    assert optimizer.get_slot(w, "accumulated_gradient").numpy().tolist() == [0.0, 0.0]


@pytest.mark.parametrize("mode", ["eager", "function"])
def test_the_loss_scale_of_keras(mode):
    """A second source, but that Keras' own counts the steps it skips."""
    ours = tf_impl.LossScaleOptimizer(
        tf_impl.SGD(1.0), initial_scale=4, dynamic_growth_steps=2
    )
    theirs = keras.mixed_precision.LossScaleOptimizer(
        keras.optimizers.legacy.SGD(1.0), initial_scale=4, dynamic_growth_steps=2
    )
    variables = [tf.Variable([0.0, 1.0]), tf.Variable([0.0, 1.0])]

    def step(factor):
        for optimizer, w in zip((ours, theirs), variables, strict=True):
            with tf.GradientTape() as tape:
                loss = optimizer.get_scaled_loss(tf.reduce_sum(w * factor))
            [g] = optimizer.get_unscaled_gradients(tape.gradient(loss, [w]))
            optimizer.apply_gradients([(g, w)])

    step = step if mode == "eager" else tf.function(step)
    factors = (-1.0, -1.0, np.inf, -1.0, np.nan, np.nan, np.nan, -1.0)
    for factor in factors:
        step(tf.constant(factor))
        assert same([variables[0].numpy()], [variables[1].numpy()])
        assert ours.loss_scale.numpy() == theirs.loss_scale.numpy()
    assert (ours.iterations.numpy(), theirs.iterations.numpy()) == (4, len(factors))
    assert variables[0].numpy().tolist() == [4.0, 5.0]


@pytest.mark.parametrize(
    ("scaling", "slow", "fast"),
    [
        (tf_impl, 2.0, 2.0),  # fast 1, 2, 3: at the second step (1 + 3) / 2
        (keras.mixed_precision, 1.5, 2.5),  # counts the skipped one: (1 + 2) / 2, + 1
    ],
)
def test_slow_weights_begin_at_the_weights_though_a_step_is_skipped(
    scaling, slow, fast
):
    """Slots that are made within the condition began at zero in Addons."""
    w, inner = tf.Variable(1.0), tf_impl.Lookahead(tf_impl.SGD(1.0), sync_period=2)
    optimizer = scaling.LossScaleOptimizer(inner)

    @tf.function
    def step(g):
        optimizer.apply_gradients([(g, w)])

    for g in (np.inf, -1.0, -1.0):
        step(tf.constant(g))
    assert (inner.get_slot(w, "slow").numpy(), w.numpy()) == (slow, fast)


def test_minimize_scales_and_unscales():
    w, optimizer = tf.Variable(1.0), tf_impl.LossScaleOptimizer(tf_impl.SGD(1.0))
    losses = []

    @tf.custom_gradient
    def seen(x):
        return x, lambda dy: losses.append(float(dy)) or dy

    optimizer.minimize(lambda: seen(w * 0.5), [w])
    with tf.GradientTape() as tape:
        loss = seen(w * 0.5)
    optimizer.minimize(loss, [w], tape=tape)
    assert losses == [2.0**15, 2.0**15] and w.numpy() == 0.0


# Several optimizers.


def dense_layer(inputs=1):
    layer = keras.layers.Dense(1, use_bias=False)
    if inputs:
        layer.build([None, inputs])
    return layer


def test_variables_of_one_name_are_told_apart():
    """Addons updates both by both: -11 and -11."""
    first, second = dense_layer(), dense_layer()
    assert first.kernel.name == second.kernel.name
    start = [first.kernel.numpy(), second.kernel.numpy()]
    optimizer = tf_impl.MultiOptimizer(
        [(tf_impl.SGD(1.0), first), (tf_impl.SGD(16.0), [second])]
    )
    one = tf.ones([1, 1])
    optimizer.apply_gradients([(one, first.kernel), (one, second.kernel)])
    assert first.kernel.numpy() == start[0] - 1
    assert second.kernel.numpy() == start[1] - 16


def test_a_layer_that_comes_twice_is_updated_once_and_one_of_two_optimizers_refused():
    """Addons updates it as often as it comes."""
    layer = dense_layer()
    start = layer.kernel.numpy()
    twice = tf_impl.MultiOptimizer([(tf_impl.SGD(1.0), [layer, layer])])
    twice.apply_gradients([(tf.ones([1, 1]), layer.kernel)])
    assert layer.kernel.numpy() == start - 1
    both = tf_impl.MultiOptimizer([(tf_impl.SGD(), layer), (tf_impl.SGD(), layer)])
    with pytest.raises(ValueError, match="more than one optimizer is for"):
        both.apply_gradients([(tf.ones([1, 1]), layer.kernel)])


def test_a_layer_need_not_be_built():
    """Addons never trains one that is built later."""
    layer = dense_layer(inputs=0)
    optimizer = tf_impl.MultiOptimizer([(tf_impl.SGD(1.0), layer)])
    layer.build([None, 1])
    start = layer.kernel.numpy()
    optimizer.apply_gradients([(tf.ones([1, 1]), layer.kernel)])
    assert layer.kernel.numpy() == start - 1


def test_a_variable_that_no_optimizer_is_for_is_refused():
    """Addons leaves it frozen without a word."""
    layer, stranger = dense_layer(), tf.Variable(1.0, name="stranger")
    optimizer = tf_impl.MultiOptimizer([(tf_impl.SGD(), layer)])
    with pytest.raises(ValueError, match="no optimizer is for the variable stranger"):
        optimizer.apply_gradients([(tf.constant(1.0), stranger)])


def test_a_group_without_gradients_takes_no_step():
    """Keras 3 raises a ValueError."""
    a, b = some_variables()
    optimizer = tf_impl.MultiOptimizer([(tf_impl.Adam(), a), (tf_impl.SGD(1.0), b)])
    optimizer.apply_gradients([(None, a), (tf.ones([3, 1]), b)])
    assert a.numpy().tolist() == [1.0, 2.0] and b.numpy().ravel().tolist() == [0.0] * 3
    assert [each.iterations.numpy() for each in optimizer.optimizers] == [0, 1]
    assert optimizer.iterations.numpy() == 1


def test_a_config_that_names_cannot_tell_apart_is_refused_when_used():
    first, second = dense_layer(), dense_layer()
    optimizer = tf_impl.MultiOptimizer(
        [(tf_impl.SGD(), first), (tf_impl.Adam(), second)]
    )
    copy = tf_impl.MultiOptimizer.from_config(optimizer.get_config())
    one = tf.ones([1, 1])
    with pytest.raises(ValueError, match="more than one optimizer is for"):
        copy.apply_gradients([(one, first.kernel), (one, second.kernel)])


def test_the_learning_rate_of_several_optimizers_is_not_set_in_vain():
    optimizer = tf_impl.MultiOptimizer([(tf_impl.SGD(), ...)])
    with pytest.raises(AttributeError, match="each of its `optimizers`"):
        optimizer.learning_rate = 1.0


# What is refused.


@wrappers
def test_clipping_belongs_to_the_inner_optimizer(name):
    """Addons' MultiOptimizer takes it and ignores it."""
    argument = [("sgd", ...)] if name == "MultiOptimizer" else "sgd"
    with pytest.raises(TypeError, match="does not take clipnorm"):
        tf_impl.WRAPPERS[name](argument, clipnorm=1.0)


L, S, G = tf_impl.Lookahead, tf_impl.SWA, tf_impl.GradientAccumulation
M, E, X = (
    tf_impl.MovingAverage,
    tf_impl.ExponentialMovingAverage,
    tf_impl.LossScaleOptimizer,
)
Multi = tf_impl.MultiOptimizer


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda sgd: L(3), TypeError, "OptimizerV2"),
        (lambda sgd: L(OptimizerV2), TypeError, "OptimizerV2"),
        (lambda sgd: L(keras.optimizers.Adam()), TypeError, "OptimizerV2"),
        (lambda sgd: L(sgd, sync_period=0), ValueError, "sync_period"),
        (lambda sgd: L(sgd, sync_period=2.5), TypeError, "integer"),
        (lambda sgd: L(sgd, slow_step_size=1.5), ValueError, "slow_step_size"),
        (lambda sgd: L(L(sgd)), ValueError, "the order is"),
        (lambda sgd: L(S(sgd)), ValueError, "the order is"),
        (lambda sgd: L(Multi([(S(sgd), ...)])), ValueError, "the order is"),
        (lambda sgd: M(S(sgd)), ValueError, "the order is"),
        (lambda sgd: M(G(sgd)), ValueError, "the order is"),
        (lambda sgd: E(X(sgd)), ValueError, "the order is"),
        (
            lambda sgd: S(keras.mixed_precision.LossScaleOptimizer(sgd)),
            ValueError,
            "the order is",
        ),
        (lambda sgd: M(sgd, average_decay=-0.5), ValueError, "average_decay"),
        (lambda sgd: M(sgd, num_updates=-1), ValueError, "num_updates"),
        (lambda sgd: S(sgd, start_averaging=-1), ValueError, "start_averaging"),
        (lambda sgd: S(sgd, average_period=0), ValueError, "average_period"),
        (lambda sgd: E(sgd, ema_overwrite_frequency=0), ValueError, "frequency"),
        (lambda sgd: G(sgd, 0), ValueError, "gradient_accumulation_steps"),
        (lambda sgd: G(X(sgd)), ValueError, "the order is"),
        (lambda sgd: X(sgd, dynamic=False), ValueError, "initial_scale"),
        (lambda sgd: X(sgd, initial_scale=0), ValueError, "initial_scale"),
        (lambda sgd: X(sgd, False, 8, 3), ValueError, "dynamic_growth_steps"),
        (lambda sgd: Multi([]), ValueError, "at least one"),
        (lambda sgd: Multi(), ValueError, "optimizers_and_layers"),
        (lambda sgd: Multi([(sgd, []), (sgd, ...)]), ValueError, "comes twice"),
        (lambda sgd: Multi([("sgd", ...), ("sgd", ...)]), ValueError, "one optimizer"),
        (lambda sgd: Multi([(G(sgd), ...)]), ValueError, "the order is"),
    ],
)
def test_what_cannot_mean_anything_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make(tf_impl.SGD())


@wrappers
@pytest.mark.slow
def test_keras_trains_with_it(name, tmp_path):
    model = keras.Sequential([keras.layers.Dense(2, input_shape=(3,))])
    model.compile(long(name), "mse")
    x = np.arange(24.0, dtype=np.float32).reshape(8, 3)
    before = model.evaluate(x, x[:, :2], verbose=0)
    model.fit(x, x[:, :2], batch_size=2, epochs=3, verbose=0)
    assert model.evaluate(x, x[:, :2], verbose=0) < before
    assert model.optimizer.iterations.numpy() in (12, 6)
    file = str(tmp_path / "model.h5")
    model.save_weights(file)
    model.load_weights(file)
