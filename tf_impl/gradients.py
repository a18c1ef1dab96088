"""Gradients of one step: refused where they do not fit, summed, clipped.

In `grads_and_vars` each gradient, a tensor or `tf.IndexedSlices`, is paired with its
variable.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tf_impl.tensors import FLOATS, Tensor, cast, compiling, compute_dtype

# Refusing what does not fit.


def validated(
    grads_and_vars: Sequence[tuple[Any, tf.Variable]],
) -> list[tuple[Any, tf.Variable]]:
    """Return the gradients, none of which can be had unless all fit their variables.

    Raises:
        ValueError: what is known now does not fit. What only a running graph can see
            raises `InvalidArgumentError` there, before any variable is changed.
    """
    grads_and_vars = [(_as_tensors(grad), var) for grad, var in grads_and_vars]
    checks: list[Any] = []
    for grad, var in grads_and_vars:
        if var.dtype.base_dtype not in FLOATS:
            raise ValueError(
                f"variable {var.name} must be one of "
                f"{', '.join(d.name for d in FLOATS)}, not {var.dtype.name}"
            )
        if isinstance(grad, tf.IndexedSlices):
            checks += _check_sparse(grad, var)
        else:
            checks += _check_shape("gradient", grad, var.shape, var)
        if grad.dtype != var.dtype.base_dtype:
            raise ValueError(
                f"gradient of {var.name} must be {var.dtype.name} as the variable "
                f"is, not {grad.dtype.name}"
            )
    if not checks:
        return list(grads_and_vars)
    with tf.control_dependencies(checks):
        return [(_map_values(tf.identity, grad), var) for grad, var in grads_and_vars]


def _as_tensors(grad: Any) -> Any:
    if not isinstance(grad, tf.IndexedSlices):
        return tf.convert_to_tensor(grad)
    values, indices = (tf.convert_to_tensor(x) for x in (grad.values, grad.indices))
    return tf.IndexedSlices(values, indices, grad.dense_shape)


def _check_sparse(grad: tf.IndexedSlices, var: tf.Variable) -> list[Any]:
    values, indices = grad.values, grad.indices
    if var.shape.rank == 0:
        raise ValueError(
            f"{var.name} is a scalar: it has no rows for a sparse gradient"
        )
    if indices.dtype not in (tf.int32, tf.int64):
        raise ValueError(
            f"indices for {var.name} must be int32 or int64, not {indices.dtype.name}"
        )
    if indices.shape.rank not in (None, 1):
        raise ValueError(
            f"indices for {var.name} must have one dimension, "
            f"not the shape {tuple(indices.shape)}"
        )
    expected = tf.TensorShape([indices.shape[0] if indices.shape.rank else None])
    expected = expected.concatenate(var.shape[1:])
    checks = _check_shape("values of the sparse gradient", values, expected, var)
    if tf.executing_eagerly():
        return checks + _check_rows(values, indices, var.shape[0], var.name)
    return [*checks, _rows_checked(values, indices, var.shape[0], var.name)]


def _check_rows(values: Tensor, indices: Tensor, rows: int, name: str) -> list[Any]:
    checks = _check(
        tf.equal(tf.shape(values)[0], tf.size(indices)),
        f"sparse gradient of {name} must have a row of values for each index",
        [tf.shape(values), tf.shape(indices)],
    )
    return checks + _check(
        tf.reduce_all((indices >= 0) & (indices < rows)),
        f"indices for {name} must be in 0 ... {rows - 1}",
        [indices],
    )


@functools.partial(tf.function, autograph=False)
def _rows_checked(values: Tensor, indices: Tensor, rows: int, name: str) -> Tensor:
    """In a graph: its own function, whose constants do not crowd the caller's graph."""
    with tf.control_dependencies(_check_rows(values, indices, rows, name)):
        return tf.constant(0)


def _check_shape(
    what: str, tensor: Tensor, expected: tf.TensorShape, var: tf.Variable
) -> list[Any]:
    if not tensor.shape.is_compatible_with(expected):
        raise ValueError(
            f"{what} of {var.name} must have the shape {tuple(expected)}, "
            f"not {tuple(tensor.shape)}"
        )
    if tensor.shape.is_fully_defined():
        return []
    return [tf.ensure_shape(tensor, expected)]


def _check(condition: Tensor, message: str, data: Sequence[Tensor]) -> list[Any]:
    if not tf.executing_eagerly():
        return [tf.debugging.Assert(condition, [message, "not", *data])]
    if not condition:
        shown = (np.array2string(part.numpy(), threshold=20) for part in data)
        raise ValueError(f"{message}, not {' and '.join(shown)}")
    return []


# Summing and clipping.


def deduplicate(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums of the rows that share an index, and the indices, each once.

    Args:
        values: rows, shape `(n, ...)`, any float dtype.
        indices: row numbers, shape `(n,)`, int32 or int64.

    Returns:
        Sums in float32, or float64 for float64 values, and indices, in some order.
    """
    values = tf.cast(values, compute_dtype(values.dtype))
    if not compiling():
        unique, position = tf.unique(indices)
        return tf.math.unsorted_segment_sum(values, position, tf.size(unique)), unique
    # XLA wants shapes that do not depend on the indices, and drops rows that do not
    # exist: there all results have `n` rows, the last ones zero with the largest index.
    order = tf.argsort(indices)
    indices = tf.gather(indices, order)
    is_new = tf.cast(indices[1:] != indices[:-1], tf.int32)
    position = tf.concat([tf.zeros_like(indices[:1], tf.int32), tf.cumsum(is_new)], 0)
    count = tf.size(indices)
    return (
        tf.math.unsorted_segment_sum(tf.gather(values, order), position, count),
        tf.math.unsorted_segment_min(indices, position, count),
    )


def _deduplicated(
    grads_and_vars: Sequence[tuple[Any, tf.Variable]],
) -> list[tuple[Any, tf.Variable]]:
    def summed(grad: Any) -> Any:
        if not isinstance(grad, tf.IndexedSlices):
            return grad
        values, indices = deduplicate(grad.values, grad.indices)
        return tf.IndexedSlices(values, indices, grad.dense_shape)

    return [(summed(grad), var) for grad, var in grads_and_vars]


def clipped(
    grads_and_vars: Sequence[tuple[Any, tf.Variable]],
    clipvalue: float | None,
    clipnorm: float | None,
    global_clipnorm: float | None,
) -> list[tuple[Any, tf.Variable]]:
    """Return the gradients, clipped by each limit that is given, in this order.

    Rows of sparse gradients are summed first: to clip addends does not limit their sum.
    """
    if clipvalue is not None:
        grads_and_vars = [
            (_map_values(lambda values: _clip_by_value(values, clipvalue), grad), var)
            for grad, var in _deduplicated(grads_and_vars)
        ]
    if clipnorm is not None:
        grads_and_vars = [
            (_scaled(grad, _clip_factor([grad], clipnorm)), var)
            for grad, var in _deduplicated(grads_and_vars)
        ]
    if global_clipnorm is not None:
        grads_and_vars = _deduplicated(grads_and_vars)
        factor = _clip_factor([grad for grad, _ in grads_and_vars], global_clipnorm)
        grads_and_vars = [(_scaled(grad, factor), var) for grad, var in grads_and_vars]
    return list(grads_and_vars)


def in_dtype_of_variables(
    grads_and_vars: Sequence[tuple[Any, tf.Variable]],
) -> list[tuple[Any, tf.Variable]]:
    """Return the gradients in the dtypes of their variables, summed before rounding."""
    return [
        (_map_values(functools.partial(tf.cast, dtype=var.dtype), grad), var)
        for grad, var in _deduplicated(grads_and_vars)
    ]


def _clip_by_value(values: Tensor, limit: float) -> Tensor:
    limit = cast(limit, values.dtype)
    return tf.clip_by_value(values, -limit, limit)


def _clip_factor(grads: Sequence[Any], limit: float) -> Tensor:
    """Return min(1, limit / norm of all gradients together), a float64 scalar.

    Each gradient is divided by its largest magnitude before squaring, so that no
    finite gradient has an infinite or a vanishing norm.
    """
    squares, scales = [], []
    for grad in grads:
        values = _values(grad)
        largest = tf.reduce_max(tf.abs(values))
        # Neither zero nor infinity can divide; the maximum of no values is below zero.
        can_divide = (largest > 0) & (largest < np.inf)
        scale = tf.where(can_divide, largest, tf.ones_like(largest))
        squares.append(tf.cast(tf.reduce_sum(tf.square(values / scale)), tf.float64))
        scales.append(tf.cast(scale, tf.float64))
    top = tf.reduce_max(tf.stack(scales))
    total = tf.add_n(
        [
            square * tf.square(scale / top)
            for square, scale in zip(squares, scales, strict=True)
        ]
    )
    norm = top * tf.sqrt(total)
    limit = cast(limit, tf.float64)
    return limit / tf.maximum(norm, limit)


def _scaled(grad: Any, factor: Tensor) -> Any:
    def scale(values: Tensor) -> Tensor:
        dtype = compute_dtype(values.dtype)
        return tf.cast(values, dtype) * tf.cast(factor, dtype)

    return _map_values(scale, grad)


def _values(grad: Any) -> Tensor:
    values = grad.values if isinstance(grad, tf.IndexedSlices) else grad
    return tf.cast(values, compute_dtype(values.dtype))


def _map_values(function: Callable[[Tensor], Tensor], grad: Any) -> Any:
    if isinstance(grad, tf.IndexedSlices):
        values = function(grad.values)
        return tf.IndexedSlices(values, grad.indices, grad.dense_shape)
    return function(grad)
