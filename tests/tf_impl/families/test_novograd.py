"""NovoGrad: Addons' faults."""

from __future__ import annotations

import pytest

import tf_impl

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


def test_config_keeps_amsgrad_and_decay():
    """Addons leaves both out."""
    config = tf_impl.NovoGrad(amsgrad=True, decay=0.5).get_config()
    assert config["amsgrad"] is True
    assert config["decay"] == 0.5


def test_the_config_of_a_trained_optimizer_makes_one():
    """In Addons a TypeError: numpy.bool_ where a bool is due."""
    optimizer, w = tf_impl.NovoGrad(grad_averaging=True), tf.Variable([1.0])
    optimizer.apply_gradients([(tf.ones(1), w)])
    config = optimizer.get_config()
    assert tf_impl.NovoGrad.from_config(config).get_config() == config


def test_a_variable_that_is_first_seen_late_takes_a_first_step():
    """In Addons one of length 31.6 instead of 1."""
    optimizer = tf_impl.NovoGrad(1.0, epsilon=0.0)
    early, late = tf.Variable([5.0]), tf.Variable([5.0])
    optimizer.apply_gradients([(tf.constant([4.0]), early)])
    optimizer.apply_gradients([(tf.constant([4.0]), late)])
    assert late.numpy() == 4
