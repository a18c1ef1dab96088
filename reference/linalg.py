"""Functions of whole matrices, for rules that act on singular values.

They are generic: a number type that no plain line of NumPy carries through such a
function soundly registers its own (see ``conformance/matrices.py``).
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from .gradients import Array


@singledispatch
def leading_pair(matrix: Any) -> Any:
    """``u v^T`` of the largest singular value; zeros for a matrix of zeros.

    Args:
        matrix: two axes.

    Returns:
        an array of the same shape and dtype, NaN where an element of ``matrix`` is not
        finite. Worked out in float32 for float32, else in float64.
    """
    matrix = np.asarray(matrix)
    if not np.all(np.isfinite(matrix)):
        return np.full_like(matrix, np.nan)
    if not np.any(matrix):
        return np.zeros_like(matrix)
    narrow = matrix.dtype.itemsize <= np.dtype(np.float32).itemsize
    scaled = matrix / np.max(np.abs(matrix))
    u, _, vt = np.linalg.svd(
        scaled.astype(np.float32 if narrow else np.float64), full_matrices=False
    )
    return np.outer(u[:, 0], vt[0]).astype(matrix.dtype)


@singledispatch
def newton_schulz(matrix: Any, a: Any, b: Any, c: Any, steps: Any) -> Array:
    """Singular values driven towards 1 by an odd polynomial, the vectors kept.

    Jordan et al., *Muon: An optimizer for hidden layers in neural networks*, 2024. Each
    step is ``X <- a X + b (X X^T) X + c (X X^T)^2 X`` from ``X = matrix`` over its
    Frobenius norm (plus 1e-7), so that each singular value ``s`` becomes
    ``a s + b s^3 + c s^5``.

    Args:
        matrix: two axes.
        a, b, c: coefficients.
        steps: how many steps.
    """
    x = matrix / (np.sqrt(np.sum(matrix**2)) + 1e-7)
    wide = x.shape[0] <= x.shape[1]
    x = x if wide else x.T
    for _ in range(int(steps)):
        gram = x @ x.T
        x = a * x + (b * gram + c * (gram @ gram)) @ x
    return x if wide else x.T
