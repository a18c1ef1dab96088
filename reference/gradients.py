"""Gradients: dense arrays, sparse rows, the sum of duplicates, and clipping.

A sparse gradient means the *sum* of the rows that share an index. Everything
downstream, clipping included, sees each index once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = Any
"""A NumPy array, or an array-like that implements ``__array_ufunc__``."""


@dataclass(frozen=True)
class IndexedSlices:
    """A sparse gradient: ``values[i]`` belongs to row ``indices[i]`` of the weights.

    Attributes:
        values: array of shape ``(k, *row_shape)``.
        indices: integer array of shape ``(k,)``; duplicates mean the sum.
        dense_shape: shape of the weights, where known.

    >>> slices = IndexedSlices(np.array([[1.0], [2.0], [4.0]]), np.array([2, 0, 2]))
    >>> slices.to_dense((3, 1)).ravel().tolist()
    [2.0, 0.0, 5.0]
    """

    values: Array
    indices: Array
    dense_shape: tuple[int, ...] | None = None

    def to_dense(self, shape: tuple[int, ...] | None = None) -> Array:
        """The dense gradient of ``shape`` (or ``dense_shape``), duplicates summed.

        Raises:
            ValueError: no shape is known, or the slices do not fit it.
        """
        shape = shape if shape is not None else self.dense_shape
        if shape is None:
            raise ValueError("to_dense needs a shape: dense_shape was not given")
        check_slices(self, shape)
        unique = deduplicate(self)
        dense = zeros_like_rows(unique.values, shape)
        dense[unique.indices] = unique.values
        return dense


def check_slices(slices: IndexedSlices, shape: tuple[int, ...]) -> None:
    """Refuse slices that do not fit weights of ``shape``, saying why.

    Raises:
        ValueError: scalar weights; indices not one-dimensional, negative or out of
            range; values with another length than the indices or another row shape.
        TypeError: indices that are not integers.
    """
    if len(shape) == 0:
        raise ValueError(
            "a scalar weight cannot take a sparse gradient: it has no rows"
        )
    indices, values = np.asarray(slices.indices), slices.values
    if not np.issubdtype(indices.dtype, np.integer):
        raise TypeError(f"indices must be integers, got dtype {indices.dtype}")
    if indices.ndim != 1:
        raise ValueError(f"indices must be one-dimensional, got shape {indices.shape}")
    if len(np.shape(values)) == 0 or np.shape(values)[0] != indices.size:
        raise ValueError(
            f"values must have one row per index: got values of shape "
            f"{np.shape(values)} for {indices.size} indices"
        )
    if tuple(np.shape(values)[1:]) != tuple(shape[1:]):
        raise ValueError(
            f"each row of values must have shape {tuple(shape[1:])} as the weights' "
            f"rows have, got {tuple(np.shape(values)[1:])}"
        )
    bad = indices[(indices < 0) | (indices >= shape[0])]
    if bad.size:
        raise ValueError(
            f"indices must lie in [0, {shape[0]}), got {bad[:5].tolist()}"
            + (" and more" if bad.size > 5 else "")
        )
    if slices.dense_shape is not None and tuple(slices.dense_shape) != tuple(shape):
        raise ValueError(
            f"dense_shape {tuple(slices.dense_shape)} is not the weights' "
            f"{tuple(shape)}"
        )


def deduplicate(slices: IndexedSlices) -> IndexedSlices:
    """Sum the rows that share an index; indices come back sorted and unique.

    Sums of float16 to float64 are formed in float64 and rounded once to the dtype of
    the values.

    >>> slices = IndexedSlices(np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]))
    >>> unique = deduplicate(slices)
    >>> unique.indices.tolist(), unique.values.tolist()
    ([0, 2], [2.0, 5.0])
    """
    values = slices.values
    rows, position = np.unique(np.asarray(slices.indices), return_inverse=True)
    if hasattr(values, "sum_rows"):
        summed = values.sum_rows(position, rows.size)
    else:
        values = np.asarray(values)
        wide = computing_dtype(values.dtype)
        summed = np.zeros((rows.size, *values.shape[1:]), wide)
        np.add.at(summed, position.ravel(), values.astype(wide, copy=False))
        summed = rounded_once(summed, values.dtype)
    return IndexedSlices(summed, rows, slices.dense_shape)


def computing_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype in which the reference computes on ``dtype``: float64, or wider."""
    if dtype == np.dtype(object) or dtype == np.dtype(np.longdouble):
        return dtype
    return np.dtype(np.float64)


def rounded_once(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """``array`` in ``dtype``, each element the nearest that there is.

    ml_dtypes rounds float64 to float32 on its way to bfloat16, which moves what lies
    beside the middle of two numbers onto the middle. A float32 that is made odd where
    it is not exact stays on its side (Boldo, Melquiond, *Emulation of a FMA and
    Correctly Rounded Sums: Proved Algorithms Using Rounding to Odd*, IEEE Transactions
    on Computers 57, 2008).
    """
    if array.dtype == dtype:
        return array
    if dtype.name == "bfloat16" and array.dtype in (np.float64, np.longdouble):
        nearest = array.astype(np.float32)
        too_far = np.abs(nearest) > np.abs(array)
        toward_zero = np.where(too_far, np.nextafter(nearest, np.float32(0)), nearest)
        inexact = toward_zero != array
        array = (toward_zero.view(np.uint32) | inexact).view(np.float32)
    return array.astype(dtype, copy=False)


def zeros_like_rows(values: Array, shape: tuple[int, ...]) -> Array:
    """Zeros of ``shape``, of the kind of number that ``values`` holds."""
    if hasattr(values, "sum_rows"):
        return values.zeros(shape)
    return np.zeros(shape, np.asarray(values).dtype)


def clip_by_value(g: Array, clipvalue: Array) -> Array:
    """Each element limited to ``[-clipvalue, clipvalue]``."""
    return np.maximum(np.minimum(g, clipvalue), -clipvalue)


def clip_by_norm(g: Array, clipnorm: Array) -> Array:
    """``g`` scaled down to Euclidean norm ``clipnorm`` where its norm is larger."""
    norm = np.sqrt(np.sum(g * g))
    return g * (clipnorm / np.maximum(norm, clipnorm))


def clip_by_global_norm(gradients: list[Array], global_clipnorm: Array) -> list[Array]:
    """All gradients scaled by one factor, to a joint norm of at most this."""
    norm = np.sqrt(sum(np.sum(g * g) for g in gradients))
    factor = global_clipnorm / np.maximum(norm, global_clipnorm)
    return [g * factor for g in gradients]
