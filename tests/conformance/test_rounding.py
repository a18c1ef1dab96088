"""Bounds are sound (never exceeded by correct code) and tight (nearly reached).

Correct code is NumPy arithmetic in the very format. Sound and tight are shown for each
operation and for each rule as a whole, over long random searches.
"""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import reference
from reference import State
from reference.conformance.convention import BoundedArithmetic, Convention, ideal
from reference.conformance.judge import compare
from reference.conformance.rounding import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    FORMATS,
    IEEE,
    SLACK,
    TENSORFLOW_CPU,
    TENSORFLOW_GPU,
    Bounded,
    Comparison,
    Rounding,
)
from reference.gradients import rounded_once
from reference.optimizer import Arithmetic

DTYPES = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}
DECADES = {
    "float16": (-8.5, 4.8),
    "bfloat16": (-46, 38.5),
    "float32": (-46, 38.5),
    "float64": (-324, 308.2),
}
"""From below the smallest number to just below the largest."""
N = 100_000

needs_longdouble = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant <= 52,
    reason="longdouble is float64 here: no wider format holds the exact values",
)
every_format = pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=needs_longdouble if n == "float64" else ())
        for n in FORMATS
    ],
)

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def wide(name):
    return np.longdouble if name == "float64" else np.float64


# --- formats ------------------------------------------------------------------------


def hard_cases(name, rng):
    """All magnitudes; ties and their neighbours; subnormals; beside the largest."""
    format = FORMATS[name]
    low, high = DECADES[name]
    spread = rng.choice([-1.0, 1.0], N) * 10.0 ** rng.uniform(low, high + 1, N)
    below = format.round(spread)
    step = 2 * format.half_ulp(np.abs(below))
    ties = below + step / 2
    largest, smallest = format.largest, 2.0 ** (format.min_exponent - 30)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, largest, -largest]
    edges += [largest * (1 + 2.0**-k) for k in range(4, 40)]
    edges += [smallest * k for k in range(1, 3000)]
    return np.concatenate([spread, below, ties, np.nextafter(ties, 0), edges])


@pytest.mark.parametrize("name", ["float16", "float32", "bfloat16"])
def test_round_is_what_the_machine_does(name):
    x = hard_cases(name, np.random.default_rng(0))
    if name == "bfloat16":  # ml_dtypes rounds float64 twice
        x = x.astype(np.float32).astype(np.float64)
    machine = x.astype(DTYPES[name]).astype(np.float64)
    ours = FORMATS[name].round(x)
    assert np.array_equal(ours, machine, equal_nan=True)
    number = ~np.isnan(x)
    assert np.array_equal(np.signbit(ours)[number], np.signbit(machine)[number])


@needs_longdouble
def test_round_to_float64_from_longdouble():
    rng = np.random.default_rng(0)
    x = rng.normal(size=N).astype(np.longdouble) * (1 + rng.normal(size=N) * 2.0**-53)
    assert np.array_equal(FLOAT64.round(x), x.astype(np.float64))
    assert FLOAT64.round(np.longdouble(2) ** 1024) == np.inf


@pytest.mark.parametrize("name", FORMATS)
def test_round_is_idempotent(name):
    low, high = DECADES[name]
    x = 10.0 ** np.random.default_rng(1).uniform(low, high, N)
    once = FORMATS[name].round(x)
    assert np.array_equal(FORMATS[name].round(once), once)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_half_ulp_is_half_the_spacing_of_the_machine(name):
    dtype, format = DTYPES[name], FORMATS[name]
    low, high = DECADES[name]
    x = 10.0 ** np.random.default_rng(0).uniform(low, high, N)
    x = np.concatenate([x, 2.0 ** np.arange(format.min_exponent, format.max_exponent)])
    x = x.astype(dtype)
    # float64 itself cannot hold half of its smallest number: the bound is rounded up
    due = np.maximum(
        np.spacing(x).astype(np.float64) / 2, np.finfo(np.float64).smallest_subnormal
    )
    assert np.array_equal(format.half_ulp(x.astype(np.float64)), due)


@pytest.mark.parametrize("name", FORMATS)
def test_half_ulp_of_zero_is_that_of_the_smallest_numbers(name):
    format = FORMATS[name]
    tiny = max(2.0 ** (format.min_exponent - format.precision), 2.0**-1074)
    assert format.half_ulp(np.array([0.0, tiny])).tolist() == [tiny, tiny]


def test_formats_say_what_numpy_says():
    for name in ("float16", "float32", "float64", "bfloat16"):
        info = ml_dtypes.finfo(DTYPES[name])
        assert FORMATS[name].largest == float(info.max)
        assert FORMATS[name].smallest_normal == float(info.smallest_normal)
        assert 2.0 ** (1 - FORMATS[name].precision) == float(info.eps)


# --- single operations ----------------------------------------------------------------


class Operand:
    """What a machine holds, and a bounded number that says so."""

    def __init__(self, held, exact, rounding):
        self.held = held
        error = np.abs(exact - held.astype(exact.dtype))
        # upward: bounds are float64, and a sum of bounds must not fall short either
        upward = error.astype(np.float64) * (1 + 8 * np.finfo(np.float64).eps)
        upward = np.where(error > 0, upward + 2.0**-1073, 0.0)
        self.bounded = Bounded(exact, upward, rounding)


def held_numbers(name, rng, positive=False):
    """Half in everyday decades, half in all; some zeros."""
    low, high = DECADES[name]
    everyday = 10.0 ** rng.uniform(-3, 3, N // 2)
    everywhere = wide(name)(10) ** rng.uniform(low, high, N - N // 2)
    held = np.concatenate([everyday, everywhere])
    held[rng.random(N) < 0.02] = 0
    sign = 1.0 if positive else rng.choice([-1.0, 1.0], N)
    return rounded_once(sign * held, DTYPES[name])


def operand(name, rng, held, rounding=None):
    """Half exact, half off by up to their bound: at most ten times their size.

    Where no number is negative, at most their size, so that none becomes negative.
    """
    exact = held.astype(wide(name))
    most = 1 if np.any(held < 0) else 0
    size = np.abs(exact) * 10.0 ** rng.uniform(-9, most, N)
    off = size * rng.choice([-1.0, 1.0, rng.uniform(-1, 1)], N)
    off = np.clip(off, -FORMATS[name].largest / 4, FORMATS[name].largest / 4)
    exact = exact + np.where(rng.random(N) < 0.5, 0, off)
    return Operand(held, exact, rounding or Rounding(FORMATS[name]))


def partner(name, rng, held):
    """A second operand; a quarter nearly cancels the first."""
    other = held_numbers(name, rng).astype(wide(name))
    near = -held.astype(wide(name)) * (1 + 10.0 ** rng.uniform(-8, 0, N))
    chosen = np.where(rng.random(N) < 0.25, near, other)
    largest = FORMATS[name].largest
    return rounded_once(np.clip(chosen, -largest, largest), DTYPES[name])


def ratios(result, came, name):
    """Error over bound where both are finite; everything else must be in order."""
    value, came = result.value, np.asarray(came).astype(wide(name))
    bound = np.broadcast_to(result.bound, value.shape)
    overflow = np.broadcast_to(result.overflow, value.shape)
    assert not np.any(np.isnan(bound) & np.isfinite(value))
    with np.errstate(all="ignore"):
        error = np.abs(came - value)
        # the oracle's own rounding: no formula of value or bound has ten operations
        own = 10 * (
            np.finfo(wide(name)).eps * np.abs(value)
            + np.finfo(np.float64).eps * bound
            + np.finfo(np.float64).smallest_subnormal
        )
        within = error <= bound + own
    same = (came == value) | (np.isnan(came) & np.isnan(value))
    beyond = ~(within | same | (overflow & ~np.isfinite(came)) | np.isinf(bound))
    assert not beyond.any(), (
        f"{np.count_nonzero(beyond)} beyond the bound, first: came {came[beyond][0]}, "
        f"due {value[beyond][0]} +- {bound[beyond][0]}"
    )
    finite = np.isfinite(value) & np.isfinite(came) & (bound > 0) & np.isfinite(bound)
    return np.where(finite, error / np.where(finite, bound, 1), 0).astype(np.float64)


def once(function, *operands, dtype):
    """``function`` in a wider format, rounded once.

    NumPy's own power and exponentials may be several ulps off where vectorised.
    """
    wider = np.longdouble if dtype == np.float64 else np.float64
    exact = function(*(x.astype(wider) for x in operands))
    return rounded_once(exact, dtype)


BINARY = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
}
UNARY = {
    "square": np.square,
    "power of two": lambda x: x**2,
    "sqrt": np.sqrt,
    "absolute": np.abs,
    "negative": np.negative,
    "floor": np.floor,
    "ceil": np.ceil,
}
EXPONENTIAL = {"exp": np.exp, "log": np.log, "sin": np.sin, "cos": np.cos}


@every_format
@pytest.mark.parametrize("operation", BINARY)
def test_operations_of_two_operands(name, operation):
    rng = np.random.default_rng(1)
    held = held_numbers(name, rng)
    x, y = operand(name, rng, held), operand(name, rng, partner(name, rng, held))
    function = BINARY[operation]
    result = function(x.bounded, y.bounded)
    ratio = ratios(result, function(x.held, y.held), name)
    exact = (x.bounded.bound == 0) & (y.bounded.bound == 0)
    assert ratio[~exact].max() > 0.9  # tight where errors are inherited
    if operation in ("maximum", "minimum"):
        assert not np.any(result.bound[exact])
    else:
        assert ratio[exact].max() > 0.9  # and where all is the operation's own
    divides_by_zero = (operation == "divide") & (
        np.abs(y.bounded.value) <= y.bounded.bound
    )
    unbounded = np.isinf(result.bound) & np.isfinite(result.value)
    assert not np.any(unbounded & ~divides_by_zero & ~result.overflow)
    largest, size = FORMATS[name].largest, np.abs(result.value)
    reaches = size + FORMATS[name].half_ulp(np.array(largest)) > largest
    overflow = np.broadcast_to(result.overflow, N)
    assert not np.any(overflow & exact & ~reaches)
    assert np.all(overflow[(size > largest) & ~divides_by_zero])


@every_format
@pytest.mark.parametrize("operation", UNARY)
def test_operations_of_one_operand(name, operation):
    rng = np.random.default_rng(2)
    x = operand(name, rng, held_numbers(name, rng, positive=operation == "sqrt"))
    function = UNARY[operation]
    result = function(x.bounded)
    came = (
        once(function, x.held, dtype=DTYPES[name])
        if name == "bfloat16"
        else function(x.held)
    )
    assert ratios(result, came, name).max() > 0.9
    if operation in ("floor", "ceil"):
        changed = result.value != came.astype(wide(name))
        assert changed.any() and np.all(result.branch[changed])


@every_format
@pytest.mark.parametrize("operation", EXPONENTIAL)
def test_exponentials_and_waves(name, operation):
    rng = np.random.default_rng(3)
    held = rounded_once(rng.uniform(0.01, 8, N), DTYPES[name])
    x = operand(name, rng, held)
    function = EXPONENTIAL[operation]
    came = once(function, x.held, dtype=DTYPES[name])
    # the platform promises one ulp, the machine here half of it
    assert ratios(function(x.bounded), came, name).max() > 0.5


@every_format
@pytest.mark.parametrize("exponent", [0.5, 0.7, 3.0, -0.5, 0.0])
def test_power(name, exponent):
    rng = np.random.default_rng(4)
    x = operand(name, rng, held_numbers(name, rng, positive=True))
    coefficient = Bounded(
        np.asarray(exponent, wide(name)), 0.0, Rounding(FLOAT64), coefficient=True
    )
    result = x.bounded**coefficient
    held = np.array(exponent).astype(DTYPES[name])
    came = once(np.power, x.held, held, dtype=DTYPES[name])
    ratio = ratios(result, came, name)
    assert ratio.max() > 0.5 or exponent == 0
    if exponent > 0:
        assert np.all(np.isfinite(result.bound) | result.overflow)


@every_format
def test_power_of_a_number_that_may_be_zero(name):
    """A sum of squares that underflow is zero or a little above it, never below."""
    tiny = FORMATS[name].half_ulp(np.zeros(1))
    x = Bounded(np.asarray(tiny / 8, wide(name)), tiny, Rounding(FORMATS[name]))
    result = x ** Bounded(
        np.asarray(0.5, wide(name)), 0.0, Rounding(FLOAT64), coefficient=True
    )
    ends = np.sqrt(tiny + tiny / 8) - np.sqrt(tiny / 8), np.sqrt(tiny / 8)
    least = max(float(end[0]) for end in ends)
    assert least <= float(result.bound[0]) <= SLACK * least


def test_power_of_coefficients_with_both_operands_bounded():
    rng = np.random.default_rng(5)
    base = operand(
        "float32", rng, rounded_once(rng.uniform(0.1, 9, N), DTYPES["float32"])
    )
    exponent = operand(
        "float32", rng, rounded_once(rng.uniform(-3, 3, N), DTYPES["float32"])
    )
    with np.errstate(all="ignore"):
        came = once(np.power, base.held, exponent.held, dtype=DTYPES["float32"])
    assert ratios(base.bounded**exponent.bounded, came, "float32").max() > 0.5


@every_format
def test_sign_and_comparisons_say_where_they_are_unsure(name):
    rng = np.random.default_rng(6)
    held = held_numbers(name, rng)
    other = np.where(rng.random(N) < 0.5, held, -partner(name, rng, held))
    x, y = operand(name, rng, held), operand(name, rng, other.astype(held.dtype))

    result = np.sign(x.bounded)
    came = np.sign(x.held.astype(np.float64))
    ratios(result, came, name)
    wrong = result.value != came
    assert wrong.any() and np.all(result.branch[wrong])
    assert not np.any(result.branch & (x.bounded.bound == 0))

    for function in (
        np.less,
        np.less_equal,
        np.greater,
        np.greater_equal,
        np.equal,
        np.not_equal,
    ):
        comparison = function(x.bounded, y.bounded)
        assert isinstance(comparison, Comparison)
        wrong = comparison.truth != function(x.held, y.held)
        assert np.all(comparison.unsure[wrong])
        assert wrong.any()
        exact = (x.bounded.bound == 0) & (y.bounded.bound == 0)
        assert not np.any(comparison.unsure & exact)


@every_format
def test_where_covers_both_branches_when_the_condition_is_unsure(name):
    rng = np.random.default_rng(7)
    x, y = (operand(name, rng, held_numbers(name, rng)) for _ in range(2))
    limit = operand(name, rng, x.held)
    result = np.where(x.bounded <= limit.bounded, x.bounded, y.bounded)
    came = np.where(x.held <= limit.held, x.held, y.held)
    assert ratios(result, came, name).max() > 0.9
    due = np.where(
        x.bounded.value <= limit.bounded.value, x.bounded.value, y.bounded.value
    )
    fits = np.abs(due) <= FORMATS[name].largest
    assert np.array_equal(result.value[fits], due[fits])
    exact = (x.bounded.bound == 0) & (limit.bounded.bound == 0)
    assert not np.any(result.branch & exact)
    assert np.any(result.branch)


def test_where_by_hand():
    rounding = Rounding(FLOAT32)
    x = Bounded(np.array([1.0, 1.0, 3.0]), np.array([0.0, 0.5, 0.5]), rounding)
    limit = Bounded(np.array([1.0, 1.25, 1.0]), np.zeros(3), rounding)
    a = Bounded(np.array([10.0, 10.0, 10.0]), np.array([0.25, 0.25, 0.25]), rounding)
    result = np.where(x <= limit, a, 4)
    assert result.value.tolist() == [10, 10, 4]
    # decided: that branch's bound; unsure: 10 - 4 and 0.25; decided: an exact 4
    assert result.bound.tolist() == [0.25, 6.25, 0]
    assert result.branch.tolist() == [False, True, False]


def orders(rows):
    """Sums of rows in the arithmetic of their dtype: forth, back, in a tree."""
    forth = rows[0]
    for row in rows[1:]:
        forth = forth + row
    back = rows[-1]
    for row in rows[-2::-1]:
        back = back + row
    tree = list(rows)
    while len(tree) > 1:
        pairs = [a + b for a, b in zip(tree[::2], tree[1::2], strict=False)]
        tree = pairs + ([tree[-1]] if len(tree) % 2 else [])
    return forth, back, tree[0]


@every_format
@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
def test_sums_in_whatever_order(name, count):
    rng = np.random.default_rng(8)
    n = N // count
    held = rng.normal(size=(count, n)) * 10.0 ** rng.uniform(-2, 1, (count, n))
    held = rounded_once(held, DTYPES[name])
    exact = held.astype(wide(name))
    off = rng.uniform(-1, 1, (count, n)) * 10.0 ** rng.uniform(-8, 0, (1, n))
    x = Operand(
        held, exact * (1 + off * (rng.random((1, n)) < 0.5)), Rounding(FORMATS[name])
    )
    position = np.repeat([1, 0], [count, 1])
    both = Bounded(
        np.concatenate([x.bounded.value, x.bounded.value[:1]]),
        np.concatenate([x.bounded.bound, x.bounded.bound[:1]]),
        x.bounded.rounding,
    )
    by_rows = both.sum_rows(position, 3)
    assert not np.any(by_rows.value[2]) and not np.any(by_rows.bound[2])
    assert np.array_equal(by_rows.bound[0], x.bounded.bound[0])
    whole = np.sum(x.bounded, axis=0)
    assert np.array_equal(whole.bound, by_rows.bound[1])
    worst = max(ratios(whole, came, name).max() for came in orders(held))
    # random errors add up to less than the worst; a few terms come near it
    assert worst > 0.5 if count <= 3 else worst > 0
    if count == 1:
        assert np.array_equal(whole.bound, x.bounded.bound[0])


def test_a_sum_by_hand():
    rounding = Rounding(FLOAT32)
    x = Bounded(np.array([[1.0], [2.0], [-3.0], [8.0]]), np.zeros((4, 1)), rounding)
    result = x.sum_rows(np.array([1, 1, 1, 0]), 2)
    assert result.value.tolist() == [[8], [0]]
    # three terms, two additions, each of at most 1 + 2 + 3 in magnitude
    assert result.bound.tolist() == [[0], [2 * 2.0 ** (2 - 24)]]


# --- coefficients, flags, what is not finite ----------------------------------------


def coefficient(value, format=FLOAT64):
    return Bounded(np.asarray(value), 0.0, Rounding(format), coefficient=True)


def test_a_coefficient_is_rounded_when_it_meets_a_tensor():
    one = Bounded(np.array([1.0]), np.zeros(1), Rounding(FLOAT32))
    half_ulp = 2.0 ** (-4 - 24)  # of float32 at 0.1
    product = one * coefficient(0.1)
    assert product.bound.tolist() == [2 * half_ulp]  # on contact, and the product's
    assert (one * coefficient(0.5)).bound.tolist() == [
        2.0 ** (-1 - 24)
    ]  # representable
    assert (one + 0.5).bound.tolist() == [2.0**-24]
    assert float(np.float32(0.1)) != 0.1
    assert abs(float(np.float32(1) * np.float32(0.1)) - 0.1) <= product.bound[0]


def test_coefficients_among_themselves_keep_their_own_format():
    for format in (FLOAT64, FLOAT32):
        beta = coefficient(0.75, format)
        one_minus = 1 - beta ** coefficient(3.0, format)
        assert one_minus.coefficient
        assert one_minus.rounding.format is format
        # two operations: one ulp for the power, half for the difference
        power, difference = 2.0 * format.half_ulp(0.75**3), format.half_ulp(1 - 0.75**3)
        assert float(one_minus.bound) == power + difference


def test_an_inexact_coefficient_is_rounded_too():
    one = Bounded(np.array([1.0]), np.zeros(1), Rounding(FLOAT32))
    rate = Bounded(np.asarray(0.5), 2.0**-40, Rounding(FLOAT64), coefficient=True)
    assert (one * rate).bound[0] >= 2.0**-40 + 2 * 2.0**-25


def test_a_coefficient_that_the_platform_flushes_may_be_read_as_zero():
    subnormal = 2.0**-140
    for platform in (IEEE, TENSORFLOW_CPU):
        x = Bounded(np.array([2.0**100]), np.zeros(1), Rounding(FLOAT32, platform))
        product = x * coefficient(subnormal)
        assert product.value.tolist() == [2.0**-40]
        held = 0.0 if platform is TENSORFLOW_CPU else subnormal
        assert abs(2.0**100 * held - 2.0**-40) <= product.bound[0]


def test_stored_in_a_narrower_format_means_one_more_rounding():
    third = Bounded(np.array([1 / 3]), np.array([2.0**-26]), Rounding(FLOAT32))
    half = third.rounded_to(Rounding(FLOAT16))
    assert half.bound.tolist() == [2.0**-26 + 2.0 ** (-2 - 11)]
    assert third.rounded_to(Rounding(FLOAT32)).bound.tolist() == [2.0**-26]
    big = Bounded(np.array([70000.0]), np.zeros(1), Rounding(FLOAT32))
    assert big.rounded_to(Rounding(FLOAT16)).value.tolist() == [np.inf]
    assert np.all(big.rounded_to(Rounding(FLOAT16)).overflow)
    assert np.isfinite(big.rounded_to(Rounding(BFLOAT16)).value).all()


def test_flags_travel_through_every_operation():
    rounding = Rounding(FLOAT32)
    flags = np.array([True, False])
    x = Bounded(np.ones(2), np.zeros(2), rounding, branch=flags, overflow=flags)
    y = Bounded(np.ones(2), np.zeros(2), rounding)
    results = [f(x, y) for f in BINARY.values()] + [f(y, x) for f in BINARY.values()]
    results += [f(x) for f in (*UNARY.values(), *EXPONENTIAL.values(), np.sign)]
    results += [x**0.5, x[:], x.copy(), x.rounded_to(Rounding(FLOAT16))]
    results += [x.sum_rows(np.arange(2), 2), np.where(x <= y, y, y)]
    for result in results:
        assert np.broadcast_to(result.branch, 2).tolist() == [True, False]
        assert np.broadcast_to(result.overflow, 2).tolist() == [True, False]
    assert np.sum(x).branch and np.sum(x).overflow


def test_where_inherits_from_the_chosen_branch_alone():
    rounding = Rounding(FLOAT32)
    x = Bounded(np.ones(2), np.zeros(2), rounding, branch=True, overflow=True)
    y = Bounded(np.ones(2), np.zeros(2), rounding)
    chosen = np.where(np.array([True, False]), x, y)
    assert chosen.branch.tolist() == chosen.overflow.tolist() == [True, False]


def test_rows_can_be_read_and_replaced():
    rounding = Rounding(FLOAT32)
    x = Bounded(np.zeros((3, 2)), np.zeros((3, 2)), rounding)
    row = Bounded(np.ones((1, 2)), np.full((1, 2), 0.5), rounding, branch=True)
    copy = x.copy()
    copy[np.array([1])] = row
    assert copy.value.tolist() == [[0, 0], [1, 1], [0, 0]]
    assert copy.bound.tolist() == [[0, 0], [0.5, 0.5], [0, 0]]
    assert copy.branch.tolist() == [[False] * 2, [True] * 2, [False] * 2]
    assert not x.value.any() and not x.bound.any() and x.branch is False
    assert copy[np.array([1])].branch.tolist() == [[True, True]]


def test_what_is_not_finite_is_what_the_machine_gives():
    numbers = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 3e38, 1e-40])
    a, b = (m.ravel().astype(np.float32) for m in np.meshgrid(numbers, numbers))
    rounding = Rounding(FLOAT32)
    x, y = (Bounded(m.astype(np.float64), np.zeros(m.shape), rounding) for m in (a, b))
    for function in BINARY.values():
        ratios(function(x, y), function(a, b), "float32")
        came, due = function(a, b), function(x, y)
        finite = np.isfinite(due.value)
        assert np.array_equal(came[~finite], due.value[~finite], equal_nan=True)
    for function in (*UNARY.values(), np.sign):
        came, due = function(a), function(x)
        finite = np.isfinite(due.value)
        assert np.array_equal(came[~finite], due.value[~finite], equal_nan=True)


def test_overflow_is_marked_where_it_may_happen():
    near = FLOAT16.largest - 16
    x = Bounded(
        np.array([near, near, 1e5, 1.0]), np.array([0, 64, 0, 0.0]), Rounding(FLOAT16)
    )
    result = x * 1.0
    assert result.overflow.tolist() == [False, True, True, False]
    assert result.value.tolist() == [near, near, np.inf, 1.0]
    assert result.bound.tolist() == [16, np.inf, 0, FLOAT16.half_ulp(1.0)]


def test_nothing_bounds_what_came_by_way_of_an_overflow():
    """``g / g**2`` is 0 where the square overflows; another order of it is not."""
    g = Bounded(np.array([300.0, 3.0]), np.zeros(2), Rounding(FLOAT16))
    result = g / g**2
    assert result.value.tolist() == [0.0, 3.0 / 9.0]
    assert result.bound[0] == np.inf and np.isfinite(result.bound[1])
    came = np.float16(1) / np.array([300, 3], np.float16)
    ratio, undecidable = compare(result, came.astype(np.float64))
    assert ratio[0] == 0 and ratio[1] < 1
    assert undecidable.tolist() == [True, False]


def test_nothing_bounds_a_choice_that_depends_on_an_overflow():
    rounding = Rounding(FLOAT16)
    g = Bounded(np.array([300.0, 3.0]), np.zeros(2), rounding)
    one = Bounded(np.ones(2), np.zeros(2), rounding)
    result = np.where(g**2 <= 100, 0, one)
    assert result.value.tolist() == [1, 0]
    assert result.bound.tolist() == [np.inf, 0]
    limit = Bounded(np.array([3.0, 4.0]), np.array([1.0, 0.5]), rounding)
    infinite = Bounded(np.full(2, np.inf), np.zeros(2), rounding)
    either = np.where(limit <= 3, infinite, one)  # unsure, then not
    ratio, undecidable = compare(either, np.ones(2))
    assert ratio.tolist() == [0, 0]
    assert undecidable.tolist() == [True, False]


def test_platforms_differ_by_what_they_promise():
    one, three = (
        Bounded(np.array([x]), np.zeros(1), Rounding(FLOAT32)) for x in (1.0, 3.0)
    )
    for platform, factor in [(IEEE, 1), (TENSORFLOW_CPU, 1), (TENSORFLOW_GPU, 4)]:
        x = Bounded(one.value, one.bound, Rounding(FLOAT32, platform))
        y = Bounded(three.value, three.bound, Rounding(FLOAT32, platform))
        assert (x / y).bound.tolist() == [factor * 2.0 ** (-2 - 24)]
        assert (x * y).bound.tolist() == [2.0 ** (1 - 24)]


# --- whole rules --------------------------------------------------------------------


class Coefficient(np.lib.mixins.NDArrayOperatorsMixin):
    """A float64 among its kind; in the dtype of a tensor once it meets one."""

    def __init__(self, value):
        self.value = np.float64(value)

    def __int__(self):
        return int(self.value)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        tensors = [x for x in inputs if isinstance(x, np.ndarray | np.generic)]
        if not tensors:
            values = (x.value if isinstance(x, Coefficient) else x for x in inputs)
            return Coefficient(ufunc(*values))
        dtype = tensors[0].dtype
        rounded = [
            rounded_once(np.asarray(x.value), dtype)
            if isinstance(x, Coefficient)
            else x
            for x in inputs
        ]
        if ufunc is np.power:
            return once(ufunc, *rounded, dtype=dtype)
        return ufunc(*rounded)

    def __array_function__(self, function, types, args, kwargs):
        if function is not np.where:
            return NotImplemented
        condition, if_true, if_false = args
        if isinstance(condition, Coefficient):
            return if_true if condition.value else if_false
        values = (x.value if isinstance(x, Coefficient) else x for x in args)
        if condition.ndim == 0 and not any(isinstance(x, np.ndarray) for x in args[1:]):
            return Coefficient(np.where(*values))
        return NotImplemented


class Plain(Arithmetic):
    """The ideal convention carried out: arrays of one dtype, coefficients in float64.

    ``subject`` is what tensors are viewed as.
    """

    def __init__(self, computing, subject=np.ndarray):
        self.computing = computing
        self.subject = subject

    def tensor(self, array):
        return np.asarray(array).astype(self.computing, copy=False).view(self.subject)

    def coefficient(self, value, name):
        return Coefficient(value)

    def store(self, result, like):
        return rounded_once(np.asarray(result), np.asarray(like).dtype)

    def store_shared(self, result):
        return float(result.value)


class Brain(np.ndarray):
    """bfloat16 arithmetic, in float32 arrays: NumPy 1 cannot mix bfloat16 with ints."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        kwargs.pop("out", None)
        result = getattr(ufunc, method)(*map(brain, inputs), **kwargs)
        return brain(result).view(Brain) if result.dtype.kind == "f" else result


def brain(x):
    if not isinstance(x, np.ndarray):
        return x
    return np.asarray(x).astype(DTYPES["bfloat16"]).astype(np.float32)


def arithmetic(computing):
    """Plain code that computes in the format called ``computing``."""
    if computing == "bfloat16":
        return Plain(DTYPES["float32"], Brain)
    return Plain(DTYPES[computing])


def decades(rng, shape, low, high):
    return rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(low, high, shape)


def locked(
    optimizer, stored, computing, *, platform=IEEE, code=None, tiny=False, n=8000
):
    """Error over bound by tensor, each step from the plain code's own state.

    A quarter of the weights start from zero. Gradients run over ten decades; half of
    them keep their size from step to step, so that averages settle.
    """
    rng = np.random.default_rng(0)
    format, dtype = FORMATS[stored], DTYPES[stored]
    bounded = BoundedArithmetic(
        Convention("", FLOAT64, FORMATS[computing]), format, platform
    )
    plain = code or arithmetic(computing)
    low, high = (-6.0, 1.5) if stored == "float16" else (-7.0, 3.0)
    if tiny:
        low, high = -40.0, -15.0
    w = decades(rng, n, -5, 1)
    w[: n // 4] = 0
    w = rounded_once(w, dtype)
    size = decades(rng, n, low, high)
    keeps = rng.random(n) < 0.5
    state = optimizer.init([w])
    worst: dict[str, float] = {}
    for _ in range(6):
        g = np.where(keeps, size * rng.normal(size=n), decades(rng, n, low, high))
        g = rounded_once(g, dtype)
        lifted = tuple(
            {k: bounded.lift(v) for k, v in slots.items()} for slots in state.slots
        )
        [due], due_state = optimizer.advance(
            [bounded.lift(w)], [g], replace(state, slots=lifted), bounded
        )
        [w], state = optimizer.advance([w], [g], state, plain)
        pairs = {"w": (due, w)}
        for slot in state.slots[0]:
            pairs[slot] = due_state.slots[0][slot], state.slots[0][slot]
        for slot, (expected, came) in pairs.items():
            ratio, _ = compare(expected, came.astype(wide(stored)))
            if np.array_equal(expected.value, came.astype(wide(stored))):
                ratio = np.ones(1)  # a copy: nothing rounds that could reach a bound
            worst[slot] = max(worst.get(slot, 0.0), float(ratio.max()))
    return worst


# Ratios are formed in the oracle's wider format: no rule has a hundred operations, each
# of which is off there by eps of float64 where the bound grants eps / 2 of the format.
def own_rounding(name):
    return 1 + 100 * 2 * float(
        np.finfo(wide(name)).eps / ml_dtypes.finfo(DTYPES[name]).eps
    )


SETTINGS = [
    pytest.param(stored, computing, id=f"{stored}-in-{computing}", marks=marks)
    for stored, computing, marks in [
        ("float32", "float32", ()),
        ("float16", "float32", ()),
        ("bfloat16", "float32", ()),
        ("float16", "float16", ()),
        ("bfloat16", "bfloat16", ()),
        ("float64", "float64", needs_longdouble),
    ]
]


def seen_by(format, optimizer):
    """With an epsilon that is more than nothing in the format."""
    least = 2.0 ** (format.min_exponent - format.precision + 1)
    values = {n: getattr(optimizer, n) for n in optimizer.hyperparameters()}
    lost = [n for n, v in values.items() if isinstance(v, float) and 0 < v < least]
    return replace(optimizer, **dict.fromkeys(lost, least))


@pytest.mark.parametrize(("stored", "computing"), SETTINGS)
@pytest.mark.parametrize("name", reference.OPTIMIZERS)
def test_every_rule_is_sound_and_tight(name, stored, computing):
    cls = reference.OPTIMIZERS[name]
    reached: dict[str, float] = {}
    # Sums and products of whole weights seldom meet the worst case of their terms.
    n = 8000 if cls.elementwise else 16
    for options in cls.examples:
        optimizer = seen_by(FORMATS[computing], cls(**options))
        for slot, ratio in locked(optimizer, stored, computing, n=n).items():
            assert ratio <= own_rounding(stored), (options, slot)
            reached[slot] = max(reached.get(slot, 0.0), ratio)
    # Nor do the 256 values a binade of bfloat16.
    if cls.elementwise and computing != "bfloat16":
        assert min(reached.values()) >= 0.5, reached


class Flushed(np.ndarray):
    """Subnormal numbers are read and written as zero, as TensorFlow sets the CPU."""

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        plain = [
            flushed(np.asarray(x)) if isinstance(x, np.ndarray) else x for x in inputs
        ]
        kwargs.pop("out", None)  # np.mean's own; what is returned will do
        result = getattr(ufunc, method)(*plain, **kwargs)
        return flushed(result).view(Flushed) if result.dtype.kind == "f" else result


def flushed(x):
    small = np.abs(x) < np.finfo(x.dtype).smallest_normal
    return np.where(small, np.copysign(np.zeros_like(x), x), x)


@pytest.mark.parametrize("name", reference.OPTIMIZERS)
def test_rules_on_a_platform_that_flushes_subnormals(name):
    """The same bound holds whether the code flushes or not."""
    cls = reference.OPTIMIZERS[name]
    for options in cls.examples:
        for subject in (Flushed, np.ndarray):
            worst = locked(
                cls(**options),
                "float32",
                "float32",
                platform=TENSORFLOW_CPU,
                code=Plain(np.dtype(np.float32), subject),
                tiny=True,
                n=8000 if cls.elementwise else 16,
            )
            assert max(worst.values()) <= own_rounding("float32"), (options, subject)


def test_flushing_breaks_the_bound_of_a_platform_that_does_not():
    code = Plain(np.dtype(np.float32), Flushed)
    worst = locked(reference.Adam(), "float32", "float32", code=code, tiny=True)
    assert worst["m"] > SLACK


def fma(a, b, c):
    """``a * b + c`` rounded once: the product of float32 is exact in float64."""
    a, b, c = (np.asarray(x).astype(np.float64) for x in (a, b, c))
    return (a * b + c).astype(np.float32)


def f32(*numbers):
    return [np.float32(x) for x in numbers]


def adam_incremental(w, g, m, v, t):
    one_minus_b1, one_minus_b2 = f32(1 - 0.9, 1 - 0.999)
    [step] = f32(0.001 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t))
    m = m + (g - m) * one_minus_b1
    v = v + (g * g - v) * one_minus_b2
    return w - m * step / (np.sqrt(v) + np.float32(1e-7)), m, v


def adam_reassociated(w, g, m, v, t):
    b1, b2, c1, c2, eps = f32(0.9, 0.999, 1 - 0.9, 1 - 0.999, 1e-7)
    [step] = f32(0.001 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t))
    m = c1 * g + b1 * m
    v = (c2 * g) * g + b2 * v
    return w - step * (m / (eps + np.sqrt(v))), m, v


def adam_reciprocal(w, g, m, v, t):
    b1, b2, c1, c2, eps, one = f32(0.9, 0.999, 1 - 0.9, 1 - 0.999, 1e-7, 1)
    [step] = f32(0.001 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t))
    m = b1 * m + c1 * g
    v = b2 * v + c2 * (g * g)
    return w - step * m * (one / (np.sqrt(v) + eps)), m, v


def adam_fused(w, g, m, v, t):
    b1, b2, c1, c2, eps = f32(0.9, 0.999, 1 - 0.9, 1 - 0.999, 1e-7)
    [step] = f32(0.001 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t))
    m = fma(b1, m, c1 * g)
    v = fma(c2 * g, g, b2 * v)
    return fma(-step, m / (np.sqrt(v) + eps), w), m, v


def nadam_constants(t):
    mus = [0.9 * (1 - 0.5 * 0.96 ** (0.004 * s)) for s in range(1, t + 2)]
    return np.prod(mus[:-1]), mus[-2], mus[-1]


def nadam_incremental(w, g, m, v, t):
    product, mu, mu_next = nadam_constants(t)
    c1, c2 = f32(1 - 0.9, 1 - 0.999)
    m = m + c1 * (g - m)
    v = v + c2 * (g * g - v)
    to_g, to_m, to_v = f32(
        (1 - mu) / (1 - product), mu_next / (1 - product * mu_next), 1 / (1 - 0.999**t)
    )
    rate, eps = f32(0.001, 1e-7)
    return w - rate * (to_g * g + to_m * m) / (np.sqrt(v * to_v) + eps), m, v


def nadam_reassociated(w, g, m, v, t):
    product, mu, mu_next = nadam_constants(t)
    b1, b2, c1, c2 = f32(0.9, 0.999, 1 - 0.9, 1 - 0.999)
    m = c1 * g + b1 * m
    v = b2 * v + g * (g * c2)
    a, b, c = f32(1 - product, 1 - product * mu_next, 1 - 0.999**t)
    one_minus_mu, mu_next = f32(1 - mu, mu_next)
    m_bar = mu_next * (m / b) + (g / a) * one_minus_mu
    rate, eps = f32(0.001, 1e-7)
    return w - rate * (m_bar / (eps + np.sqrt(v / c))), m, v


def nadam_fused(w, g, m, v, t):
    product, mu, mu_next = nadam_constants(t)
    b1, b2, c1, c2, one = f32(0.9, 0.999, 1 - 0.9, 1 - 0.999, 1)
    m = fma(b1, m, c1 * g)
    v = fma(b2, v, c2 * (g * g))
    to_g, to_m, to_v = f32(
        (1 - mu) / (1 - product), mu_next / (1 - product * mu_next), 1 / (1 - 0.999**t)
    )
    rate, eps = f32(0.001, 1e-7)
    m_bar = fma(to_g, g, to_m * m)
    return fma(-rate * m_bar, one / (np.sqrt(v * to_v) + eps), w), m, v


class Rewrite(Plain):
    """A rule written by hand in the place of the rule's own function."""

    def __init__(self, function):
        super().__init__(np.dtype(np.float32))
        self.function = function


def rewritten(optimizer, function):
    """``optimizer`` whose plain steps are taken by ``function``, in float32."""

    class Rewritten(type(optimizer)):
        def advance(self, weights, gradients, state, arithmetic):
            if not isinstance(arithmetic, Rewrite):
                return super().advance(weights, gradients, state, arithmetic)
            _, after = super().advance(weights, gradients, state, arithmetic)
            [w], [g], [slots] = weights, gradients, state.slots
            with np.errstate(all="ignore"):
                w, m, v = function(w, g, slots["m"], slots["v"], state.iterations + 1)
            assert w.dtype == m.dtype == v.dtype == np.float32
            return [w], State(after.iterations, ({"m": m, "v": v},), after.shared)

    return Rewritten(), Rewrite(function)


REWRITES = {
    f.__name__: (cls, f)
    for cls, f in [
        (reference.Adam, adam_incremental),
        (reference.Adam, adam_reassociated),
        (reference.Adam, adam_reciprocal),
        (reference.Adam, adam_fused),
        (reference.Nadam, nadam_incremental),
        (reference.Nadam, nadam_reassociated),
        (reference.Nadam, nadam_fused),
    ]
}


@pytest.mark.parametrize("name", REWRITES)
def test_valid_rewrites_stay_within_the_slack(name):
    cls, function = REWRITES[name]
    optimizer, code = rewritten(cls(), function)
    worst = locked(optimizer, "float32", "float32", code=code, n=30_000)
    assert max(worst.values()) <= SLACK, worst
    assert min(worst.values()) >= 0.25, worst


def adam_epsilon_under_the_root(w, g, m, v, t):
    _, m, v = adam_reciprocal(w, g, m, v, t)
    [step] = f32(0.001 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t))
    return w - step * m / np.sqrt(v + np.float32(1e-7) ** 2), m, v


def adam_with_coefficients_of_float32(w, g, m, v, t):
    b2, one = f32(0.999, 1)
    w_new, m, _ = adam_reciprocal(w, g, m, v, t)
    return w_new, m, b2 * v + (one - b2) * (g * g)


def adam_one_step_late(w, g, m, v, t):
    return adam_reciprocal(w, g, m, v, t + 1)


@pytest.mark.parametrize(
    ("function", "slot"),
    [
        (adam_epsilon_under_the_root, "w"),
        (adam_with_coefficients_of_float32, "v"),
        (adam_one_step_late, "w"),
    ],
)
def test_other_rules_are_far_outside(function, slot):
    optimizer, code = rewritten(reference.Adam(), function)
    worst = locked(optimizer, "float32", "float32", code=code)
    assert worst[slot] > 10 * SLACK


def test_the_ideal_convention_computes_half_precision_in_float32():
    assert ideal(FLOAT16).tensors is ideal(BFLOAT16).tensors is FLOAT32
    assert ideal(FLOAT32).tensors is FLOAT32 and ideal(FLOAT64).tensors is FLOAT64
    assert all(ideal(f).coefficients is FLOAT64 for f in FORMATS.values())
