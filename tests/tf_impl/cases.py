"""What the tests of `tf_impl` have in common: the cases, and how they are driven."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import tensorflow as tf

import reference
import tf_impl
from tf_impl.legacy_keras import keras

# Options that select another rule; of other classes, the examples of `reference`.
OPTIONS = {
    "SGD": [{}, {"momentum": 0.9}, {"momentum": 0.9, "nesterov": True}],
    "RMSprop": [
        {},
        {"centered": True},
        {"momentum": 0.9},
        {"momentum": 0.9, "centered": True},
        {"epsilon_inside": True},
        {"epsilon_inside": True, "centered": True},
        {"momentum": 0.9, "epsilon_inside": False},
        {"momentum": 0.9, "rate_inside": False},
        {
            "momentum": 0.9,
            "epsilon_inside": False,
            "rate_inside": False,
            "centered": True,
        },
    ],
    "Adam": [{}, {"amsgrad": True}],
    "Ftrl": [
        {},
        {
            "l1_regularization_strength": 0.01,
            "l2_regularization_strength": 0.02,
            "l2_shrinkage_regularization_strength": 0.03,
            "beta": 0.1,
            "learning_rate_power": -0.7,
        },
    ],
}

KERAS = [
    name
    for name, cls in reference.OPTIMIZERS.items()
    if cls.home.startswith("tf.keras.optimizers.legacy.")
]
"""The optimizers that legacy Keras has; what comes beyond them is tested once in CI."""


def _marks(name):
    return () if name in KERAS else pytest.mark.slow


def _options(name):
    """The options of a class to test; the tests choose the learning rate."""
    for options in OPTIONS.get(name, reference.OPTIMIZERS[name].examples):
        yield {key: x for key, x in options.items() if key != "learning_rate"}


CASES = [
    pytest.param(name, options, id="-".join([name, *options]), marks=_marks(name))
    for name in tf_impl.OPTIMIZERS
    for options in _options(name)
]


def _keras_has(name, options):
    if name not in KERAS:
        return False
    class_ = getattr(keras.optimizers.legacy, name)
    return set(options) <= set(inspect.signature(class_.__init__).parameters)


KERAS_CASES = [case for case in CASES if _keras_has(*case.values)]
NAMES = [pytest.param(name, marks=_marks(name)) for name in tf_impl.OPTIMIZERS]
EPS = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
}
DTYPES = ["float16", "bfloat16", "float32", "float64"]

START = np.array([[1.0, -2.0], [0.5, 3.0], [-1.5, 0.25], [2.0, -0.75]])
LEARNING_RATE = 0.1

# Positive gradients: then no sum in a slot cancels, and the relative error of every
# slot, and so of every update, is bounded by the roundings on the way.
DENSE = [
    np.array([[0.5, 1.0], [2.0, 0.1], [0.7, 0.3], [1.5, 0.9]]),
    np.array([[1.0, 0.2], [0.4, 2.0], [0.6, 0.8], [0.3, 1.1]]),
    np.array([[0.8, 0.6], [1.2, 0.5], [0.9, 1.4], [0.2, 0.7]]),
]
ROWS = [[2, 0, 2], [3, 3, 1], [0, 2, 3]]


def keras_class(name):
    """Return the class of Keras that `tf_impl.<name>` stands in for."""
    return getattr(keras.optimizers.legacy, name)


def variable(dtype="float32", **kwargs):
    return tf.Variable(tf.cast(START, dtype), dtype=dtype, **kwargs)


def gradient(step, sparse, dtype="float32"):
    """Return the gradient of step 0, 1 or 2; the sparse ones have duplicates."""
    if not sparse:
        return tf.cast(DENSE[step], dtype)
    return slices(DENSE[step][:3], ROWS[step], dtype)


def slices(values, indices, dtype="float32"):
    return tf.IndexedSlices(
        tf.cast(values, dtype), tf.constant(indices, tf.int64), tf.constant([4, 2])
    )


def train(optimizer, w, sparse=False, mode="eager", steps=range(3)):
    """Take steps; return the weights and all the optimizer's state."""

    def step(grad):
        optimizer.apply_gradients([(grad, w)])

    if mode != "eager":
        step = tf.function(step, jit_compile=mode == "xla")
    for number in steps:
        step(gradient(number % 3, sparse, w.dtype))
    return state(optimizer, w)


def state(optimizer, w):
    return [w.numpy(), *optimizer.get_weights()]


def same(left, right):
    """Return whether two lists of arrays are equal, bit for bit."""
    return len(left) == len(right) and all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for a, b in zip(left, right, strict=True)
    )


def bound(optimizer, arrays, dtype="float32", steps=3, hypers="float64"):
    """Return how far two correct runs of a case may be apart, for each array.

    Twenty operations a step at most, each off by half an ulp in both runs, on values
    that do not cancel: `20 * steps * eps`, relative to the largest magnitude that has
    been in the array, which is that of the start for weights. A hyperparameter `b` that
    one run keeps in float32 is off by `eps / 2`, which is `eps / 2 / (1 - b)` of
    `1 - b`; that enters an average and its bias correction.
    """
    relative = 20 * steps * EPS[dtype]
    if hypers == "float32":
        config = optimizer.get_config()
        decays = [config[d] for d in ("beta_1", "beta_2", "rho") if d in config]
        relative += sum(EPS["float32"] / (1 - decay) for decay in decays)
    return [
        relative * max(np.abs(array.astype(np.float64)).max(), np.abs(START).max())
        for array in arrays
    ]


def distance(left, right):
    return [
        np.abs(a.astype(np.float64) - b.astype(np.float64)).max()
        for a, b in zip(left, right, strict=True)
    ]


def assert_close(optimizer, left, right, **kwargs):
    allowed = bound(optimizer, left, **kwargs)
    apart = distance(left, right)
    assert all(a <= b for a, b in zip(apart, allowed, strict=True)), (apart, allowed)
