"""Learning-rate schedules against numbers worked by hand and against tf_keras."""

from __future__ import annotations

import dataclasses
import doctest
import math
from fractions import Fraction

import numpy as np
import pytest

from reference import schedules
from reference.conformance.judge import compare
from reference.conformance.rounding import FLOAT16, FLOAT32, SLACK, Bounded, Rounding
from reference.schedules import (
    CosineAnnealing,
    CosineDecay,
    CosineDecayRestarts,
    ExponentialDecay,
    InverseTimeDecay,
    LearningRateSchedule,
    LinearCosineDecay,
    NoisyLinearCosineDecay,
    PiecewiseConstantDecay,
    PolynomialDecay,
)

# --------------------------------------------------------------------------------------
# Worked by hand. The numbers are chosen so that every operation is exact in float64
# (powers of two, and cosines at multiples of a quarter turn), hence `==`.


@pytest.mark.parametrize(
    "schedule, rates",
    [
        (ExponentialDecay(0.5, 2, 0.25), {0: 0.5, 1: 0.5 * 0.5, 2: 0.5 * 0.25}),
        (ExponentialDecay(0.5, 2, 4), {0: 0.5, 1: 0.5 * 2, 4: 0.5 * 16}),
        (ExponentialDecay(0.5, 2, 0), {0: 0.5, 1: 0.0, 2: 0.0}),
        (
            ExponentialDecay(0.5, 2, 0.25, staircase=True),
            {0: 0.5, 1: 0.5, 2: 0.5 * 0.25, 3: 0.5 * 0.25, 4: 0.5 * 0.0625},
        ),
        (
            InverseTimeDecay(0.5, 2, 1),
            {0: 0.5, 1: 0.5 / 1.5, 2: 0.5 / 2, 6: 0.5 / 4},
        ),
        (
            InverseTimeDecay(0.5, 2, 1, staircase=True),
            {0: 0.5, 1: 0.5, 2: 0.5 / 2, 5: 0.5 / 3},
        ),
        (
            PiecewiseConstantDecay([2, 5], [1.0, 0.5, 0.1]),
            {0: 1.0, 2: 1.0, 3: 0.5, 5: 0.5, 6: 0.1, 10**9: 0.1},
        ),
        (PiecewiseConstantDecay([], [0.3]), {0: 0.3, 7: 0.3}),
        (
            PolynomialDecay(1.0, 4, 0.5, power=2),
            {0: 1.0, 1: 0.5 * 0.75**2 + 0.5, 4: 0.5, 5: 0.5},
        ),
        # With cycles: the end steps are 4, 8, 8, 12 for the steps 4, 5, 8, 9.
        (
            PolynomialDecay(1.0, 4, 0.5, cycle=True),
            {
                0: 1.0,
                4: 0.5,
                5: 0.5 * (1 - 5 / 8) + 0.5,
                8: 0.5,
                9: 0.5 * (1 - 9 / 12) + 0.5,
            },
        ),
        # Half a cosine: 1 at the start, 1/2 in the middle, 0 at the end.
        (
            CosineDecay(0.5, 4, alpha=0.25),
            {0: 0.5, 2: 0.5 * (0.75 / 2 + 0.25), 4: 0.5 * 0.25, 9: 0.5 * 0.25},
        ),
        (
            CosineDecay(0.5, 4, warmup_target=None, warmup_steps=3),
            {0: 0.5, 2: 0.25, 4: 0.0},
        ),
        # The warm-up is a line from 0.5 to 2, the decay begins at the target.
        (
            CosineDecay(0.5, 4, 0.25, warmup_target=2.0, warmup_steps=2),
            {0: 0.5, 1: 1.25, 2: 2.0, 4: 2 * (0.75 / 2 + 0.25), 6: 0.5, 9: 0.5},
        ),
        (
            CosineDecay(0.5, 4, warmup_target=2.0, warmup_steps=0),
            {0: 2.0, 2: 1.0, 4: 0.0},
        ),
        # Cycles of 2, 4, 8 steps with heights 1, 1/2, 1/4 begin at 0, 2, 6, 14.
        (
            CosineDecayRestarts(1.0, 2, m_mul=0.5),
            {0: 1.0, 1: 0.5, 2: 0.5, 4: 0.25, 6: 0.25, 10: 0.125, 14: 0.125},
        ),
        (
            CosineDecayRestarts(1.0, 2, m_mul=0.5, alpha=0.5),
            {0: 1.0, 1: 0.75, 2: 0.75, 4: 0.625, 6: 0.625},
        ),
        (
            CosineDecayRestarts(1.0, 2, t_mul=1, m_mul=0.5),
            {0: 1.0, 1: 0.5, 2: 0.5, 3: 0.25, 4: 0.25, 6: 0.125},
        ),
        # One period and not half a one: the cosine is back at 1 at the end.
        (
            LinearCosineDecay(1.0, 4, num_periods=1, alpha=0.25, beta=0.125),
            {0: 1.375, 2: 0.125, 4: 0.375, 9: 0.375},
        ),
        (
            LinearCosineDecay(1.0, 4, alpha=0.25, beta=0.125),
            {0: 1.375, 2: 0.75 / 2 + 0.125, 4: 0.125},
        ),
    ],
)
def test_rates_worked_by_hand(schedule, rates):
    for step, rate in rates.items():
        assert schedule(step) == rate, step
    assert np.array_equal(
        schedule(np.array(list(rates))), np.array(list(rates.values()))
    )


def test_the_documented_defaults():
    assert PolynomialDecay(1.0, 4)(4) == 0.0001
    assert PolynomialDecay(1.0, 4, 0.0)(1) == 0.75
    assert CosineDecay(1.0, 4)(4) == 0.0
    assert CosineDecayRestarts(1.0, 1)(1) == CosineDecayRestarts(1.0, 1)(3) == 1.0
    assert LinearCosineDecay(1.0, 4)(4) == 0.001
    assert LinearCosineDecay(1.0, 4, beta=0.0)(2) == 0.25


def test_doctests():
    outcome = doctest.testmod(schedules)
    assert outcome.attempted > 0
    assert outcome.failed == 0


# --------------------------------------------------------------------------------------
# Restarts: the cycle is decided exactly.


@pytest.mark.parametrize(
    "first, growth",
    [
        (10, "1.1"),
        (100, "1.1"),
        (1000, "1.1"),
        (10000, "1.3"),
        (7, "2"),
        (3, "3"),
        ("2.5", "3"),
        ("1.1", "1"),
        (50, "1"),
    ],
)
def test_a_cycle_begins_at_its_exact_first_step(first, growth):
    """Every whole first step, by exact arithmetic, has height 1 and not 0."""
    schedule = CosineDecayRestarts(1.0, float(first), t_mul=float(growth))
    start, length, whole = Fraction(0), Fraction(first), 0
    for _ in range(30):
        if start.denominator == 1 and start < 2**53:
            assert schedule(int(start)) == 1.0, start
            whole += 1
        start, length = start + length, length * Fraction(growth)
    assert whole >= 2


def test_restart_height_counts_restarts():
    schedule = CosineDecayRestarts(1.0, 1000, t_mul=1.1, m_mul=0.5)
    starts = [0, 1000, 2100, 3310, 4641]
    assert [float(schedule(step)) for step in starts] == [1, 0.5, 0.25, 0.125, 0.0625]
    before = np.array(starts[1:]) - 1
    assert np.all(schedule(before) < np.array([1, 0.5, 0.25, 0.125]) / 100)


def test_restarts_of_equal_length_are_exact_after_many():
    schedule = CosineDecayRestarts(1.0, 1000, t_mul=1.0)
    assert schedule(10**15) == 1.0
    assert schedule(10**15 + 500) == 0.5
    assert CosineDecayRestarts(1.0, 2.0, t_mul=2)(2**53 - 2) == 1.0


# --------------------------------------------------------------------------------------
# Against tf_keras. Keras evaluates in the dtype of `initial_learning_rate`, whose unit
# roundoff is u: every hyperparameter, constant and basic operation is off by a factor
# 1 + e with |e| <= u; `pow` and `cos` are taken to be within two ulp, 4u. Each function
# below adds these up, to first order in u, into a bound of the error of the rate.
TRANSCENDENTAL = 4


def exponential_error(s, lr, n, r, staircase=False):
    p = s / n
    # ln(r**p) = p ln r: r is off by 1 (rounding), p by 1 (division).
    power = p + p * abs(math.log(r)) + TRANSCENDENTAL
    return (power + 2) * lr * r ** (math.floor(p) if staircase else p)  # lr, product


def inverse_time_error(s, lr, n, r, staircase=False):
    p = math.floor(s / n) if staircase else s / n
    divisor = 1 + r * p
    # r, p, their product; the sum; then lr and the quotient.
    return lr / divisor * (3 * r * p / divisor + 1 + 2)


def piecewise_error(s, boundaries, values):
    return max(values)


def polynomial_error(s, lr, n, end, power, cycle=False):
    n = n * max(1, math.ceil(s / n)) if cycle else n
    left = 1 - min(s, n) / n
    span = abs(lr - end)
    if left == 0:
        return 3 * end  # its rounding, and the sum with a zero
    # 1 - p is off by p from p and by 1 - p from the difference: by 1 altogether.
    remaining = power / left + power * abs(math.log(left)) + TRANSCENDENTAL
    product = span * left**power * (remaining + 1) + left**power * (lr + end + span)
    return product + 2 * end + span * left**power


def cosine_part(angle, angle_error):
    """Error of 0.5 * (1 + cos(angle))."""
    return (angle * angle_error + TRANSCENDENTAL + 2) / 2


def cosine_error(s, lr, n, alpha=0.0, warmup_target=None, warmup_steps=0):
    if warmup_target is not None and s < warmup_steps:
        f = s / warmup_steps
        span = abs(warmup_target - lr)
        span_error = warmup_target + lr + span
        return span_error * f + 2 * span * f + lr + (lr + span * f)
    if warmup_target is not None:
        s, lr = s - warmup_steps, warmup_target
    angle = math.pi * min(s, n) / n
    cosine = 0.5 * (1 + math.cos(angle))
    factor = (1 - alpha) * cosine + alpha
    # The angle: pi, the quotient, the product. 1 - alpha: alpha and the difference.
    scaled = (1 - alpha) * cosine_part(angle, 3) + (alpha + (1 - alpha)) * cosine
    return lr * (scaled + (1 - alpha) * cosine + alpha + factor + 2 * factor)


def restarts_error(s, lr, n, t_mul=2.0, m_mul=1.0, alpha=0.0):
    i, start, length = 0, 0.0, float(n)
    while start + length <= s:
        i, start, length = i + 1, start + length, length * t_mul
    place = (s - start) / length
    if t_mul == 1:
        place_error = s / n  # the quotient; the difference is exact (Sterbenz)
    else:
        # (s/n - sum) / t**i with sum = (1 - t**i) / (1 - t), t exactly representable.
        t_i = t_mul**i
        total = (t_i - 1) / (t_mul - 1)
        sum_error = TRANSCENDENTAL * t_i / (t_mul - 1) + 2 * total
        place_error = (s / n + sum_error) / t_i + (TRANSCENDENTAL + 2) * place
    angle = math.pi * place
    cosine = (math.pi * place_error + 2 * angle + TRANSCENDENTAL + 2) / 2
    height = m_mul**i
    value = height * 0.5 * (1 + math.cos(angle))
    # The height: m_mul**i and one product. Then as in CosineDecay.
    bump = height * cosine + value * (i + TRANSCENDENTAL + 1)
    factor = (1 - alpha) * value + alpha
    scaled = (1 - alpha) * bump + (alpha + (1 - alpha) + (1 - alpha)) * value
    return lr * (scaled + alpha + factor + 2 * factor)


def linear_cosine_error(s, lr, n, num_periods=0.5, alpha=0.0, beta=0.001):
    p = min(s, n) / n
    angle = 2 * math.pi * num_periods * p
    cosine = 0.5 * (1 + math.cos(angle))
    line = alpha + 1 - p
    # The angle: pi, num_periods, the quotient, two products. The line: alpha, the
    # quotient, the sum.
    product = line * cosine_part(angle, 5) + (alpha + (1 - p) + line) * cosine
    rate = line * cosine + beta
    return lr * (product + line * cosine + beta + rate + 2 * rate)


BESIDE_KERAS = {
    "exponential": (ExponentialDecay, (0.1, 30, 0.9), {}, exponential_error),
    "exponential growth": (ExponentialDecay, (1e-3, 20, 1.7), {}, exponential_error),
    "exponential staircase": (
        ExponentialDecay,
        (0.1, 30, 0.9),
        {"staircase": True},
        exponential_error,
    ),
    "inverse time": (InverseTimeDecay, (0.1, 7, 0.3), {}, inverse_time_error),
    "inverse time staircase": (
        InverseTimeDecay,
        (0.1, 7, 0.3),
        {"staircase": True},
        inverse_time_error,
    ),
    "piecewise": (
        PiecewiseConstantDecay,
        ([10, 77, 200], [0.1, 0.03, 0.01, 0.3]),
        {},
        piecewise_error,
    ),
    "polynomial line": (PolynomialDecay, (0.1, 100, 0.003, 1.0), {}, polynomial_error),
    "polynomial": (PolynomialDecay, (0.1, 200, 0.003, 2.5), {}, polynomial_error),
    "polynomial root": (PolynomialDecay, (0.01, 250, 0.3, 0.5), {}, polynomial_error),
    "polynomial cycle": (
        PolynomialDecay,
        (0.1, 40, 0.003, 1.5),
        {"cycle": True},
        polynomial_error,
    ),
    "cosine": (CosineDecay, (0.1, 200), {}, cosine_error),
    "cosine alpha": (CosineDecay, (0.1, 100, 0.2), {}, cosine_error),
    "cosine warm-up": (
        CosineDecay,
        (0.01, 150, 0.1),
        {"warmup_target": 0.3, "warmup_steps": 40},
        cosine_error,
    ),
    "cosine from target": (
        CosineDecay,
        (0.01, 150),
        {"warmup_target": 0.3, "warmup_steps": 0},
        cosine_error,
    ),
    "restarts": (CosineDecayRestarts, (0.1, 10), {}, restarts_error),
    "restarts slow": (
        CosineDecayRestarts,
        (0.1, 10, 1.5, 0.8, 0.1),
        {},
        restarts_error,
    ),
    "restarts equal": (CosineDecayRestarts, (0.1, 16, 1.0, 0.9), {}, restarts_error),
    "linear cosine": (
        LinearCosineDecay,
        (0.1, 200, 0.5, 0.0, 0.001),
        {},
        linear_cosine_error,
    ),
    "linear cosine periods": (
        LinearCosineDecay,
        (0.1, 150, 2.5, 0.1, 0.01),
        {},
        linear_cosine_error,
    ),
}
STEPS = range(300)


def undecided_in_keras(n, t_mul=2.0, *_):
    """Restarts, where Keras' logarithm may fall on either side of a whole number."""
    if t_mul == 1:
        return
    start, length = n, n * t_mul
    while start <= STEPS[-1]:
        yield start
        start, length = start + length, length * t_mul


@pytest.fixture(scope="module")
def keras():
    pytest.importorskip(
        "tf_keras", reason="tf_keras, the second source, is not installed"
    )
    from tf_keras.src.optimizers.schedules import learning_rate_schedule

    return learning_rate_schedule


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("case", BESIDE_KERAS)
def test_agrees_with_tf_keras(keras, case, dtype):
    cls, args, kwargs, error = BESIDE_KERAS[case]
    ours = cls(*args, **kwargs)

    def cast(value):
        # Keras sends Python floats through float32 even where it computes in float64.
        if isinstance(value, list):
            return [cast(one) for one in value]
        return dtype(value) if isinstance(value, float) else value

    theirs = getattr(keras, cls.__name__)(
        *map(cast, args), **{name: cast(value) for name, value in kwargs.items()}
    )
    skipped = (
        set(undecided_in_keras(*args[1:])) if cls is CosineDecayRestarts else set()
    )
    # Both sides round: theirs in `dtype`, ours in float64. One more u for what is of
    # second order.
    u = np.finfo(dtype).eps / 2 + np.finfo(np.float64).eps / 2
    for step in STEPS:
        if step in skipped:
            continue
        due = float(ours(step))
        bound = u * (error(step, *args, **kwargs) + due)
        assert abs(float(theirs(step)) - due) <= bound, step


@pytest.mark.parametrize("first, restart", [(10, 21), (100, 210), (1000, 2100)])
def test_keras_misses_a_restart_and_we_do_not(keras, first, restart):
    """Its cycle is the floor of a float32 logarithm, one too low at the restart."""
    theirs = keras.CosineDecayRestarts(1.0, first, t_mul=1.1)
    lowest = np.finfo(np.float32).eps
    assert abs(float(theirs(restart))) <= lowest
    assert CosineDecayRestarts(1.0, first, t_mul=1.1)(restart) == 1.0


def test_keras_gives_nan_for_shrinking_cycles_and_we_refuse_them(keras):
    theirs = keras.CosineDecayRestarts(1.0, 10, t_mul=0.5)
    assert math.isnan(float(theirs(25)))  # all cycles end before step 20
    with pytest.raises(ValueError, match="t_mul must be finite and at least 1"):
        CosineDecayRestarts(1.0, 10, t_mul=0.5)


@pytest.mark.parametrize("step, variance", [(0, 0.25), (3, 0.25 / 4**2)])
def test_noise_has_the_distribution_that_keras_states(step, variance):
    """Without a cosine, rate = line + noise: mean and variance within five sigma."""
    draws = 4000
    noise = np.array(
        [
            NoisyLinearCosineDecay(
                1.0, 8, 0.25, variance_decay=2, num_periods=0, beta=0.0, seed=seed
            )(step)
            for seed in range(draws)
        ]
    ) - (1 - step / 8)
    assert abs(noise.mean()) < 5 * math.sqrt(variance / draws)
    assert abs(noise.var() - variance) < 5 * variance * math.sqrt(2 / draws)


# --------------------------------------------------------------------------------------
# What holds for every schedule.

EXAMPLES = {name: cls(*args, **kw) for name, (cls, args, kw, _) in BESIDE_KERAS.items()}
EXAMPLES["annealing"] = CosineAnnealing(10, 0.2, 0.9)
EXAMPLES["noisy"] = NoisyLinearCosineDecay(0.1, 200, seed=3)
EXAMPLES["restarts 1.1"] = CosineDecayRestarts(0.1, 10, 1.1, 0.7)


def test_every_schedule_is_among_the_examples():
    classes = {getattr(schedules, name) for name in schedules.__all__}
    assert {type(one) for one in EXAMPLES.values()} == classes - {LearningRateSchedule}


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_the_rate_has_shape_and_dtype_of_the_step(name, dtype):
    schedule = EXAMPLES[name]
    steps = np.arange(24).reshape(2, 3, 4).astype(dtype)
    rates = schedule(steps)
    assert rates.shape == steps.shape
    assert rates.dtype == dtype
    assert np.array_equal(steps, np.arange(24).reshape(2, 3, 4))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.longdouble])
@pytest.mark.parametrize("case", BESIDE_KERAS)
def test_the_rate_is_as_exact_as_the_dtype_allows(case, dtype):
    """The bound of the comparison with Keras, for NumPy's other dtypes."""
    cls, args, kwargs, error = BESIDE_KERAS[case]
    schedule = cls(*args, **kwargs)
    steps = [step for step in range(0, 300, 7)]
    rates = schedule(np.array(steps, dtype))
    u = np.finfo(dtype).eps / 2 + np.finfo(np.float64).eps / 2
    for step, rate in zip(steps, rates, strict=True):
        due = schedule(step)
        bound = u * (error(step, *args, **kwargs) + float(due))
        assert abs(float(rate) - due) <= bound, step


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_array_of_steps_gives_the_rates_of_each(name):
    schedule = EXAMPLES[name]
    steps = np.arange(300)
    one_by_one = [schedule(int(step)) for step in steps]
    at_once = schedule(steps)
    # Vectorised cos and pow may round the last bit otherwise: two ulp of each.
    bound = 2 * TRANSCENDENTAL * np.finfo(np.float64).eps * np.abs(one_by_one).max()
    assert np.all(np.abs(at_once - one_by_one) <= bound)


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_same_step_has_the_same_rate_in_any_order(name):
    schedule = EXAMPLES[name]
    forward = [float(schedule(step)) for step in range(50)]
    again = dataclasses.replace(schedule)
    assert forward[::-1] == [float(again(step)) for step in reversed(range(50))]
    with pytest.raises(dataclasses.FrozenInstanceError):
        schedule.initial_learning_rate = 1.0


class Wrapped(np.lib.mixins.NDArrayOperatorsMixin):
    """A number that NumPy's functions know only through its protocols."""

    def __init__(self, value):
        self.value = np.asarray(value)

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        assert method == "__call__" and not kwargs
        result = ufunc(*[unwrapped(one) for one in inputs])
        return result if np.asarray(result).dtype == bool else Wrapped(result)

    def __array_function__(self, function, types, args, kwargs):
        assert function is np.where
        return Wrapped(np.where(*[unwrapped(one) for one in args]))

    def __getitem__(self, key):
        return Wrapped(self.value[key])


def unwrapped(value):
    return value.value if isinstance(value, Wrapped) else value


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"noisy"}))
def test_runs_on_numbers_of_other_kinds(name):
    schedule = EXAMPLES[name]
    steps = np.arange(0.0, 100.0, 7.0)
    rates = schedule(Wrapped(steps))
    assert isinstance(rates, Wrapped)
    # `array ** 0.5` may take another way than np.power: two ulp of each.
    due = schedule(steps)
    bound = 2 * TRANSCENDENTAL * np.finfo(np.float64).eps * np.max(due)
    assert np.all(np.abs(rates.value - due) <= bound)


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"noisy"}))
def test_hyperparameters_may_be_numbers_of_other_kinds(name):
    schedule = EXAMPLES[name]
    if isinstance(schedule, PiecewiseConstantDecay):
        changed = {"values": [Wrapped(value) for value in schedule.values]}
    elif getattr(schedule, "warmup_target", None) is not None:
        changed = {"warmup_target": Wrapped(schedule.warmup_target)}
    elif isinstance(schedule, CosineAnnealing):
        changed = {"eta_max": Wrapped(schedule.eta_max)}
    else:
        rate = schedule.initial_learning_rate
        changed = {"initial_learning_rate": Wrapped(rate)}
    rates = dataclasses.replace(schedule, **changed)(5)
    assert isinstance(rates, Wrapped)
    assert rates.value == schedule(5)


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"noisy"}))
@pytest.mark.parametrize("number_format", [FLOAT16, FLOAT32])
def test_runs_on_numbers_that_carry_their_bound(name, number_format):
    """The formula in half or single precision is within the bound that it derives."""
    schedule = EXAMPLES[name]
    steps = np.arange(0.0, 300.0, 7.0)
    due = schedule(Bounded(steps, 0.0, Rounding(number_format)))
    assert np.array_equal(due.value, schedule(steps))
    with np.errstate(over="ignore"):
        came = schedule(steps.astype(number_format.name))
    assert np.max(compare(due, came)[0]) <= SLACK


def test_a_late_step_is_not_lost_in_a_half_precision_weight():
    """Keras casts the step to the weight's dtype, where 70000 is infinite: rate 0."""
    assert ExponentialDecay(1.0, 100_000, 0.5)(70_000) == 0.5**0.7


@pytest.mark.parametrize("case", ["alpha 1", "power 0", "no decay", "one cycle"])
def test_identities(case):
    steps = np.arange(60)
    left, right = {
        "alpha 1": (CosineDecay(0.3, 40, alpha=1.0)(steps), np.full(60, 0.3)),
        "power 0": (PolynomialDecay(0.5, 40, 0.25, power=0)(steps), np.full(60, 0.5)),
        "no decay": (InverseTimeDecay(0.3, 40, 0)(steps), np.full(60, 0.3)),
        "one cycle": (
            CosineDecayRestarts(0.3, 60, alpha=0.125)(steps),
            CosineDecay(0.3, 60, alpha=0.125)(steps),
        ),
    }[case]
    assert np.array_equal(left, right)


def test_noise_of_variance_zero_is_the_schedule_without_noise():
    steps = np.arange(60)
    quiet = NoisyLinearCosineDecay(0.3, 40, initial_variance=0.0, num_periods=2)
    assert np.array_equal(
        quiet(steps), LinearCosineDecay(0.3, 40, num_periods=2)(steps)
    )
    loud = NoisyLinearCosineDecay(0.3, 40)
    assert np.unique(loud(steps[:40])).size == 40
    assert loud(3) != dataclasses.replace(loud, seed=1)(3)


def test_a_schedule_of_ones_own():
    class Constant(LearningRateSchedule):
        def __call__(self, step):
            return 0.5

    assert Constant()(3) == 0.5
    with pytest.raises(TypeError, match="abstract"):
        LearningRateSchedule()


@pytest.mark.parametrize(
    "build, error, message",
    [
        (
            lambda: ExponentialDecay(-0.1, 10, 0.9),
            ValueError,
            "ExponentialDecay: initial_learning_rate must be finite and not negative, "
            "not -0.1",
        ),
        (
            lambda: ExponentialDecay(0.1, 0, 0.9),
            ValueError,
            "ExponentialDecay: decay_steps must be finite and positive, not 0",
        ),
        (
            lambda: ExponentialDecay(0.1, 10, float("nan")),
            ValueError,
            "ExponentialDecay: decay_rate must be finite and not negative, not nan",
        ),
        (
            lambda: InverseTimeDecay(0.1, float("inf"), 0.9),
            ValueError,
            "InverseTimeDecay: decay_steps must be finite and positive, not inf",
        ),
        (
            lambda: InverseTimeDecay("0.1", 10, 0.9),
            TypeError,
            "InverseTimeDecay: initial_learning_rate must be a number, finite and not "
            "negative, not '0.1'",
        ),
        (
            lambda: PiecewiseConstantDecay([10], [0.1]),
            ValueError,
            "PiecewiseConstantDecay: values must be one more than boundaries, not "
            "1 values beside 1 boundaries",
        ),
        (
            lambda: PiecewiseConstantDecay([10, 10], [0.1, 0.2, 0.3]),
            ValueError,
            "PiecewiseConstantDecay: boundaries must increase strictly, not go from "
            "10 to 10",
        ),
        (
            lambda: PiecewiseConstantDecay(10, [0.1]),
            TypeError,
            "PiecewiseConstantDecay: boundaries must be a sequence of numbers, not 10",
        ),
        (
            lambda: PiecewiseConstantDecay([10], [0.1, -0.2]),
            ValueError,
            r"PiecewiseConstantDecay: values\[1\] must be finite and not negative, "
            "not -0.2",
        ),
        (
            lambda: PiecewiseConstantDecay([None], [0.1, 0.2]),
            TypeError,
            r"PiecewiseConstantDecay: boundaries\[0\] must be a number, finite, "
            "not None",
        ),
        (
            lambda: PolynomialDecay(0.1, 10, power=-1),
            ValueError,
            "PolynomialDecay: power must be finite and not negative, not -1",
        ),
        (
            lambda: CosineDecay(0.1, 10, warmup_target=0.2, warmup_steps=-3),
            ValueError,
            "CosineDecay: warmup_steps must be finite and not negative, not -3",
        ),
        (
            lambda: CosineDecay(0.1, 10, warmup_target=-0.2),
            ValueError,
            "CosineDecay: warmup_target must be finite and not negative, not -0.2",
        ),
        (
            lambda: CosineDecayRestarts(0.1, -10),
            ValueError,
            "CosineDecayRestarts: first_decay_steps must be finite and positive, "
            "not -10",
        ),
        (
            lambda: CosineDecayRestarts(0.1, np.array([3, 4])),
            TypeError,
            "CosineDecayRestarts: first_decay_steps must be a plain number, not",
        ),
        (
            lambda: LinearCosineDecay(0.1, 10, num_periods=-1),
            ValueError,
            "LinearCosineDecay: num_periods must be finite and not negative, not -1",
        ),
        (
            lambda: NoisyLinearCosineDecay(0.1, 10, initial_variance=-1),
            ValueError,
            "NoisyLinearCosineDecay: initial_variance must be finite and not negative, "
            "not -1",
        ),
    ],
)
def test_wrong_arguments_are_refused_by_name(build, error, message):
    with pytest.raises(error, match=message):
        build()
