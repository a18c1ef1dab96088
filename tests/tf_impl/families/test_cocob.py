"""COCOB in place of Addons' class, without its faults."""

from __future__ import annotations

import pytest
import tensorflow as tf

import tf_impl

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_no_gradient_moves_nothing(dtype):
    """Addons: NaN in float16."""
    w = tf.Variable([1.0, 1.0], dtype=dtype)
    optimizer = tf_impl.COCOB()
    for _ in range(3):
        optimizer.apply_gradients([(tf.constant([2.0, 0.0], dtype), w)])
    assert w.numpy()[0] < 1
    assert w.numpy()[1] == 1


def test_config_serves_after_training():
    """Addons: its own default alpha, an int, is refused when it comes back."""
    optimizer = tf_impl.COCOB()
    optimizer.apply_gradients([(tf.ones(2), tf.Variable(tf.ones(2)))])
    config = optimizer.get_config()
    assert config["alpha"] == 100
    assert tf_impl.COCOB.from_config(config).get_config() == config
    addons = {"name": "COCOB", "alpha": 100}
    assert tf_impl.COCOB.from_config(addons).get_config() == config


def test_callbacks_can_set_the_learning_rate():
    """Addons: there is none to set."""
    optimizer = tf_impl.COCOB(alpha=4.0)
    optimizer.learning_rate = 0.5
    w = tf.Variable(1.0)
    optimizer.apply_gradients([(tf.constant(3.0), w)])
    assert w.numpy() == 1 - 0.5 / 4


def test_alpha_below_one_is_refused():
    with pytest.raises(ValueError, match="`alpha` must be at least 1"):
        tf_impl.COCOB(alpha=0.5)
