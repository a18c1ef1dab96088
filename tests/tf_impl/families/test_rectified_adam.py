"""RectifiedAdam in place of Addons' class, without its faults."""

from __future__ import annotations

import pytest
import tensorflow as tf

import tf_impl

pytestmark = pytest.mark.slow


def steps(optimizer, dtype, count, start=0.0):
    w = tf.Variable([start], dtype=dtype)
    for _ in range(count):
        optimizer.apply_gradients([(tf.ones_like(w), w)])
    return w.numpy()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("before", [2, 5, 70000])
def test_half_precision_rectifies_at_the_same_steps(dtype, before):
    """Addons: float16 at step 3 in place of 6 and never past 65504, bfloat16 never."""
    results = []
    for each in (dtype, "float32"):
        optimizer = tf_impl.RectifiedAdam(0.5)
        optimizer.iterations.assign(before)
        results.append(steps(optimizer, each, 1))
    half, single = results
    assert half == tf.cast(single, dtype).numpy()
    assert half != 0


@pytest.mark.parametrize(
    ("name", "value", "due"),
    # With beta_1 = 0 the first step is g. A weight of 2 decays by 1/2 * 1/4 of itself;
    # four steps of warm-up begin with a quarter of the rate.
    [("weight_decay", 0.25, 2 - 0.5 - 0.5 * 0.5), ("total_steps", 4, 2 - 0.5 / 4)],
)
def test_what_was_zero_can_be_set_later(name, value, due):
    """Addons reads these when the optimizer is made, and never again."""
    optimizer = tf_impl.RectifiedAdam(0.5, beta_1=0.0, warmup_proportion=1.0)
    setattr(optimizer, name, value)
    assert steps(optimizer, "float64", 1, 2.0) == due


def test_a_weight_decay_may_be_a_schedule():
    schedule = tf_impl.legacy_keras.keras.optimizers.schedules.PiecewiseConstantDecay(
        [0], [0.25, 0.5]
    )
    optimizer = tf_impl.RectifiedAdam(0.5, beta_1=0.0, weight_decay=schedule)
    again = tf_impl.RectifiedAdam.from_config(optimizer.get_config())
    first = 2 - 0.5 * (1 + 0.25 * 2)
    second = first - 0.5 * (1 + 0.5 * first)
    for each in (optimizer, again):
        assert steps(each, "float64", 2, 2.0) == second


def test_config_and_weights_are_those_of_addons():
    config = {  # of TensorFlow Addons 0.23
        "name": "RectifiedAdam",
        "learning_rate": 0.001,
        "beta_1": 0.9,
        "beta_2": 0.999,
        "decay": 0.0,
        "weight_decay": 0.0,
        "sma_threshold": 5.0,
        "epsilon": 1e-7,
        "amsgrad": True,
        "total_steps": 10,
        "warmup_proportion": 0.1,
        "min_lr": 0.0,
    }
    optimizer = tf_impl.RectifiedAdam.from_config(config)
    config["exclude_from_weight_decay"] = None  # which Addons has not
    assert optimizer.get_config() == config
    w = tf.Variable([1.0, 2.0])
    optimizer.apply_gradients([(tf.constant([1.0, 3.0]), w)])
    assert tf_impl.RectifiedAdam.from_config(optimizer.get_config()).get_config() == (
        config
    )
    assert [value.tolist() for value in optimizer.get_weights()] == [
        1,
        *(optimizer.get_slot(w, name).numpy().tolist() for name in ["m", "v", "vhat"]),
    ]
