"""The averages of schedule-free Adam, which one evaluates."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

import tf_impl

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_averages(dtype):
    """Steps of 1/2 from 4 with beta_1 = 1/2: z is 3.5, 3; x is 3.5, 3.25. All these
    numbers are exact in every dtype, as is v = 4 with beta_2 = 0."""
    optimizer = tf_impl.ScheduleFreeAdamW(0.5, beta_1=0.5, beta_2=0.0, epsilon=0.0)
    w = tf.Variable([4.0], dtype=dtype)
    for average in (3.5, 3.25):
        optimizer.apply_gradients([(2 * tf.ones_like(w), w)])
        assert optimizer.averaged(w).dtype == dtype
        assert np.array_equal(optimizer.averaged(w), [average])
    assert np.array_equal(w, [(3 + 3.25) / 2])
