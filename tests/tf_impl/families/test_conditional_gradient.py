"""ConditionalGradient: Addons' faults; half precision."""

from __future__ import annotations

import numpy as np
import pytest

import tf_impl

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


def test_config_keeps_decay():
    """Addons leaves it out."""
    config = tf_impl.ConditionalGradient(0.5, decay=0.25, ord="nuclear").get_config()
    assert config["decay"] == 0.25
    assert config["ord"] == "nuclear"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_the_nuclear_norm_has_every_dtype_and_rank(dtype):
    """In Addons no half precision, and two axes at most."""
    w = tf.Variable(tf.ones((2, 1, 2), dtype))
    gradient = tf.constant([[[3.0, 0.0]], [[0.0, -4.0]]], dtype)
    optimizer = tf_impl.ConditionalGradient(0.5, lambda_=2.0, ord="nuclear")
    optimizer.apply_gradients([(gradient, w)])
    assert np.array_equal(w.numpy().astype(float), [[[0.5, 0.5]], [[0.5, 1.5]]])


def test_what_is_not_finite_is_not_swallowed():
    w = tf.Variable(tf.ones((2, 2)))
    optimizer = tf_impl.ConditionalGradient(0.5, ord="nuclear")
    optimizer.apply_gradients([(tf.constant([[1.0, np.nan], [0.0, 1.0]]), w)])
    assert np.all(np.isnan(w.numpy()))


def test_an_unknown_norm_is_refused():
    with pytest.raises(ValueError, match="`ord` must be 'fro' or 'nuclear', not 'l1'"):
        tf_impl.ConditionalGradient(ord="l1")
