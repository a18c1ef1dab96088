"""Bounds on functions of whole matrices, in the Frobenius norm.

No element of such a function can be followed through its operations: a bound that
grows with absolute values of entries grows a hundredfold in each product. What is known
is how far the matrix as a whole may move; that is the bound of each of its elements.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..linalg import leading_pair, newton_schulz
from .rounding import Bounded, Rounding


def norm(values: Any) -> float:
    """The Frobenius norm."""
    return float(np.sqrt(np.sum(np.asarray(values) ** 2)))


def unit_roundoff(rounding: Rounding) -> float:
    """Half the distance from 1 to the next number of the format."""
    return 2.0**-rounding.format.precision


def _nowhere(matrix: Bounded) -> Bounded:
    """NaN, as whatever meets a matrix that is not finite."""
    value = np.full(matrix.shape, np.nan, matrix.value.dtype)
    return Bounded(value, np.inf, matrix.rounding, overflow=np.ones(matrix.shape, bool))


def _uncertain(matrix: Bounded) -> bool:
    return bool(np.any(matrix.overflow)) or not np.all(np.isfinite(matrix.value))


@leading_pair.register
def _(matrix: Bounded) -> Bounded:
    """Wedin's bound on singular vectors, from the gap below the largest singular value.

    An algorithm that is stable finds the exact vectors of ``A + E``. Bringing an m x n
    matrix (n the smaller) to bidiagonal form takes 2 n Householder reflections, each
    off by ``6 m u norm(A)`` (Higham 2002, lemma 19.2 and 19.3: an inner product of m
    terms, a scaling, a subtraction, forming the reflection); the iteration on the
    bidiagonal form, or Jacobi's on the matrix, is granted as much again: in all
    ``norm(E) <= 24 m n u norm(A)``. To this comes the error that ``A`` has already.
    Wedin 1972: ``sin(u)^2 + sin(v)^2 <= 2 norm(E)^2 / gap^2`` for the angles by which
    both vectors turn, where ``gap`` is what is left of the distance between the two
    largest singular values. Turned by an angle, a unit vector moves by ``root 2`` times
    its sine at most, so that ``u v^T`` moves by ``root 2 (sin(u) + sin(v))``, which is
    at most ``2 root(2) norm(E) / gap``. And never by more than 2.
    """
    if _uncertain(matrix):
        return _nowhere(matrix)
    value = leading_pair(matrix.value)
    inherited = norm(np.broadcast_to(matrix.bound, matrix.shape))
    # The oracle finds its vectors in float64.
    u = unit_roundoff(matrix.rounding) + 2.0**-53
    error = inherited + 24 * matrix.size * u * norm(matrix.value)
    singular = np.linalg.svd(matrix.value.astype(np.float64), compute_uv=False)
    first, second = (*singular, 0.0)[:2]
    gap = first - second - error
    if not np.any(matrix.value) and inherited == 0:
        return Bounded(value, 0.0, matrix.rounding)
    bound = min(2 * np.sqrt(2) * error / gap, 2.0) if gap > 0 else 2.0
    products = matrix.rounding.of(value, bound, "multiply")
    return Bounded(
        value,
        bound + products,
        matrix.rounding,
        branch=np.full(matrix.shape, gap <= 0) | matrix.branch,
    )


@newton_schulz.register
def _(matrix: Bounded, a: Any, b: Any, c: Any, steps: Any) -> Bounded:
    """Each step may stretch an error by the steepest slope of its polynomial.

    With ``p(s) = a s + b s^3 + c s^5`` and ``f`` the step, the derivative of ``f`` at
    ``X`` multiplies the entries of an error, in the bases of singular vectors of ``X``,
    by ``(p(s) - p(s')) / (s - s')`` and ``(p(s) + p(s')) / (s + s')`` on symmetric and
    skew parts, and by ``p(s) / s`` (Noferini, *A formula for the Frechet derivative of
    a generalized matrix function*, 2017). As ``p`` is odd, each is a mean of ``p'``
    between ``-s_max`` and ``s_max``, so that ``norm(f(X + E) - f(X)) <= slope norm(E)``
    with ``slope`` the largest ``|p'|`` up to ``norm_2(X) + norm(E)``.

    The step's own roundings, to first order, for an X of n rows and m columns (n the
    smaller), S and F its spectral and Frobenius norms: X X^T is off by
    ``m u F^2``, its square by ``n u F^4`` and by twice ``S^2`` times the former; the
    last product by ``n u norm(B) F`` and by ``S`` times what B = b G + c G^2 is off by;
    sums and scalings by two roundings of each term. Numbers below the smallest normal
    one may be lost.
    """
    a, b, c = (float(np.asarray(getattr(x, "value", x))) for x in (a, b, c))
    steps = int(getattr(steps, "value", steps))
    if _uncertain(matrix):
        return _nowhere(matrix)
    u = unit_roundoff(matrix.rounding)
    start = matrix / (np.sqrt(np.sum(matrix**2)) + 1e-7)
    if _uncertain(start):
        return _nowhere(matrix)
    x = start.value if start.shape[0] <= start.shape[1] else start.value.T
    error = norm(np.broadcast_to(start.bound, start.shape))
    n, m = x.shape
    subnormal = x.size * matrix.rounding.format.smallest_normal
    for _ in range(steps):
        gram = x @ x.T
        square = gram @ gram
        inner = b * gram + c * square
        spectral = float(np.linalg.norm(x.astype(np.float64), 2))
        frobenius = norm(x)
        of_gram = m * u * frobenius**2
        of_square = n * u * frobenius**4 + 2 * spectral**2 * of_gram
        of_inner = (
            abs(b) * (of_gram + 2 * u * norm(gram))
            + abs(c) * (of_square + 2 * u * norm(square))
            + u * norm(inner)
        )
        product = inner @ x
        own = spectral * of_inner + n * u * norm(inner) * frobenius
        x = a * x + product
        own += 2 * u * abs(a) * frobenius + u * norm(x) + subnormal
        error = _slope(a, b, c, spectral + error) * error + own
    value = x if start.shape[0] <= start.shape[1] else x.T
    bound = np.full(matrix.shape, error)
    return Bounded(value, bound, matrix.rounding, branch=start.branch)


def _slope(a: float, b: float, c: float, end: float) -> float:
    """The largest ``|a + 3 b s^2 + 5 c s^4|`` for s from 0 to ``end``."""
    squares = [0.0, end**2]
    if c and 0 < -3 * b / (10 * c) < end**2:
        squares.append(-3 * b / (10 * c))
    return max(abs(a + 3 * b * s + 5 * c * s**2) for s in squares)
