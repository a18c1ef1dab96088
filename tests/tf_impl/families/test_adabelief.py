"""AdaBelief in place of Addons' class, without its faults."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tf_impl

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("rectify", [True, False])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_gives_numbers(rectify, dtype):
    """Addons, in float16: NaN for every entry from step 5 on; without rectification at
    once where a gradient is zero. Ours moves as in float32, and zeros stay."""
    optimizer = tf_impl.AdaBelief(0.5, rectify=rectify)
    w = tf.Variable([1.0, 1.0], dtype=dtype)
    for step in range(8):
        before = w.numpy()
        optimizer.apply_gradients([(tf.constant([1.0 + step, 0.0], dtype), w)])
        assert w.numpy()[0] < before[0]
        assert w.numpy()[1] == 1
    assert np.all(np.isfinite(w.numpy().astype(np.float32)))


def test_config_is_that_of_addons():
    config = {  # of TensorFlow Addons 0.23
        "name": "AdaBelief",
        "learning_rate": 0.001,
        "beta_1": 0.9,
        "beta_2": 0.999,
        "decay": 0.0,
        "weight_decay": 0.0,
        "sma_threshold": 5.0,
        "epsilon": 1e-14,
        "amsgrad": False,
        "rectify": False,
        "total_steps": 0,
        "warmup_proportion": 0.1,
        "min_lr": 0.0,
    }
    optimizer = tf_impl.AdaBelief.from_config(config)
    config["exclude_from_weight_decay"] = None  # which Addons has not
    assert optimizer.get_config() == config
