"""Decoupled weight decay: what Addons and keras-adamw get wrong, and the options.

Gradients are zero and rates zero unless the step itself is looked at, so that what
moves a weight is the decay; a half of 1 is 0.5 exactly.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tensorflow as tf

import reference
import tf_impl
from tf_impl.legacy_keras import keras
from tf_impl.schedules import CosineAnnealing

CLASSES = ["AdamW", "SGDW", "NadamW", "AdamaxW"]
WITHOUT = [
    name
    for name, cls in tf_impl.OPTIMIZERS.items()
    if "weight_decay" not in inspect.signature(cls.__init__).parameters
]
"""The optimizers that do not name a decay themselves."""


def ones(name, *shape):
    return tf.Variable(tf.ones(shape or (2,)), name=name)


def rest(optimizer, *variables, **kwargs):
    """A step of zero gradients; the first number of each variable after it."""
    optimizer.apply_gradients([(tf.zeros_like(v), v) for v in variables], **kwargs)
    return [float(np.ravel(v)[0]) for v in variables]


def mirrored():
    return tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
    )


def replicas(strategy, variable):
    return [v.numpy().tolist() for v in strategy.experimental_local_results(variable)]


# --- faults of Addons ---------------------------------------------------------------


def test_sgdw_without_momentum_decays_the_rows_of_a_sparse_gradient():
    """Addons: [1, 1, 1, 1], since its SGD passes by the hook that decays."""
    w = ones("w", 4)
    rows = tf.IndexedSlices(tf.zeros([3]), tf.constant([0, 2, 0]), tf.constant([4]))
    tf_impl.SGDW(0.5, learning_rate=0.0).apply_gradients([(rows, w)])
    assert w.numpy().tolist() == [0.5, 1, 0.5, 1]  # once, though row 0 comes twice


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("listed", [False, True])
def test_a_list_leaves_the_decay_of_others_on_under_a_strategy(compiled, listed):
    """Addons: with any list, no variable decays on two replicas."""
    strategy = mirrored()
    with strategy.scope():
        kernel, bias, scale = (ones(n) for n in ("dense/kernel", "bias", "scale"))
        excluded = {"exclude_from_weight_decay": ["bias:0$", scale]}
        optimizer = tf_impl.AdamW(0.5, 0.0, **({} if listed else excluded))

    def step():
        optimizer.apply_gradients(
            [(tf.identity([0.0, 0.0]), v) for v in (kernel, bias, scale)],
            decay_var_list=[kernel] if listed else None,
        )

    def run():
        strategy.run(step)

    (tf.function(run) if compiled else run)()
    assert replicas(strategy, kernel) == [[0.5, 0.5]] * 2
    assert replicas(strategy, bias) == replicas(strategy, scale) == [[1, 1]] * 2


def test_minimize_heeds_the_decay_list():
    """Addons: `minimize` calls `apply_gradients` without it, and b decays too."""
    a, b = ones("a"), ones("b")
    tf_impl.SGDW(0.5, 0.0).minimize(
        lambda: tf.reduce_sum(a) + tf.reduce_sum(b), [a, b], decay_var_list=[a]
    )
    assert a.numpy().tolist() == [0.5, 0.5]
    assert b.numpy().tolist() == [1, 1]


def test_minimize_takes_a_callable_list_beside_exclusions():
    """Addons: a TypeError."""
    a, b = ones("a"), ones("b")
    optimizer = tf_impl.SGDW(0.5, 0.0, exclude_from_weight_decay=["^b"])
    optimizer.minimize(lambda: tf.reduce_sum(a) + tf.reduce_sum(b), lambda: [a, b])
    assert (a[0].numpy(), b[0].numpy()) == (0.5, 1)


def test_an_empty_decay_list_means_none():
    """Addons: it means all."""
    assert rest(tf_impl.AdamW(0.5, 0.0), ones("a"), decay_var_list=[]) == [1]


def test_a_decay_list_is_for_one_step_and_outweighs_exclusions():
    a, b = ones("a"), ones("b")
    optimizer = tf_impl.AdamW(0.5, 0.0, exclude_from_weight_decay=["b"])
    assert rest(optimizer, a, b, decay_var_list=[b]) == [1, 0.5]
    assert rest(optimizer, a, b) == [0.5, 0.5]


def test_a_decay_list_without_decay_is_refused():
    with pytest.raises(ValueError, match="`decay_var_list` needs"):
        rest(tf_impl.Adam(), ones("a"), decay_var_list=[])


def test_wrapped_the_exclusions_remain():
    """Addons' wrappers skip the inner `apply_gradients`, which has the list."""
    a, b = ones("a"), ones("b")
    inner = tf_impl.SGDW(0.5, 0.0, exclude_from_weight_decay=["b"])
    assert rest(tf_impl.Lookahead(inner, sync_period=7), a, b) == [0.5, 1]


@pytest.mark.parametrize("name", ["LAMB", "RectifiedAdam", "AdaBelief"])
def test_no_optimizer_decays_twice(name):
    """Addons: extended LAMB decays in its own rule, and again before it."""
    with pytest.raises(TypeError, match=f"{name} has a weight decay of its own"):
        tf_impl.extend_with_decoupled_weight_decay(getattr(tf_impl, name))


def test_an_optimizer_of_another_package_is_refused():
    with pytest.raises(TypeError, match="an optimizer of tf_impl"):
        tf_impl.extend_with_decoupled_weight_decay(keras.optimizers.legacy.Adam)


# --- which variables ----------------------------------------------------------------


def test_exclusion_by_pattern_by_identity_and_by_neither():
    variables = [ones("layer/bias"), ones("layer/kernel"), ones("norm"), ones("norm")]
    optimizer = tf_impl.SGDW(
        0.5, 0.0, exclude_from_weight_decay=["bias$", variables[2]]
    )
    assert rest(optimizer, *variables) == [1, 0.5, 1, 0.5]
    again = tf_impl.SGDW.from_config(optimizer.get_config())
    assert again.exclude_from_weight_decay == ["bias$", "^norm:0$"]


def test_one_string_is_no_list():
    with pytest.raises(TypeError, match="must be a list"):
        tf_impl.SGDW(0.5, exclude_from_weight_decay="bias")


def test_a_weight_without_gradient_does_not_decay():
    a, b = ones("a"), ones("b")
    tf_impl.SGDW(0.5, 0.0).apply_gradients([(tf.zeros([2]), a), (None, b)])
    assert (a[0].numpy(), b[0].numpy()) == (0.5, 1)


# --- how much -----------------------------------------------------------------------


@pytest.mark.parametrize("name", CLASSES)
def test_the_learning_rate_multiplies_it_where_asked(name):
    """At rate 0 Adam and its like do not move: what is left is the decay."""
    cls = getattr(tf_impl, name)
    assert rest(cls(0.5, 0.0, decay_times_learning_rate=False), ones("w")) == [0.5]
    assert rest(cls(0.5, 0.0, decay_times_learning_rate=True), ones("w")) == [1]
    assert rest(cls(0.5, 0.5, decay_times_learning_rate=True), ones("w")) == [0.75]


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("sparse", [None, "every_row", "touched_rows"])
@pytest.mark.parametrize("decay_rows", ["every_row", "touched_rows"])
@pytest.mark.parametrize(
    "compiled", [False, pytest.param(True, marks=pytest.mark.slow)]
)
def test_a_sparse_gradient_decays_the_rows_asked_for(
    name, sparse, decay_rows, compiled
):
    w = ones("w", 4, 1)
    optimizer = getattr(tf_impl, name)(
        0.5,
        0.0,
        decay_rows=decay_rows,
        decay_times_learning_rate=False,
        sparse=sparse,
    )
    rows = tf.IndexedSlices(tf.ones([2, 1]), tf.constant([2, 0]), tf.constant([4, 1]))

    def step():
        optimizer.apply_gradients([(rows, w)])

    (tf.function(step, jit_compile=True) if compiled else step)()
    every = "every_row" in (sparse, decay_rows)
    other = 0.5 if every else 1
    assert w.numpy().ravel().tolist() == [0.5, other, 0.5, other]


def test_it_may_be_a_schedule_a_callable_or_set_later():
    w = ones("w")
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.5, 0.25])
    optimizer = tf_impl.SGDW(schedule, 0.0)
    assert [rest(optimizer, w), rest(optimizer, w)] == [[0.5], [0.375]]
    again = tf_impl.SGDW.from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()
    assert rest(tf_impl.SGDW(lambda: 0.5, 0.0), ones("w")) == [0.5]
    optimizer, w = tf_impl.SGDW(0.5, 0.0), ones("w")

    @tf.function
    def step():
        optimizer.apply_gradients([(tf.zeros([2]), w)])

    step()
    optimizer.weight_decay = 0.25
    step()
    assert w.numpy().tolist() == [0.375, 0.375]


@pytest.mark.parametrize("bad", [-0.5, float("nan")])
def test_a_negative_decay_is_refused(bad):
    with pytest.raises(ValueError, match="`weight_decay` must be at least 0"):
        tf_impl.SGDW(bad)


def test_unknown_rows_are_refused():
    with pytest.raises(ValueError, match="`decay_rows` must be"):
        tf_impl.SGDW(0.5, decay_rows="all")


def test_half_precision_rounds_once():
    w = tf.Variable([1.0], dtype=tf.bfloat16)
    decay, step = 2.0**-9, 2.0**-9  # each alone is a tie, which goes back to 1
    optimizer = tf_impl.SGDW(decay, 1.0)
    optimizer.apply_gradients([(tf.constant([step], tf.bfloat16), w)])
    assert w.numpy().astype(float).tolist() == [1 - 2.0**-8]


# --- any optimizer ------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", WITHOUT)
def test_any_optimizer_takes_it(name, sparse):
    """The step is that from weights that have decayed."""
    cls = getattr(tf_impl, name)
    options = reference.OPTIMIZERS[name].examples[0]
    gradient = tf.constant([[0.5, -1.0], [2.0, 0.25]])
    if sparse:
        gradient = tf.IndexedSlices(gradient, tf.constant([0, 1]), tf.constant([2, 2]))
    outcomes = []
    for start, decay in (
        ([[8.0, 4.0], [-2.0, 1.0]], 0.5),
        ([[4.0, 2.0], [-1, 0.5]], 0),
    ):
        w = tf.Variable(start)
        optimizer = cls(**options, weight_decay=decay, decay_times_learning_rate=False)
        optimizer.apply_gradients([(gradient, w)])
        outcomes.append([w.numpy(), *optimizer.get_weights()])
    for decayed, plain in zip(*outcomes, strict=True):
        np.testing.assert_array_equal(decayed, plain)


def test_an_extension_has_addons_constructor_and_config():
    cls = tf_impl.extend_with_decoupled_weight_decay(tf_impl.RMSprop)
    optimizer = cls(0.5, exclude_from_weight_decay=["bias"], learning_rate=0.0)
    assert rest(optimizer, ones("bias"), ones("w")) == [1, 0.5]
    config = optimizer.get_config()
    assert (config["weight_decay"], config["exclude_from_weight_decay"]) == (
        0.5,
        ["bias"],
    )
    assert cls.from_config(config).get_config() == config


CONFIGS = {  # of TensorFlow Addons 0.23
    "AdamW": {
        "name": "AdamW",
        "learning_rate": 0.001,
        "decay": 0.0,
        "beta_1": 0.9,
        "beta_2": 0.999,
        "epsilon": 1e-7,
        "amsgrad": False,
        "weight_decay": 0.0001,
        "exclude_from_weight_decay": None,
    },
    "SGDW": {
        "name": "SGDW",
        "learning_rate": 0.001,
        "decay": 0.0,
        "momentum": 0.0,
        "nesterov": False,
        "weight_decay": 0.0001,
        "exclude_from_weight_decay": None,
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_configs_are_those_of_addons(name):
    config = CONFIGS[name]
    optimizer = getattr(tf_impl, name).from_config(config)
    assert optimizer.get_config() == config
    assert getattr(tf_impl, name)(1e-4).get_config() == config


# --- keras-adamw --------------------------------------------------------------------


def moved(optimizer, *variables):
    """How far a gradient of 1 moves each variable."""
    before = [float(v[0]) for v in variables]
    optimizer.apply_gradients([(tf.ones_like(v), v) for v in variables])
    return [b - float(v[0]) for b, v in zip(before, variables, strict=True)]


def test_multipliers_are_each_variables_own():
    """keras-adamw's Keras file: each variable inherits all multipliers before it."""
    optimizer = tf_impl.SGD(
        0.5, learning_rate_multipliers={"^a": 0.5, "^b": 2.0, "^c": 0.0}
    )
    variables = [ones(name) for name in "abcd"]
    assert moved(optimizer, *variables) == [0.25, 1, 0, 0.5]
    again = tf_impl.SGD.from_config(optimizer.get_config())
    assert moved(again, *variables) == [0.25, 1, 0, 0.5]  # keras-adamw loses them


def test_one_name_in_another_is_no_match_by_chance():
    """keras-adamw: {'dense': 0.1, 'dense_1': 10} gives dense_1 the first."""
    variables = [ones("dense/kernel"), ones("dense_1/kernel")]
    vague = tf_impl.SGD(0.5, learning_rate_multipliers={"dense": 0.5, "dense_1": 2.0})
    with pytest.raises(ValueError, match="several factors for dense_1/kernel"):
        moved(vague, *variables)
    assert [v.numpy().tolist() for v in variables] == [[1, 1]] * 2
    exact = {"^dense/": 0.5, "^dense_1/": 2.0}
    optimizer = tf_impl.SGD(0.5, learning_rate_multipliers=exact)
    assert moved(optimizer, *variables) == [0.25, 1]


def test_multipliers_work_under_a_strategy_and_in_functions():
    strategy = mirrored()
    with strategy.scope():
        a, b = ones("a"), ones("b")
        optimizer = tf_impl.SGD(0.25, learning_rate_multipliers={"^b": 2.0})

    def step():  # each replica adds a gradient of 1
        optimizer.apply_gradients([(tf.ones([2]), a), (tf.ones([2]), b)])

    tf.function(lambda: strategy.run(step))()
    assert replicas(strategy, a) == [[0.5, 0.5]] * 2
    assert replicas(strategy, b) == [[0, 0]] * 2


def test_a_multiplier_times_the_decay_where_the_learning_rate_is():
    multipliers = {"learning_rate_multipliers": {"^w": 0.5}}
    for times, due in ((False, 0.5), (True, 0.875)):
        optimizer = tf_impl.AdamW(
            0.5, 0.5, decay_times_learning_rate=times, **multipliers
        )
        assert rest(optimizer, ones("w")) == [due]


@pytest.mark.parametrize("name", CLASSES)
def test_one_schedule_anneals_the_step_and_the_decay(name):
    """Also Nadam's, which takes no schedule for the learning rate."""
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([0], [1.0, 0.0])
    optimizer = getattr(tf_impl, name)(0.5, 0.5, schedule_multiplier=schedule)
    w = ones("w")
    assert moved(optimizer, w)[0] > 0
    assert moved(optimizer, w) == [0]
    again = type(optimizer).from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()


def test_annealing_and_its_restart_are_those_of_keras_adamw():
    """Measured there for 4 iterations: 1, 0.75, 0.25, 0, and again."""
    optimizer = tf_impl.SGD(1.0, schedule_multiplier=CosineAnnealing(4))
    w = ones("w")
    # Two roundings of a cosine and three of sums in float64, one of the step and one of
    # the weight, which is at most 2, in float32.
    allowed = 2 * (2.0**-24 + 2.0**-24) + 5 * 2.0**-53
    for due in (1, 0.75, 0.25, 0, 1, 0.75):
        assert abs(moved(optimizer, w)[0] - due) <= 2 * allowed
    again = tf_impl.SGD.from_config(optimizer.get_config())
    assert again.get_config() == optimizer.get_config()
    ours = reference.schedules.CosineAnnealing(7, 0.25, 0.75)
    theirs = CosineAnnealing(7, 0.25, 0.75)
    for step in range(20):
        # pi and a product, a cosine, and sums of at most 1
        assert abs(ours(step) - float(theirs(step))) <= 2 * (np.pi + 4) * 2.0**-53
    for bad in ((1,), (4, -1.0), (4, 0.0, -1.0)):
        with pytest.raises(ValueError, match="must be"):
            CosineAnnealing(*bad)


def test_the_multiplier_of_the_paper_counts_once():
    for times, due in ((False, 0.75), (True, 0.875)):
        optimizer = tf_impl.AdamW(
            0.5, 0.5, decay_times_learning_rate=times, schedule_multiplier=0.5
        )
        assert rest(optimizer, ones("w")) == [due]


def test_nadamw_is_nadam_after_the_decay():
    """keras-adamw's dense step has mu_t for mu_{t+1} and epsilon under the root: with a
    gradient of 1e-6 it is 287 times shorter than its own sparse one."""
    steps = []
    for optimizer in (tf_impl.NadamW(0.5, 0.1), tf_impl.Nadam(0.1)):
        w = tf.Variable([0.0])
        optimizer.apply_gradients([(tf.constant([1e-6]), w)])
        steps.append(w.numpy())
    assert np.array_equal(*steps)
    table = tf.Variable([[0.0], [0.0]])
    rows = tf.IndexedSlices(
        tf.constant([[1e-6]]), tf.constant([1]), tf.constant([2, 1])
    )
    tf_impl.NadamW(0.5, 0.1).apply_gradients([(rows, table)])
    assert np.array_equal(table[1], steps[0])


@pytest.mark.parametrize("momentum", [0.0, 0.5])
def test_sgdw_steps_on_rows(momentum):
    """keras-adamw: a crash, or one row's step on all of them."""
    table = ones("w", 4, 1)
    rows = tf.IndexedSlices(tf.ones([1, 1]), tf.constant([2]), tf.constant([4, 1]))
    tf_impl.SGDW(0.5, 0.25, momentum).apply_gradients([(rows, table)])
    assert table.numpy().ravel().tolist() == [1, 1, 0.25, 1]


@pytest.mark.parametrize("package", [tf_impl, reference.weight_decay])
def test_normalised_decay_counts_the_batch(package):
    """keras-adamw: sqrt(1 / steps); the paper: sqrt(batch / (samples * epochs))."""
    decay = package.normalized_weight_decay(0.5, batch_size=64, samples=256, epochs=4)
    assert decay == 0.5 / np.sqrt(16)
    for bad in ((-1, 1, 1, 1), (1, 0, 1, 1), (1, 1, 0, 1), (1, 1, 1, 0)):
        with pytest.raises(ValueError, match="must"):
            package.normalized_weight_decay(*bad)
