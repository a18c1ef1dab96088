"""Steps of `tf_impl` beside those of tf_keras' legacy optimizers."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import tensorflow as tf

import tf_impl
from benchmarks.cases import CONFIGURATIONS, KERAS_3, Measurement
from benchmarks.timing import Action, alternate, compare, milliseconds
from tf_impl.legacy_keras import keras

DENSE_ELEMENTS = 10_000_000
TABLE_ROWS, SMALL_TABLE_ROWS, ROW_LENGTH = 1_000_000, 10_000, 64
INDICES, DISTINCT_ROWS = 10_000, 1_600
SMALL_VARIABLES = 100
MATRIX = (2_500, 4_000)
SQUARE = (1_000, 1_000)


def _ours(name: str) -> Any:
    cls, arguments = CONFIGURATIONS[name]
    return getattr(tf_impl, cls)(**arguments)


def _theirs(name: str) -> Any:
    cls, arguments = CONFIGURATIONS[name]
    return getattr(keras.optimizers.legacy, cls)(**arguments)


def _in_function(optimizer: Any, variables: list[tf.Variable]) -> Any:
    @tf.function
    def step(grads: list[Any]) -> None:
        optimizer.apply_gradients(zip(grads, variables))  # noqa: B905

    return step


def dense(name: str, seconds: float) -> Measurement:
    """Compare steps on one large vector, in a `tf.function`."""
    grad = tf.constant(_normal(DENSE_ELEMENTS))

    def action(optimizer: Any) -> Action:
        weights = tf.Variable(_normal(DENSE_ELEMENTS))
        step = _in_function(optimizer, [weights])
        return lambda: step([grad])

    return Measurement.of_times(
        compare(action(_ours(name)), action(_theirs(name)), 2 * seconds, at_least=15)
    )


def against_keras_3(name: str, seconds: float) -> Measurement:
    """Compare steps on one large matrix with those of Keras 3, in a `tf.function`."""
    import keras as keras_3  # not the one that TensorFlow holds

    if keras_3.backend.backend() != "tensorflow":
        raise RuntimeError("Keras 3 must run on TensorFlow here: KERAS_BACKEND")
    cls, arguments = KERAS_3[name]
    grad, start = tf.constant(_normal(*MATRIX)), _normal(*MATRIX)
    step = _in_function(getattr(tf_impl, cls)(**arguments), [tf.Variable(start)])
    theirs = getattr(keras_3.optimizers, name)()
    weights = keras_3.Variable(start)
    theirs.build([weights])
    rival = tf.function(lambda: theirs.apply([grad], [weights]))
    ours = functools.partial(step, [grad])
    return Measurement.of_times(compare(ours, rival, 2 * seconds, at_least=10))


def muon(seconds: float) -> Measurement:
    """Compare a step of Muon with the matrix products of its Newton-Schulz steps."""
    grad = tf.constant(_normal(*SQUARE))
    optimizer = tf_impl.Muon()
    step = _in_function(optimizer, [tf.Variable(_normal(*SQUARE))])

    @tf.function
    def products(x: tf.Tensor) -> tf.Tensor:
        x = x / tf.norm(x)
        for _ in range(int(optimizer.ns_steps)):
            gram = tf.matmul(x, x, transpose_b=True)
            x = tf.matmul(tf.matmul(gram, gram), x)
        return x

    ours, rival = functools.partial(step, [grad]), functools.partial(products, grad)
    return Measurement.of_times(compare(ours, rival, 2 * seconds, at_least=10))


def sparse(name: str, rival: str, seconds: float) -> Measurement:
    """Compare steps on some rows of a large table, in a `tf.function`."""
    return Measurement.of_times(
        compare(
            _table_action(_ours(name), TABLE_ROWS),
            _table_action(_theirs(rival), TABLE_ROWS),
            seconds,
        )
    )


def sparse_growth(name: str, seconds: float) -> Measurement:
    """Compare a step on a large table with the same step on a small one."""
    return Measurement.of_times(
        compare(
            _table_action(_ours(name), TABLE_ROWS),
            _table_action(_ours(name), SMALL_TABLE_ROWS),
            seconds,
        )
    )


def _table_action(optimizer: Any, rows: int) -> Action:
    rng = np.random.default_rng(1)
    distinct = rng.choice(rows, DISTINCT_ROWS, replace=False)
    indices = tf.constant(rng.choice(distinct, INDICES))
    grad = tf.IndexedSlices(
        tf.constant(_normal(INDICES, ROW_LENGTH)),
        indices,
        tf.constant([rows, ROW_LENGTH], tf.int64),
    )
    table = tf.Variable(tf.random.stateless_normal([rows, ROW_LENGTH], (1, 2)))
    step = _in_function(optimizer, [table])
    return lambda: step([grad])


def small(name: str, moment: str, seconds: float) -> Measurement:
    """Compare steps on many small variables of different shapes.

    Args:
        name: key of `CONFIGURATIONS`.
        moment: "first", a new optimizer's first step, tracing and creation of slots
            included; "later", a step of a traced function; "eager", a later eager step.
        seconds: to spend on repeats.
    """
    grads = [tf.constant(_normal(*shape)) for shape in _small_shapes()]

    def variables() -> list[tf.Variable]:
        return [tf.Variable(_normal(*shape)) for shape in _small_shapes()]

    def first(make: Any) -> float:
        weights = variables()
        return milliseconds(lambda: _in_function(make(name), weights)(grads))

    def eager(optimizer: Any) -> Action:
        weights = variables()
        return lambda: optimizer.apply_gradients(list(zip(grads, weights, strict=True)))

    def later(optimizer: Any) -> Action:
        return functools.partial(_in_function(optimizer, variables()), grads)

    if moment == "first":
        first(_theirs)  # what TensorFlow itself does once
        return Measurement.of_times(
            alternate(lambda: first(_ours), lambda: first(_theirs), seconds, 3)
        )
    action = eager if moment == "eager" else later
    return Measurement.of_times(
        compare(action(_ours(name)), action(_theirs(name)), seconds, at_least=20)
    )


def _small_shapes() -> list[tuple[int, ...]]:
    """Return the shapes of vectors, matrices and rank 3, of 1 to 10,000 elements."""
    return [
        [(n,), (n, 100), (3, n), (2, 3, n), (n, 7)][n % 5]
        for n in range(1, SMALL_VARIABLES + 1)
    ]


def _normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
