"""Learning-rate schedules: the learning rate as a pure function of the step.

A schedule is called with the number of steps already taken (`0` for the first step,
as `tf.keras.optimizers` does with `iterations`) and returns the learning rate of the
step that comes next. Classes and arguments are named as in
`tf.keras.optimizers.schedules`; `name`, which changes no number, is not taken.

Each formula runs on whatever numbers it is called with: Python numbers, NumPy arrays of
any floating dtype (the result has the dtype of `step`; integers give float64) and
array-like objects that implement NumPy's functions. Plain numbers only are what says
*where* a cycle begins (`first_decay_steps`, `t_mul` of `CosineDecayRestarts`) and the
step for which `NoisyLinearCosineDecay` draws its noise.

>>> schedule = ExponentialDecay(0.5, decay_steps=10, decay_rate=0.25)
>>> print(schedule(0), schedule(5), schedule(10))
0.5 0.25 0.125
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Context, Decimal, InvalidOperation
from fractions import Fraction
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

Numbers: TypeAlias = Any
"""A number, an array of numbers, or an object that behaves as one."""

LAST_STEP = 2**64
"""No counter goes further: where a schedule looks for restarts, it stops here."""

__all__ = [
    "CosineAnnealing",
    "CosineDecay",
    "CosineDecayRestarts",
    "ExponentialDecay",
    "InverseTimeDecay",
    "LearningRateSchedule",
    "LinearCosineDecay",
    "NoisyLinearCosineDecay",
    "PiecewiseConstantDecay",
    "PolynomialDecay",
]


class LearningRateSchedule(ABC):
    """A learning rate that depends on the step. Subclass it and define `__call__`.

    >>> class Harmonic(LearningRateSchedule):
    ...     def __call__(self, step):
    ...         return 1 / (step + 1)
    >>> Harmonic()(3)
    0.25
    """

    @abstractmethod
    def __call__(self, step: Numbers) -> Numbers:
        """Return the learning rate of the step that follows `step` earlier ones.

        Args:
            step: Steps already taken, not negative: a number or an array of any shape.

        Returns:
            The learning rate, of the shape of `step`.
        """


@dataclass(frozen=True)
class ExponentialDecay(LearningRateSchedule):
    """Multiply the rate by `decay_rate` every `decay_steps` steps.

    `initial_learning_rate * decay_rate ** (step / decay_steps)`

    Args:
        initial_learning_rate: Rate at step 0; finite, not negative.
        decay_steps: Steps in which the rate falls by the factor `decay_rate`; positive.
        decay_rate: The factor; finite, not negative.
        staircase: Let the exponent be whole: the rate falls once every `decay_steps`.

    Raises:
        ValueError: An argument outside its domain.
        TypeError: An argument that is not a number.

    >>> schedule = ExponentialDecay(0.5, decay_steps=2, decay_rate=0.25, staircase=True)
    >>> print(schedule(1), schedule(2), schedule(3), schedule(4))
    0.5 0.125 0.125 0.03125
    """

    initial_learning_rate: Numbers
    decay_steps: Numbers
    decay_rate: Numbers
    staircase: bool = False

    def __post_init__(self) -> None:
        _require_not_negative(self, "initial_learning_rate", "decay_rate")
        _require_positive(self, "decay_steps")

    def __call__(self, step: Numbers) -> Numbers:
        decays = step / self.decay_steps
        if self.staircase:
            decays = np.floor(decays)
        return self.initial_learning_rate * self.decay_rate**decays


@dataclass(frozen=True)
class InverseTimeDecay(LearningRateSchedule):
    """Divide the rate by a number that grows by `decay_rate` every `decay_steps` steps.

    `initial_learning_rate / (1 + decay_rate * step / decay_steps)`

    The `decay` argument of an optimizer is this schedule with `decay_steps=1`.

    Args:
        initial_learning_rate: Rate at step 0; finite, not negative.
        decay_steps: Steps in which the divisor grows by `decay_rate`; positive.
        decay_rate: Growth of the divisor; finite, not negative.
        staircase: Let the divisor grow once every `decay_steps` steps.

    Raises:
        ValueError: An argument outside its domain.
        TypeError: An argument that is not a number.

    >>> schedule = InverseTimeDecay(0.5, decay_steps=10, decay_rate=3)
    >>> print(schedule(0), schedule(10), schedule(50))
    0.5 0.125 0.03125
    """

    initial_learning_rate: Numbers
    decay_steps: Numbers
    decay_rate: Numbers
    staircase: bool = False

    def __post_init__(self) -> None:
        _require_not_negative(self, "initial_learning_rate", "decay_rate")
        _require_positive(self, "decay_steps")

    def __call__(self, step: Numbers) -> Numbers:
        decays = step / self.decay_steps
        if self.staircase:
            decays = np.floor(decays)
        return self.initial_learning_rate / (1 + self.decay_rate * decays)


@dataclass(frozen=True)
class PiecewiseConstantDecay(LearningRateSchedule):
    """Keep the rate constant between boundaries.

    `values[0]` for `step <= boundaries[0]`, `values[i]` for
    `boundaries[i - 1] < step <= boundaries[i]`, `values[-1]` after the last boundary:
    a boundary is the last step of the *old* value.

    Args:
        boundaries: Numbers, strictly increasing; none gives a constant rate.
        values: One more than there are boundaries; finite, not negative.

    Raises:
        ValueError: Another number of values, boundaries that do not increase, or a
            value outside its domain.
        TypeError: A boundary or a value that is not a number, or not a sequence.

    >>> schedule = PiecewiseConstantDecay(boundaries=[2, 5], values=[1.0, 0.5, 0.1])
    >>> print([float(schedule(step)) for step in (0, 2, 3, 5, 6)])
    [1.0, 1.0, 0.5, 0.5, 0.1]
    """

    boundaries: Sequence[Numbers]
    values: Sequence[Numbers]

    def __post_init__(self) -> None:
        for name in ("boundaries", "values"):
            given = getattr(self, name)
            if not isinstance(given, Iterable) or isinstance(given, (str, bytes)):
                raise TypeError(
                    f"{type(self).__name__}: {name} must be a sequence of numbers, "
                    f"not {given!r}"
                )
            object.__setattr__(self, name, tuple(given))
        if len(self.values) != len(self.boundaries) + 1:
            raise ValueError(
                f"{type(self).__name__}: values must be one more than boundaries, not "
                f"{len(self.values)} values beside {len(self.boundaries)} boundaries"
            )
        for i, boundary in enumerate(self.boundaries):
            _require(self, f"boundaries[{i}]", boundary, -np.inf, "finite")
        for earlier, later in pairwise(self.boundaries):
            if not later > earlier:
                raise ValueError(
                    f"{type(self).__name__}: boundaries must increase strictly, "
                    f"not go from {earlier!r} to {later!r}"
                )
        for i, value in enumerate(self.values):
            _require(
                self, f"values[{i}]", value, 0, "finite and not negative", closed=True
            )

    def __call__(self, step: Numbers) -> Numbers:
        rate = self.values[0] + 0 * step  # so that the result has the dtype of `step`
        for boundary, value in zip(self.boundaries, self.values[1:], strict=True):
            rate = _choose(step > boundary, value, rate)
        return rate


@dataclass(frozen=True)
class PolynomialDecay(LearningRateSchedule):
    """Go from one rate to another along a power of the steps that remain.

    `(initial_learning_rate - end_learning_rate) * (1 - step / decay_steps) ** power
    + end_learning_rate`, constant after `decay_steps`. With `cycle`, `decay_steps` is
    replaced by its first multiple that is not below `step`: the rate jumps up after
    each multiple and falls to the end rate again, more slowly each time.

    Args:
        initial_learning_rate: Rate at step 0; finite, not negative.
        decay_steps: Steps to the end rate; positive.
        end_learning_rate: Rate from then on; finite, not negative.
        power: Exponent; finite, not negative. 1 is a straight line.
        cycle: Begin again after each multiple of `decay_steps`.

    Raises:
        ValueError: An argument outside its domain.
        TypeError: An argument that is not a number.

    >>> schedule = PolynomialDecay(1.0, 4, end_learning_rate=0.5, power=2)
    >>> print(schedule(0), schedule(2), schedule(4), schedule(6))
    1.0 0.625 0.5 0.5
    >>> schedule = PolynomialDecay(1.0, 4, end_learning_rate=0.5, power=2, cycle=True)
    >>> print(schedule(4), schedule(6), schedule(8))
    0.5 0.53125 0.5
    """

    initial_learning_rate: Numbers
    decay_steps: Numbers
    end_learning_rate: Numbers = 0.0001
    power: Numbers = 1.0
    cycle: bool = False

    def __post_init__(self) -> None:
        _require_not_negative(
            self, "initial_learning_rate", "end_learning_rate", "power"
        )
        _require_positive(self, "decay_steps")

    def __call__(self, step: Numbers) -> Numbers:
        end_step = self.decay_steps
        if self.cycle:
            end_step = end_step * np.maximum(1, np.ceil(step / self.decay_steps))
        completed = np.minimum(step, end_step) / end_step
        remaining = (1 - completed) ** self.power
        span = self.initial_learning_rate - self.end_learning_rate
        return span * remaining + self.end_learning_rate


@dataclass(frozen=True)
class CosineDecay(LearningRateSchedule):
    """Decay along half a cosine, after a linear warm-up if one is asked for.

    Without `warmup_target`, with `p = min(step, decay_steps) / decay_steps`:
    `initial_learning_rate * ((1 - alpha) * (1 + cos(pi * p)) / 2 + alpha)`.
    With it, the rate first rises on a line from `initial_learning_rate` to
    `warmup_target` in `warmup_steps` steps; then the cosine takes `decay_steps` further
    steps and starts from `warmup_target`.

    Loshchilov and Hutter 2016, "SGDR", arXiv:1608.03983, equation 5 (one cycle). The
    warm-up: Goyal et al. 2017, arXiv:1706.02677, section 2.2.

    Args:
        initial_learning_rate: Rate at step 0; finite, not negative.
        decay_steps: Length of the decay, which does not include the warm-up; positive.
        alpha: Final rate as a fraction of the rate at which the decay begins; finite,
            not negative.
        warmup_target: Rate at the end of the warm-up; finite, not negative. None: there
            is no warm-up, and `warmup_steps` is without effect.
        warmup_steps: Length of the warm-up; finite, not negative. 0 begins the decay at
            the target.

    Raises:
        ValueError: An argument outside its domain.
        TypeError: An argument that is not a number.

    >>> schedule = CosineDecay(0.8, decay_steps=10, alpha=0.25)
    >>> print(schedule(0), schedule(5), schedule(10), schedule(11))
    0.8 0.5 0.2 0.2
    >>> schedule = CosineDecay(0.0, 10, warmup_target=0.5, warmup_steps=4)
    >>> print(schedule(0), schedule(2), schedule(4), schedule(9), schedule(14))
    0.0 0.25 0.5 0.25 0.0
    """

    initial_learning_rate: Numbers
    decay_steps: Numbers
    alpha: Numbers = 0.0
    warmup_target: Numbers | None = field(default=None, kw_only=True)
    warmup_steps: Numbers = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        _require_not_negative(self, "initial_learning_rate", "alpha", "warmup_steps")
        _require_positive(self, "decay_steps")
        if self.warmup_target is not None:
            _require_not_negative(self, "warmup_target")

    def __call__(self, step: Numbers) -> Numbers:
        if self.warmup_target is None:
            return self._decayed(step, self.initial_learning_rate)
        if self.warmup_steps == 0:
            return self._decayed(step, self.warmup_target)
        rise = self.warmup_target - self.initial_learning_rate
        warming = self.initial_learning_rate + rise * (step / self.warmup_steps)
        decay_step = np.maximum(step, self.warmup_steps) - self.warmup_steps
        decayed = self._decayed(decay_step, self.warmup_target)
        return _choose(step < self.warmup_steps, warming, decayed)

    def _decayed(self, step: Numbers, peak: Numbers) -> Numbers:
        completed = np.minimum(step, self.decay_steps) / self.decay_steps
        cosine = 0.5 * (1 + np.cos(np.pi * completed))
        return peak * ((1 - self.alpha) * cosine + self.alpha)


@dataclass(frozen=True)
class CosineDecayRestarts(LearningRateSchedule):
    """Decay along half a cosine, again and again, in cycles that grow.

    Cycle `i` is `first_decay_steps * t_mul ** i` steps long. With `p` the part of the
    current cycle that is over, `0 <= p < 1`:
    `initial_learning_rate * ((1 - alpha) * m_mul**i * (1 + cos(pi * p)) / 2 + alpha)`.

    Loshchilov and Hutter 2016, "SGDR", arXiv:1608.03983, equation 5; their `T_0` is
    `first_decay_steps`, their `T_mult` is `t_mul`.

    The step at which a cycle ends is the first step of the next one, and so has
    `p = 0`. Where cycles begin is worked out in decimal from the numbers as they are
    written: with `t_mul=1.1` and `first_decay_steps=10` the third cycle begins at step
    21 exactly. Keras takes the floor of a float32 logarithm, which there is one cycle
    behind: it gives the lowest rate at the very step that should have the highest.

    Args:
        initial_learning_rate: Rate at step 0; finite, not negative.
        first_decay_steps: Length of the first cycle; positive, a plain number.
        t_mul: Length of a cycle over that of the one before; at least 1, a plain
            number. (Cycles that shrink would all be over after finitely many steps,
            and there is no rate after that; Keras returns NaN.)
        m_mul: Height of a cycle over that of the one before; finite, not negative.
        alpha: Lowest rate as a fraction of the initial one; finite, not negative.

    Raises:
        ValueError: An argument outside its domain.
        TypeError: An argument that is not a number.

    >>> schedule = CosineDecayRestarts(0.5, first_decay_steps=2, m_mul=0.5)
    >>> print([round(float(schedule(step)), 6) for step in range(7)])
    [0.5, 0.25, 0.25, 0.213388, 0.125, 0.036612, 0.125]
    """

    initial_learning_rate: Numbers
    first_decay_steps: float
    t_mul: float = 2.0
    m_mul: Numbers = 1.0
    alpha: Numbers = 0.0

    def __post_init__(self) -> None:
        _require_not_negative(self, "initial_learning_rate", "m_mul", "alpha")
        _require_positive(self, "first_decay_steps")
        _require(self, "t_mul", self.t_mul, 1, "finite and at least 1", closed=True)
        for name in ("first_decay_steps", "t_mul"):
            value = getattr(self, name)
            try:
                Decimal(str(value))
            except InvalidOperation:
                raise TypeError(
                    f"{type(self).__name__}: {name} must be a plain number, "
                    f"not {value!r}"
                ) from None

    def __call__(self, step: Numbers) -> Numbers:
        restarts, completed = self._cycle(step)
        height = self.m_mul**restarts
        cosine = 0.5 * (1 + np.cos(np.pi * completed))
        decayed = (1 - self.alpha) * height * cosine + self.alpha
        return self.initial_learning_rate * decayed

    def _cycle(self, step: Numbers) -> tuple[Numbers, Numbers]:
        """Return how many restarts `step` has seen, and its place in its cycle."""
        if self.t_mul == 1:
            first = Fraction(str(self.first_decay_steps))
            parts = step * first.denominator
            restarts = np.floor(parts / first.numerator)
            return restarts, (parts - restarts * first.numerator) / first.numerator
        restarts = 0.0 * step
        completed = step / self.first_decay_steps
        for restart, (start, length) in enumerate(self._later_cycles(), start=1):
            reached = step >= start
            if not np.any(reached):
                break
            restarts = _choose(reached, restart, restarts)
            completed = _choose(reached, (step - start) / length, completed)
        return restarts, completed

    def _later_cycles(self) -> Iterator[tuple[float, float]]:
        """Yield first step and length of each cycle but the first."""
        start = length = Decimal(str(self.first_decay_steps))
        growth = Decimal(str(self.t_mul))
        exact = Context(prec=50)
        while start < LAST_STEP:
            length = exact.multiply(length, growth)
            yield float(start), float(length)
            start = exact.add(start, length)


@dataclass(frozen=True)
class CosineAnnealing(LearningRateSchedule):
    """A factor that goes down half a cosine in each cycle, the last step included.

    With `p = (step mod total_iterations) / (total_iterations - 1)`:
    `eta_min + (eta_max - eta_min) * (1 + cos(pi * p)) / 2`.

    keras-adamw's annealing, made for `schedule_multiplier`. The last step of a cycle
    has `eta_min` itself, so with 0 nothing moves; `CosineDecayRestarts`, as the paper
    (Loshchilov and Hutter 2016, arXiv:1608.03983, equation 5), never comes to its
    lowest rate. keras-adamw takes 1 for the first step of all, whatever `eta_max` is.

    Args:
        total_iterations: Steps of a cycle; above 1.
        eta_min: Last factor of a cycle; finite, not negative.
        eta_max: First factor; finite, not negative.

    Raises:
        ValueError: An argument outside its domain.
        TypeError: An argument that is not a number.

    >>> schedule = CosineAnnealing(4)
    >>> print([round(float(schedule(step)), 6) for step in range(5)])
    [1.0, 0.75, 0.25, 0.0, 1.0]
    """

    total_iterations: Numbers
    eta_min: Numbers = 0.0
    eta_max: Numbers = 1.0

    def __post_init__(self) -> None:
        _require_not_negative(self, "eta_min", "eta_max")
        _require(self, "total_iterations", self.total_iterations, 1, "above 1")

    def __call__(self, step: Numbers) -> Numbers:
        cycle = np.floor(step / self.total_iterations)
        completed = (step - cycle * self.total_iterations) / (self.total_iterations - 1)
        cosine = 0.5 * (1 + np.cos(np.pi * completed))
        return self.eta_min + (self.eta_max - self.eta_min) * cosine


@dataclass(frozen=True)
class LinearCosineDecay(LearningRateSchedule):
    """Decay along a line times a cosine.

    With `p = min(step, decay_steps) / decay_steps`: `initial_learning_rate *
    ((alpha + 1 - p) * (1 + cos(2 * pi * num_periods * p)) / 2 + beta)`.

    Bello et al. 2017, "Neural Optimizer Search with Reinforcement Learning",
    arXiv:1709.07417, section 4.

    Args:
        initial_learning_rate: Finite, not negative. The rate at step 0 is this times
            `1 + alpha + beta`.
        decay_steps: Length of the decay; positive.
        num_periods: Periods of the cosine in `decay_steps`; finite, not negative.
        alpha: Added to the line; finite, not negative.
        beta: Added to the product, so that the last rate is not zero; finite, not
            negative.

    Raises:
        ValueError: An argument outside its domain.
        TypeError: An argument that is not a number.

    >>> schedule = LinearCosineDecay(1.0, decay_steps=8, alpha=0.25, beta=0.125)
    >>> print(schedule(0), schedule(4), schedule(8), schedule(9))
    1.375 0.5 0.125 0.125
    """

    initial_learning_rate: Numbers
    decay_steps: Numbers
    num_periods: Numbers = 0.5
    alpha: Numbers = 0.0
    beta: Numbers = 0.001

    def __post_init__(self) -> None:
        _require_not_negative(
            self, "initial_learning_rate", "num_periods", "alpha", "beta"
        )
        _require_positive(self, "decay_steps")

    def __call__(self, step: Numbers) -> Numbers:
        step = np.minimum(step, self.decay_steps)
        linear = (self.decay_steps - step) / self.decay_steps
        completed = step / self.decay_steps
        cosine = 0.5 * (1 + np.cos(np.pi * (2 * self.num_periods * completed)))
        return self.initial_learning_rate * ((self.alpha + linear) * cosine + self.beta)


@dataclass(frozen=True)
class NoisyLinearCosineDecay(LearningRateSchedule):
    """Decay along a line, with noise that fades, times a cosine.

    As `LinearCosineDecay`, with a normal random number of mean 0 and variance
    `initial_variance / (1 + step) ** variance_decay` added to the line.

    Bello et al. 2017, "Neural Optimizer Search with Reinforcement Learning",
    arXiv:1709.07417, section 4.

    The number belongs to `(seed, step)`: the same step has the same rate however often
    it is asked for. Keras draws a new one at every call, so no two libraries agree on
    the noise, only on its distribution.

    Args:
        initial_learning_rate: Finite, not negative.
        decay_steps: Length of the decay; positive.
        initial_variance: Variance of the noise at step 0; finite, not negative.
        variance_decay: Exponent with which it fades; finite, not negative.
        num_periods: Periods of the cosine in `decay_steps`; finite, not negative.
        alpha: Added to the line; finite, not negative.
        beta: Added to the product; finite, not negative.
        seed: A whole number, not negative, which selects the noise.

    Raises:
        ValueError: An argument outside its domain.
        TypeError: An argument that is not a number.

    >>> schedule = NoisyLinearCosineDecay(1.0, decay_steps=8, beta=0.125, seed=7)
    >>> print(schedule(3) == schedule(3))
    True
    >>> print(schedule(8))  # the cosine is zero, and so is the noise it multiplies
    0.125
    """

    initial_learning_rate: Numbers
    decay_steps: Numbers
    initial_variance: Numbers = 1.0
    variance_decay: Numbers = 0.55
    num_periods: Numbers = 0.5
    alpha: Numbers = 0.0
    beta: Numbers = 0.001
    seed: int = 0

    def __post_init__(self) -> None:
        _require_not_negative(
            self,
            "initial_learning_rate",
            "initial_variance",
            "variance_decay",
            "num_periods",
            "alpha",
            "beta",
            "seed",
        )
        _require_positive(self, "decay_steps")

    def __call__(self, step: Numbers) -> Numbers:
        step = np.minimum(step, self.decay_steps)
        linear = (self.decay_steps - step) / self.decay_steps
        variance = self.initial_variance / (1 + step) ** self.variance_decay
        noisy = linear + np.sqrt(variance) * _standard_normal(self.seed, step)
        completed = step / self.decay_steps
        cosine = 0.5 * (1 + np.cos(np.pi * (2 * self.num_periods * completed)))
        return self.initial_learning_rate * ((self.alpha + noisy) * cosine + self.beta)


def _standard_normal(seed: int, step: Numbers) -> Numbers:
    """Return one normal number for each element of `step`, a function of both."""
    steps: Any = np.asarray(step)
    noise: Any = [
        np.random.default_rng([seed, int(one)]).standard_normal() for one in steps.flat
    ]
    dtype = steps.dtype if steps.dtype.kind == "f" else np.float64
    return np.array(noise, dtype).reshape(steps.shape)[()]


def _choose(condition: Numbers, yes: Numbers, no: Numbers) -> Numbers:
    """`np.where`, giving a number and not an array of rank 0 where all are numbers."""
    chosen: Any = np.where(condition, yes, no)
    return chosen[()]


def _require_positive(schedule: object, *names: str) -> None:
    for name in names:
        _require(schedule, name, getattr(schedule, name), 0, "finite and positive")


def _require_not_negative(schedule: object, *names: str) -> None:
    for name in names:
        value = getattr(schedule, name)
        _require(schedule, name, value, 0, "finite and not negative", closed=True)


def _require(
    schedule: object,
    name: str,
    value: Numbers,
    lowest: float,
    allowed: str,
    closed: bool = False,
) -> None:
    """Raise unless `value` is finite and above `lowest`, or on it if `closed`."""
    try:
        inside = (value >= lowest if closed else value > lowest) & (value < np.inf)
    except TypeError:
        raise TypeError(
            f"{type(schedule).__name__}: {name} must be a number, "
            f"{allowed}, not {value!r}"
        ) from None
    if not np.all(inside):
        raise ValueError(
            f"{type(schedule).__name__}: {name} must be {allowed}, not {value!r}"
        )
