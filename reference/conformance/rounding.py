"""Numbers that carry their own rounding bound.

A rule evaluated on ``Bounded`` numbers gives, beside each result, how far a correct
implementation in a given floating format may be from it: every operation adds its own
rounding (half an ulp of its result; a platform may promise less) to what it inherits.
Higham, *Accuracy and Stability of Numerical Algorithms*, 2nd ed., 2002, section 3.3.

Values are kept in a wider format than the one that is judged: float64 for half and
single precision, longdouble for float64.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

SLACK = 2.0
"""An implementation conforms within ``SLACK`` times the bound. One bound is for its own
rounding, another for what the bound leaves out: terms of second order, the rounding of
the oracle itself, and rewrites of the rule with a few operations more."""


@dataclass(frozen=True)
class Format:
    """A binary floating format.

    Attributes:
        name: the NumPy name of the dtype.
        precision: significant bits, the hidden one included.
        min_exponent: exponent of the smallest normal number.
        max_exponent: exponent of the largest number.
    """

    name: str
    precision: int
    min_exponent: int
    max_exponent: int

    @cached_property
    def largest(self) -> float:
        return float((2.0 - 2.0 ** (1 - self.precision)) * 2.0**self.max_exponent)

    @cached_property
    def smallest_normal(self) -> float:
        return 2.0**self.min_exponent

    def half_ulp(self, magnitude: np.ndarray) -> np.ndarray:
        """Half the spacing of this format at ``magnitude``, subnormals included.

        Below float64's smallest number, its own half, the result is that number.
        """
        exponent = np.frexp(magnitude)[1] - 1
        exponent = np.maximum(exponent, self.min_exponent)
        exponent = np.where(magnitude == 0, self.min_exponent, exponent)
        return np.ldexp(1.0, np.maximum(exponent - self.precision, -1074))

    def round(self, values: Any) -> np.ndarray:
        """The nearest numbers of this format, ties to even; overflow gives infinity."""
        values = np.asarray(values)
        if not np.issubdtype(values.dtype, np.longdouble):
            values = values.astype(np.float64, copy=False)
        with np.errstate(all="ignore"):
            exponent = np.maximum(np.frexp(values)[1] - 1, self.min_exponent)
            shift = exponent - self.precision + 1
            rounded = np.ldexp(np.rint(np.ldexp(values, -shift)), shift)
            rounded = np.where(np.isfinite(values), rounded, values)
            return np.where(
                np.isfinite(rounded) & (np.abs(rounded) > self.largest),
                np.copysign(np.inf, rounded),
                rounded,
            )


FLOAT16 = Format("float16", 11, -14, 15)
BFLOAT16 = Format("bfloat16", 8, -126, 127)
FLOAT32 = Format("float32", 24, -126, 127)
FLOAT64 = Format("float64", 53, -1022, 1023)

FORMATS = {f.name: f for f in (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)}


@dataclass(frozen=True)
class Platform:
    """What a platform promises about its arithmetic.

    Attributes:
        name: for people.
        flushes: formats whose subnormal numbers are read and written as zero.
        ulps: errors in ulps of operations that are not correctly rounded (0.5).
    """

    name: str
    flushes: frozenset[str] = frozenset()
    ulps: Mapping[str, float] = field(default_factory=dict)


IEEE = Platform("IEEE 754", ulps={"power": 1.0, "tanh": 2.0})
TENSORFLOW_CPU = Platform(
    "TensorFlow on CPU",
    flushes=frozenset({"bfloat16", "float32", "float64"}),
    ulps={"power": 1.0, "tanh": 8.0},
)
XLA_CPU = Platform(
    "XLA on CPU",
    flushes=frozenset({"bfloat16", "float32", "float64"}),
    ulps={"power": 1.0, "tanh": 8.0},
)
TENSORFLOW_GPU = Platform(
    "TensorFlow on GPU",
    flushes=frozenset({"bfloat16", "float32"}),
    ulps={"power": 4.0, "divide": 2.0, "sqrt": 1.0, "tanh": 8.0},
)
"""CUDA C++ Programming Guide, mathematical functions: single precision division and
square root as compiled with approximate division and root, ``powf``. ``tanh``: measured
on eight million numbers, at most 7.5 (TensorFlow and XLA on CPU, float64)."""


@dataclass(frozen=True)
class Rounding:
    """A format on a platform: what each operation may lose."""

    format: Format
    platform: Platform = IEEE

    def of(self, value: np.ndarray, inherited: Any, operation: str) -> np.ndarray:
        """The error of an operation whose exact operands would give ``value``."""
        magnitude = np.abs(value) + inherited
        own = self.format.half_ulp(magnitude)
        ulps = self.platform.ulps.get(operation)
        if ulps is not None:
            own = own * (2 * ulps)
        if self.format.name in self.platform.flushes:
            smallest = self.format.smallest_normal
            own = own + smallest * (np.abs(value) - inherited < smallest)
        return np.where(magnitude == 0, 0.0, own)


class Bounded(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of values, each with a bound on the error of a correct implementation.

    Attributes:
        value: what exact arithmetic gives, in a wider format.
        bound: how far a correct implementation may be from it.
        rounding: the format and platform of the implementation.
        coefficient: a scalar of the step, which is rounded to the format of the
            first tensor that it meets.
        branch: elements for which a comparison went either way within its bound; the
            bound covers both branches.
        overflow: elements on whose way an intermediate overflowed, or may have, or a
            maximum or comparison met NaN: there IEEE 754 knows two answers (2008:
            ``maxNum`` drops NaN; 2019: ``maximum`` keeps it), and rewrites of the rule
            that are equal for numbers differ.
    """

    __slots__ = ("bound", "branch", "coefficient", "overflow", "rounding", "value")

    def __init__(
        self,
        value: Any,
        bound: Any,
        rounding: Rounding,
        *,
        coefficient: bool = False,
        branch: Any = False,
        overflow: Any = False,
    ) -> None:
        self.value = np.asarray(value)
        self.bound = np.asarray(bound, dtype=np.float64)
        self.rounding = rounding
        self.coefficient = coefficient
        self.branch = branch
        self.overflow = overflow

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape

    @property
    def ndim(self) -> int:
        return self.value.ndim

    @property
    def size(self) -> int:
        return self.value.size

    def __repr__(self) -> str:
        return f"Bounded({self.value}, ±{self.bound}, {self.rounding.format.name})"

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kw: Any) -> Any:
        operation = _UFUNCS.get(ufunc.__name__)
        if operation is None or method != "__call__" or kw:
            return NotImplemented
        with np.errstate(all="ignore"):
            return operation(*inputs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        function = _FUNCTIONS.get(func.__name__)
        if function is None:
            return NotImplemented
        with np.errstate(all="ignore"):
            return function(*args, **kwargs)

    @property
    def T(self) -> Bounded:
        return self._mapped(np.transpose)

    def reshape(self, *shape: Any) -> Bounded:
        return self._mapped(lambda array: array.reshape(*shape))

    def _mapped(self, move: Callable[[np.ndarray], np.ndarray]) -> Bounded:
        """The same elements, in other places."""

        def moved(mask: Any) -> Any:
            return move(np.broadcast_to(mask, self.shape)) if np.ndim(mask) else mask

        bound = move(np.broadcast_to(self.bound, self.shape))
        return self._like(
            move(self.value), bound, moved(self.branch), moved(self.overflow)
        )

    def __getitem__(self, key: Any) -> Bounded:
        return self._like(
            self.value[key],
            np.broadcast_to(self.bound, self.shape)[key],
            _picked(self.branch, self.shape, key),
            _picked(self.overflow, self.shape, key),
        )

    def __setitem__(self, key: Any, other: Bounded) -> None:
        self.value[key] = other.value
        self.bound[key] = other.bound
        for mask in ("branch", "overflow"):
            whole = np.array(np.broadcast_to(getattr(self, mask), self.shape))
            whole[key] = getattr(other, mask)
            setattr(self, mask, whole)

    def copy(self) -> Bounded:
        bound = np.array(np.broadcast_to(self.bound, self.shape))
        return self._like(self.value.copy(), bound, self.branch, self.overflow)

    def zeros(self, shape: tuple[int, ...]) -> Bounded:
        """Exact zeros in the same arithmetic."""
        zeros = np.zeros(shape, self.value.dtype)
        return Bounded(zeros, np.zeros(shape), self.rounding)

    def sum_rows(self, position: np.ndarray, count: int) -> Bounded:
        """Rows summed by ``position``, in whatever order."""
        position = np.ravel(position)

        def add(values: np.ndarray) -> np.ndarray:
            out = np.zeros((count, *self.shape[1:]), values.dtype)
            np.add.at(out, position, values)
            return out

        terms = np.bincount(position, minlength=count).reshape(
            (count,) + (1,) * (self.ndim - 1)
        )
        return _summation(self, add, terms)

    def rounded_to(self, rounding: Rounding) -> Bounded:
        """Stored in another format: rounded once if that is narrower."""
        if rounding.format.precision >= self.rounding.format.precision:
            return Bounded(
                self.value,
                self.bound,
                rounding,
                coefficient=self.coefficient,
                branch=self.branch,
                overflow=self.overflow,
            )
        with np.errstate(all="ignore"):
            if self.coefficient and self._representable(rounding):
                bound = self.bound
            else:
                bound = self.bound + rounding.of(self.value, self.bound, "round")
            return _settled(self.value, bound, [self], rounding, self.coefficient)

    def _representable(self, rounding: Rounding) -> bool:
        """Known exactly, and read as it is."""
        held = rounding.format.round(self.value)
        if rounding.format.name in rounding.platform.flushes:
            held = np.where(np.abs(held) < rounding.format.smallest_normal, 0, held)
        return not self.bound.any() and bool(np.all(held == self.value))

    def _like(self, value: Any, bound: Any, branch: Any, overflow: Any) -> Bounded:
        return Bounded(
            value,
            bound,
            self.rounding,
            coefficient=self.coefficient,
            branch=branch,
            overflow=overflow,
        )


@dataclass(frozen=True)
class Comparison:
    """Truth values, where they depend on rounding, and where they are about NaN."""

    truth: np.ndarray
    unsure: np.ndarray
    met_nan: np.ndarray
    operands: tuple[Bounded, ...]

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.asarray(self.truth, dtype)


def _picked(mask: Any, shape: tuple[int, ...], key: Any) -> Any:
    return mask if np.ndim(mask) == 0 else np.broadcast_to(mask, shape)[key]


def _meet(*operands: Any) -> tuple[list[Bounded], Rounding, bool]:
    """Operands in one arithmetic: that of the tensors, else of the narrowest."""
    bounded = [x for x in operands if isinstance(x, Bounded)]
    tensors = [x for x in bounded if not x.coefficient]
    narrowest = min(tensors or bounded, key=lambda x: x.rounding.format.precision)
    rounding = narrowest.rounding
    lifted = []
    for x in operands:
        if not isinstance(x, Bounded):
            x = Bounded(
                np.asarray(x, dtype=bounded[0].value.dtype),
                0.0,
                Rounding(FLOAT64, rounding.platform),
                coefficient=True,
            )
        if x.coefficient:
            x = x.rounded_to(rounding)
        lifted.append(x)
    return lifted, rounding, not tensors


def _settled(
    value: np.ndarray,
    bound: np.ndarray,
    operands: list[Bounded],
    rounding: Rounding,
    coefficient: bool,
    branch: Any = False,
    overflow: Any = False,
) -> Bounded:
    """The result of an operation: masks inherited, overflow noted, infinities exact.

    Nothing bounds a finite result that came by way of an overflow, since rewrites of a
    rule need not overflow with it; nor where the bound itself is not a number.
    """
    for x in operands:
        branch = branch | x.branch if x.branch is not False else branch
        overflow = overflow | x.overflow if x.overflow is not False else overflow
    largest = rounding.format.largest
    finite = np.isfinite(value)
    reach = np.abs(value) + np.where(np.isfinite(bound), bound, 0.0)
    over = finite & (reach > largest)
    if over.any():
        overflow = overflow | over
        value = np.where(
            finite & (np.abs(value) > largest), np.sign(value) * np.inf, value
        )
    bound = np.where(overflow | np.isnan(bound), np.inf, bound)
    bound = np.where(np.isinf(value), 0.0, bound)
    return Bounded(
        value,
        bound,
        rounding,
        coefficient=coefficient,
        branch=branch,
        overflow=overflow,
    )


def _operation(
    name: str, exact: Callable[..., Any], inherit: Callable[..., Any]
) -> Callable[..., Bounded]:
    def apply(*inputs: Any) -> Bounded:
        operands, rounding, coefficient = _meet(*inputs)
        value = exact(*(x.value for x in operands))
        inherited = inherit(value, *operands)
        bound = inherited + rounding.of(value, inherited, name)
        return _settled(value, bound, operands, rounding, coefficient)

    return apply


def _add(value: Any, x: Bounded, y: Bounded) -> Any:
    return x.bound + y.bound


def _multiply(value: Any, x: Bounded, y: Bounded) -> Any:
    return abs(x.value) * y.bound + abs(y.value) * x.bound + x.bound * y.bound


def _divide(value: Any, x: Bounded, y: Bounded) -> Any:
    least = abs(y.value) - y.bound
    error = (x.bound + abs(value) * y.bound) / np.where(least > 0, least, np.nan)
    exact = (x.bound == 0) & (y.bound == 0)
    return np.where(exact, 0.0, np.where(least > 0, error, np.inf))


def _sqrt(value: Any, x: Bounded) -> Any:
    low = np.sqrt(np.maximum(x.value - x.bound, 0))
    return np.maximum(value - low, np.sqrt(x.value + x.bound) - value)


def _through_ends(function: Callable[[Any], Any]) -> Callable[..., Any]:
    """The spread of a monotonic function over an operand's interval."""

    def inherit(value: Any, x: Bounded) -> Any:
        ends = function(x.value - x.bound), function(x.value + x.bound)
        return np.maximum(abs(ends[0] - value), abs(ends[1] - value))

    return inherit


def _power(value: Any, x: Bounded, y: Bounded) -> Any:
    """The corners' spread; a base that is not negative stays so, whatever its bound."""
    spread: Any = 0.0
    low = np.where(x.value >= 0, np.maximum(x.value - x.bound, 0), x.value - x.bound)
    for a in (low, x.value + x.bound):
        for b in (y.value - y.bound, y.value + y.bound):
            spread = np.maximum(spread, abs(a**b - value))
    return np.where((x.bound == 0) & (y.bound == 0), 0.0, spread)


def _raise(x: Any, y: Any) -> Bounded:
    if not isinstance(y, Bounded) and np.ndim(y) == 0 and y == 2:
        return _UFUNCS["multiply"](x, x)
    return _general_power(x, y)


def _exact(function: Callable[..., Any]) -> Callable[..., Bounded]:
    """A function without rounding that never spreads its operands' errors."""

    def apply(*inputs: Any) -> Bounded:
        operands, rounding, coefficient = _meet(*inputs)
        value = function(*(x.value for x in operands))
        bound = np.zeros(())
        for x in operands:
            bound = np.maximum(bound, x.bound)
        return _settled(value, bound, operands, rounding, coefficient)

    return apply


def _choose(function: Callable[..., Any], sign: int) -> Callable[..., Bounded]:
    """Maximum (sign 1) or minimum (-1): where decided, the bound of the one chosen."""

    def apply(*inputs: Any) -> Bounded:
        (x, y), rounding, coefficient = _meet(*inputs)
        value = function(x.value, y.value)
        lead = sign * (x.value - y.value)
        spread = x.bound + y.bound
        bound = np.where(
            lead > spread,
            x.bound,
            np.where(lead < -spread, y.bound, np.maximum(x.bound, y.bound)),
        )
        result = _settled(value, bound, [x, y], rounding, coefficient)
        result.overflow = result.overflow | np.isnan(value)
        return result

    return apply


def _sign(x: Bounded) -> Bounded:
    value = np.sign(x.value)
    unsure = (np.abs(x.value) <= x.bound) & (x.bound > 0)
    bound = np.where(unsure, 1.0 + np.abs(value), 0.0)
    return _settled(value, bound, [x], x.rounding, x.coefficient, branch=unsure)


def _floor(function: Callable[..., Any]) -> Callable[[Bounded], Bounded]:
    def apply(x: Bounded) -> Bounded:
        value = function(x.value)
        low, high = function(x.value - x.bound), function(x.value + x.bound)
        bound = np.maximum(value - low, high - value)
        return _settled(value, bound, [x], x.rounding, x.coefficient, bound > 0)

    return apply


def _compare(function: Callable[..., Any]) -> Callable[..., Comparison]:
    def apply(*inputs: Any) -> Comparison:
        (x, y), _, _ = _meet(*inputs)
        spread = x.bound + y.bound
        unsure = (np.abs(x.value - y.value) <= spread) & (spread > 0)
        met_nan = np.isnan(x.value) | np.isnan(y.value)
        return Comparison(function(x.value, y.value), unsure, met_nan, (x, y))

    return apply


def _where(condition: Any, a: Any, b: Any) -> Bounded:
    if not isinstance(condition, Comparison):
        truth = np.asarray(condition)
        nowhere = np.zeros(truth.shape, bool)
        condition = Comparison(truth, nowhere, nowhere, ())
    (a, b), rounding, coefficient = _meet(a, b)
    value = np.where(condition.truth, a.value, b.value)
    chosen = np.where(condition.truth, a.bound, b.bound)
    hull = np.abs(a.value - b.value) + np.maximum(a.bound, b.bound)
    bound = np.where(condition.unsure, hull, chosen)
    branch = np.where(condition.truth, a.branch, b.branch) | condition.unsure
    overflow = np.where(condition.truth, a.overflow, b.overflow) | condition.met_nan
    overflow = overflow | (condition.unsure & ~np.isfinite(hull))
    for x in condition.operands:
        branch = branch | x.branch
        overflow = overflow | x.overflow
    return _settled(
        value, bound, [], rounding, coefficient, branch=branch, overflow=overflow
    )


def _summation(x: Bounded, add: Callable[[Any], Any], terms: Any) -> Bounded:
    value, inherited = add(x.value), add(np.broadcast_to(x.bound, x.shape))
    total = add(np.abs(x.value) + x.bound)
    steps = np.maximum(np.asarray(terms) - 1, 0)
    bound = inherited + steps * x.rounding.of(total, 0.0, "add")
    branch, overflow = (
        add(np.broadcast_to(m, x.shape).astype(int)) > 0 if m is not False else False
        for m in (x.branch, x.overflow)
    )
    return _settled(
        value, bound, [], x.rounding, x.coefficient, branch=branch, overflow=overflow
    )


def _sum(x: Bounded, **kwargs: Any) -> Bounded:
    def add(values: np.ndarray) -> np.ndarray:
        return np.asarray(np.sum(values, **kwargs))

    return _summation(x, add, add(np.ones(x.shape, int)))


def _mean(x: Bounded, **kwargs: Any) -> Bounded:
    total = _sum(x, **kwargs)
    return total / (x.size / max(total.size, 1))


def _largest(x: Bounded, **kwargs: Any) -> Bounded:
    def over(mask: Any) -> Any:
        whole = np.broadcast_to(mask, x.shape)
        return np.any(whole, **kwargs) if np.any(whole) else False

    value = np.asarray(np.max(x.value, **kwargs))
    bound = np.max(np.broadcast_to(x.bound, x.shape), **kwargs)
    overflow = over(np.isnan(x.value) | x.overflow)
    return _settled(
        value, bound, [], x.rounding, x.coefficient, over(x.branch), overflow
    )


def _matmul(x: Any, y: Any) -> Bounded:
    """Inner products, summed in whatever order."""
    (x, y), rounding, coefficient = _meet(x, y)

    def meets(mask: str) -> Any:
        masks = [np.broadcast_to(getattr(z, mask), z.shape) for z in (x, y)]
        if not any(np.any(m) for m in masks):
            return False
        ones = [np.ones(z.shape, int) for z in (x, y)]
        return (masks[0] @ ones[1] > 0) | (ones[0] @ masks[1] > 0)

    ex, ey = (np.broadcast_to(z.bound, z.shape) for z in (x, y))
    ax, ay = abs(x.value), abs(y.value)
    inherited = ax @ ey + ex @ ay + ex @ ey
    steps = x.shape[-1]
    rounded = steps * rounding.of((ax + ex) @ (ay + ey), 0.0, "add")
    return _settled(
        x.value @ y.value,
        inherited + rounded,
        [],
        rounding,
        coefficient,
        meets("branch"),
        meets("overflow"),
    )


_general_power = _operation("power", lambda x, y: x**y, _power)

_UFUNCS: dict[str, Callable[..., Any]] = {
    "add": _operation("add", lambda x, y: x + y, _add),
    "subtract": _operation("add", lambda x, y: x - y, _add),
    "multiply": _operation("multiply", lambda x, y: x * y, _multiply),
    "divide": _operation("divide", lambda x, y: x / y, _divide),
    "true_divide": _operation("divide", lambda x, y: x / y, _divide),
    "sqrt": _operation("sqrt", np.sqrt, _sqrt),
    "exp": _operation("power", np.exp, _through_ends(np.exp)),
    "log": _operation("power", np.log, _through_ends(np.log)),
    "tanh": _operation("tanh", np.tanh, _through_ends(np.tanh)),
    "cos": _operation("power", np.cos, lambda value, x: x.bound),
    "sin": _operation("power", np.sin, lambda value, x: x.bound),
    "power": _raise,
    "square": lambda x: _UFUNCS["multiply"](x, x),
    "absolute": _exact(np.abs),
    "negative": _exact(np.negative),
    "positive": _exact(np.positive),
    "maximum": _choose(np.maximum, 1),
    "minimum": _choose(np.minimum, -1),
    "sign": _sign,
    "floor": _floor(np.floor),
    "ceil": _floor(np.ceil),
    "greater": _compare(np.greater),
    "greater_equal": _compare(np.greater_equal),
    "less": _compare(np.less),
    "less_equal": _compare(np.less_equal),
    "equal": _compare(np.equal),
    "not_equal": _compare(np.not_equal),
    "matmul": _matmul,
}

_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "sum": _sum,
    "mean": _mean,
    "max": _largest,
    "amax": _largest,
}
