"""A second opinion: every rule on 50 decimal digits, against the float64 oracle.

The same rules run on mpmath numbers, in object arrays, through the same driver. What
the oracle computes in float64 must lie within its own bound of that, the one which
bounded numbers of float64 carry; hyperparameters are what float64 holds of them.
"""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

import reference
from reference import IndexedSlices, State
from reference.conformance.convention import BoundedArithmetic, Convention
from reference.conformance.rounding import FLOAT64, IEEE
from reference.linalg import leading_pair
from reference.optimizer import Arithmetic

DIGITS = 50
STEPS = 5

EXAMPLES = [
    pytest.param(cls, options, id="-".join([name, *options]))
    for name, cls in reference.OPTIMIZERS.items()
    for options in cls.examples
]

needs_longdouble = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant <= 52,
    reason="longdouble is float64 here: no wider format holds the exact values",
)


class Digits(np.lib.mixins.NDArrayOperatorsMixin):
    """An array of mpmath numbers, which NumPy's functions know how to take apart."""

    def __init__(self, numbers):
        self.numbers = np.asarray(numbers, dtype=object)

    @classmethod
    def of(cls, array):
        """The exact values of a float64 array."""
        return cls(to_mpf(np.asarray(array, dtype=np.float64).astype(object)))

    @property
    def shape(self):
        return self.numbers.shape

    @property
    def ndim(self):
        return self.numbers.ndim

    @property
    def T(self):
        return Digits(self.numbers.T)

    def reshape(self, *shape):
        return Digits(self.numbers.reshape(*shape))

    def __int__(self):
        return int(self.numbers.item())

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        if ufunc is np.matmul:
            return Digits(np.matmul(*(x.numbers for x in inputs)))
        function = FUNCTIONS.get(ufunc.__name__)
        if function is None or method != "__call__" or kwargs:
            return NotImplemented
        inputs = (x.numbers if isinstance(x, Digits) else x for x in inputs)
        return Digits(np.frompyfunc(function, ufunc.nin, 1)(*inputs))

    def __array_function__(self, function, types, args, kwargs):
        if function not in (np.where, np.sum, np.mean, np.max):
            return NotImplemented
        args = (x.numbers if isinstance(x, Digits) else x for x in args)
        return Digits(function(*args, **kwargs))

    def __getitem__(self, key):
        return Digits(self.numbers[key])

    def __setitem__(self, key, other):
        self.numbers[key] = other.numbers

    def copy(self):
        return Digits(self.numbers.copy())

    def zeros(self, shape):
        return Digits.of(np.zeros(shape))

    def sum_rows(self, position, count):
        total = self.zeros((count, *self.shape[1:]))
        for row, target in zip(self.numbers, np.ravel(position), strict=True):
            total.numbers[target] = total.numbers[target] + row
        return total

    def distance(self, array):
        """How far a float64 array is from these numbers."""
        exact = to_mpf(np.asarray(array, dtype=np.float64).astype(object))
        away = np.abs(np.asarray(exact - self.numbers, dtype=object))
        return np.vectorize(float, otypes=[float])(away)


@leading_pair.register
def _(matrix: Digits) -> Digits:
    if not np.any(matrix.numbers):
        return Digits.of(np.zeros(matrix.shape))
    u, _, vt = mpmath.svd_r(mpmath.matrix(matrix.numbers.tolist()))
    return Digits(np.outer([u[i, 0] for i in range(u.rows)], list(vt[0, :])))


to_mpf = np.frompyfunc(mpmath.mpf, 1, 1)


def _quotient(x, y):
    """As IEEE 754 has it where `y` is zero."""
    if y:
        return x / y
    return mpmath.sign(x) * mpmath.inf if x else mpmath.nan


FUNCTIONS = {
    "add": lambda x, y: x + y,
    "subtract": lambda x, y: x - y,
    "multiply": lambda x, y: x * y,
    "divide": _quotient,
    "power": mpmath.power,
    "sqrt": mpmath.sqrt,
    "square": lambda x: x * x,
    "absolute": abs,
    "negative": lambda x: -x,
    "sign": mpmath.sign,
    "tanh": mpmath.tanh,
    "maximum": max,
    "minimum": min,
    "equal": lambda x, y: x == y,
    "less": lambda x, y: x < y,
    "less_equal": lambda x, y: x <= y,
    "greater": lambda x, y: x > y,
    "greater_equal": lambda x, y: x >= y,
}


class Exact(Arithmetic):
    """Fifty digits, never rounded to a narrower format."""

    def tensor(self, array):
        return array if isinstance(array, Digits) else Digits.of(array)

    def coefficient(self, value, name):
        return value if isinstance(value, Digits) else Digits.of(value)

    def store(self, result, like):
        return result


class Watched(BoundedArithmetic):
    """The bound of the oracle's own float64 arithmetic, shared slots included."""

    def __init__(self):
        super().__init__(Convention("", FLOAT64, FLOAT64), FLOAT64, IEEE, FLOAT64)


def inputs(seed=0):
    """Weights, and gradients over ten decades: dense, and rows with duplicates."""
    rng = np.random.default_rng(seed)

    def spread(*shape):
        return rng.choice([-1.0, 1.0], shape) * 10.0 ** rng.uniform(-7, 3, shape)

    weights = [rng.normal(size=24), rng.normal(size=(5, 3))]
    weights[0][:8] = 0
    steps = [
        [spread(24), IndexedSlices(spread(4, 3), rng.integers(0, 4, 4))]
        for _ in range(STEPS)
    ]
    steps[2][0][::3] = 0
    return weights, steps


def mapped(state, function):
    """A state whose slots are seen through ``function``."""
    slots = tuple({k: function(v) for k, v in each.items()} for each in state.slots)
    return State(state.iterations, slots, state.shared)


def pairs(optimizer, first, second, third):
    """Each tensor in three arithmetics, with its name."""
    for i, tensors in enumerate(zip(first[0], second[0], third[0], strict=True)):
        yield f"weight {i}", tensors
    for i, slots in enumerate(
        zip(first[1].slots, second[1].slots, third[1].slots, strict=True)
    ):
        for name in slots[0]:
            yield f"{name} of weight {i}", tuple(each[name] for each in slots)
    for name in first[1].shared:
        yield name, tuple(each[1].shared[name] for each in (first, second, third))


def worst_ratio(optimizer, *, locked):
    """The largest distance of float64 from fifty digits, over the oracle's bound."""
    weights, steps = inputs()
    plain = weights, optimizer.init(weights)
    bounding = Watched()
    worst, decided = 0.0, 0

    def start():
        exact = [Digits.of(w) for w in plain[0]], mapped(plain[1], Digits.of)
        lifted = [bounding.lift(w) for w in plain[0]], mapped(plain[1], bounding.lift)
        return exact, lifted

    exact, lifted = start()
    for grads in steps:
        if locked:
            exact, lifted = start()
        plain = optimizer.step(plain[0], grads, plain[1])
        exact = optimizer.advance(exact[0], grads, exact[1], Exact())
        lifted = optimizer.advance(lifted[0], grads, lifted[1], bounding)
        for name, (came, due, known) in pairs(optimizer, plain, exact, lifted):
            bound = np.broadcast_to(known.bound, known.shape)
            sure = np.isfinite(bound) & ~np.broadcast_to(known.branch, known.shape)
            distance = due.distance(came)
            assert not np.any(distance[sure & (bound == 0)]), name
            # what the bound is around is the same number, once it is float64 too
            assert np.all(due.distance(known.value)[sure] <= bound[sure]), name
            sure &= bound > 0
            decided += np.count_nonzero(sure)
            ratio = np.max(distance[sure] / bound[sure], initial=0.0)
            worst = max(worst, float(ratio))
    assert decided
    return worst


@needs_longdouble
@pytest.mark.parametrize(("cls", "options"), EXAMPLES)
@pytest.mark.parametrize("sparse", [None, "every_row", "touched_rows"])
def test_a_step_in_float64_lies_within_its_bound_of_fifty_digits(cls, options, sparse):
    with mpmath.workdps(DIGITS):
        worst = worst_ratio(cls(**options, sparse=sparse), locked=True)
    assert 0.25 <= worst <= 1, worst


@needs_longdouble
@pytest.mark.parametrize(("cls", "options"), EXAMPLES)
def test_a_run_in_float64_lies_within_its_grown_bound_of_fifty_digits(cls, options):
    with mpmath.workdps(DIGITS):
        worst = worst_ratio(cls(**options), locked=False)
    assert 0 < worst <= 1, worst
