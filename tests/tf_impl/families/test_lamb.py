"""LAMB's lists of names, on one device and on two replicas; Addons' faults."""

from __future__ import annotations

import numpy as np
import pytest

import tf_impl

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
from tf_impl.legacy_keras import keras  # noqa: E402
from tf_impl.port import two_logical_cpus  # noqa: E402

OPTIONS = {"learning_rate": 0.25, "beta_1": 0.5, "beta_2": 0.75, "epsilon": 0.0}


def stepped(**options):
    """The variables called kernel and bias (both 2, 2) after a gradient of ones.

    Adam's direction is 1. With layer adaptation a step is 0.25 * 2 = 0.5 in any case.
    Without: 0.25, and 0.25 * (1 + 0.5 * 2) = 0.5 with decay 0.5.
    """
    w = [tf.Variable([2.0, 2.0], name=name) for name in ("kernel", "bias")]
    optimizer = tf_impl.LAMB(**OPTIONS, **options)
    optimizer.apply_gradients([(tf.ones(2), v) for v in w])
    return [v.numpy()[0] for v in w]


@pytest.mark.parametrize("pattern", ["bias", "bias$", "bias:0$", "^b"])
def test_a_name_is_excluded_from_both(pattern):
    came = stepped(weight_decay=0.5, exclude_from_weight_decay=[pattern])
    assert came == [1.5, 1.75]


def test_adaptation_has_a_list_of_its_own():
    excluded = {"exclude_from_layer_adaptation": ["bias"]}
    assert stepped(**excluded) == [1.5, 1.75]
    assert stepped(weight_decay=0.5, **excluded) == [1.5, 1.5]


def test_an_empty_list_excludes_none():
    """In Addons it stands for the list of weight decay."""
    came = stepped(exclude_from_weight_decay=["bias"], exclude_from_layer_adaptation=[])
    assert came == [1.5, 1.5]


def test_decay_may_follow_a_schedule():
    """Addons takes a number alone."""
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.5, 0.0])
    w, optimizer = (
        tf.Variable([2.0]),
        tf_impl.LAMB(**OPTIONS, weight_decay=schedule, layer_adaptation=False),
    )
    for due in (2 - 0.25 * 2, 1.5 - 0.25):
        optimizer.apply_gradients([(tf.ones(1), w)])
        assert w.numpy() == due


def test_replicas_agree_on_names():
    """In Addons the second replica of bias:0 is called bias/replica_1:0, and decays."""
    assert two_logical_cpus()
    strategy = tf.distribute.MirroredStrategy(
        ["CPU:0", "CPU:1"],
        cross_device_ops=tf.distribute.ReductionToOneDevice(),
    )
    with strategy.scope():
        bias = tf.Variable([2.0, 2.0], name="bias")
        optimizer = tf_impl.LAMB(
            **OPTIONS, weight_decay=0.5, exclude_from_weight_decay=["bias:0$"]
        )

    def step():
        optimizer.apply_gradients([(tf.identity([0.5, 0.5]), bias)])

    strategy.run(step)
    replicas = [
        replica.numpy() for replica in strategy.experimental_local_results(bias)
    ]
    assert np.array_equal(replicas, [[1.75, 1.75]] * 2)


def test_lists_are_in_the_config():
    options = {
        "weight_decay": 0.5,
        "exclude_from_weight_decay": ["bias"],
        "exclude_from_layer_adaptation": ["norm"],
        "decay_first": True,
    }
    config = tf_impl.LAMB(**options).get_config()
    assert config.items() >= options.items()
    assert tf_impl.LAMB.from_config(config).get_config() == config
