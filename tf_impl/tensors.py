"""Dtypes, and the order of operations: what all of `tf_impl` builds on."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import tensorflow as tf
from tensorflow.python.ops import control_flow_util

Tensor = Any  # tf.Tensor, or anything that TensorFlow's operators take as one

FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)


def compute_dtype(dtype: tf.DType) -> tf.DType:
    """Return the dtype of the arithmetic for weights of `dtype`: float32 at least."""
    return tf.float64 if dtype == tf.float64 else tf.float32


def cast(value: Any, dtype: tf.DType) -> Tensor:
    """Return a tensor of `dtype`. `tf.cast` takes Python numbers through float32."""
    if tf.is_tensor(value):
        return tf.cast(value, dtype)
    return tf.constant(value, dtype)


def after(*updates: Any) -> AbstractContextManager[Any]:
    """Return a context whose operations run after the updates. Eager ones do anyway.

    `tf.control_dependencies` in a function ignores what is not an operation or tensor;
    what an update returns may be a list of them.
    """
    if tf.executing_eagerly():
        return nullcontext()
    return tf.control_dependencies([tf.group(*updates)])


def compiling() -> bool:
    """Return whether XLA is to compile what is being traced."""
    graph = tf.compat.v1.get_default_graph()
    return control_flow_util.GraphOrParentsInXlaContext(graph)


def container(var: Any) -> Any:
    """Return the variable of which `var` is one replica's, or else itself."""
    if isinstance(var, tf.distribute.DistributedValues):
        return var
    for part in (var, getattr(var, "handle", None)):
        of_replicas = getattr(part, "_distributed_container", None)
        if of_replicas is not None:
            return of_replicas() or var
    return var
