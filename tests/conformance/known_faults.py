"""Faults that people made, each in a small optimizer written by hand in NumPy.

The kinds are those of public reports: each class is one of the eight right optimizers
at the top with one fault. Arithmetic is float32, coefficients are formed in float64;
nothing here calls ``reference``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from reference.conformance.port import Refused, Setting, Snapshot
from reference.conformance.rounding import IEEE, Format, Platform
from reference.gradients import IndexedSlices
from reference.optimizer import State

WEIGHT = "w"


class Numpy:
    """What the optimizers share: counting, schedules, clipping, rows."""

    slots: tuple[str, ...] = ()
    every: tuple[str, ...] = ()
    """What a sparse gradient changes on every row; the rest changes on touched ones."""
    shown = True
    options: tuple[str, ...] = ()
    clipvalue: Any = None
    clipnorm: Any = None
    global_clipnorm: Any = None

    def __init__(self, **hyperparameters: Any) -> None:
        self.given = hyperparameters
        vars(self).update(hyperparameters)
        self.iterations = 0
        self.shared = self.shared_start()

    def shared_start(self) -> dict[str, float]:
        return {}

    def start(self, slot: str) -> float:
        return 0.0

    def count(self) -> int:
        return self.iterations + 1

    def rate(self) -> float:
        rate = self.learning_rate
        return float(rate(self.iterations) if callable(rate) else rate)

    def set_rate(self, value: float) -> None:
        self.learning_rate = value

    def step(self, weights: list, gradients: list, slots: list) -> None:
        t, lr = self.count(), self.rate()
        self.begin(t)
        present = [i for i, g in enumerate(gradients) if g is not None]
        clipped = self.prepared([gradients[i] for i in present])
        for i, g in zip(present, clipped, strict=True):
            if isinstance(g, IndexedSlices):
                self.sparse(weights[i], g, slots[i], t, lr)
            else:
                self.dense(weights[i], g, slots[i], t, lr)
        self.advance()

    def begin(self, t: int) -> None:
        pass

    def advance(self) -> None:
        self.iterations += 1

    def prepared(self, gradients: list) -> list:
        return self.clipped([self.summed(g) for g in gradients])

    def summed(self, g: Any) -> Any:
        if not isinstance(g, IndexedSlices):
            return g
        rows, place = np.unique(g.indices, return_inverse=True)
        values = np.zeros((rows.size, *g.values.shape[1:]))
        np.add.at(values, place.ravel(), g.values.astype(np.float64))
        return IndexedSlices(values.astype(np.float32), rows)

    def clipped(self, gradients: list) -> list:
        if self.clipvalue is not None:
            gradients = [self.scaled(g, self.by_value) for g in gradients]
        if self.clipnorm is not None:
            gradients = [self.scaled(g, self.by_norm) for g in gradients]
        if self.global_clipnorm is not None:
            norm = math.sqrt(sum(self.squares(g) for g in gradients))
            factor = self.global_clipnorm / max(norm, self.global_clipnorm)
            gradients = [self.scaled(g, lambda x: x * factor) for g in gradients]
        return gradients

    def by_value(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x, -self.clipvalue, self.clipvalue)

    def by_norm(self, x: np.ndarray) -> np.ndarray:
        norm = math.sqrt(self.squares(x))
        return x * (self.clipnorm / max(norm, self.clipnorm))

    @staticmethod
    def squares(g: Any) -> float:
        values = g.values if isinstance(g, IndexedSlices) else g
        return float(np.sum(values.astype(np.float64) ** 2))

    @staticmethod
    def scaled(g: Any, change: Any) -> Any:
        if isinstance(g, IndexedSlices):
            return IndexedSlices(change(g.values), g.indices)
        return change(g)

    def dense(self, w: np.ndarray, g: np.ndarray, s: dict, t: int, lr: float) -> None:
        w[...], new = self.update(w, g, s, t, lr)
        for name, value in new.items():
            s[name][...] = value

    def sparse(self, w: np.ndarray, g: Any, s: dict, t: int, lr: float) -> None:
        whole = np.zeros_like(w)
        whole[g.indices] = g.values
        new_w, new = self.update(w, whole, s, t, lr)
        for name, value in {**new, WEIGHT: new_w}.items():
            kept = w if name == WEIGHT else s[name]
            if name in self.every:
                kept[...] = value
            else:
                kept[g.indices] = value[g.indices]

    def update(self, w, g, s, t, lr):
        raise NotImplementedError

    def saved(self) -> dict[str, Any]:
        """What a resume starts from."""
        return {"iterations": self.iterations, "shared": dict(self.shared)}

    def config(self) -> dict[str, Any]:
        return {**self.given, "learning_rate": self.learning_rate}

    def slots_after_resume(self, slots: list) -> list:
        return slots


class NumpyPort:
    """Drives such an optimizer."""

    def __init__(self, target: type[Numpy]) -> None:
        self.target = target

    @property
    def name(self) -> str:
        return self.target.__name__

    def modes(self) -> Sequence[str]:
        return ("eager",)

    def devices(self) -> Sequence[str]:
        return ("CPU",)

    def strategies(self) -> Sequence[str]:
        return ("none",)

    def platform(self, setting: Setting) -> Platform:
        return IEEE

    def versions(self) -> Mapping[str, str]:
        return {}

    def accepts(self) -> set[str]:
        clips = {"clipvalue", "clipnorm", "global_clipnorm"}
        return {"learning_rate", *self.target.options, *clips}

    def refusal(self, gradient: Any) -> str:
        return ""

    def start(
        self,
        weights: Sequence[np.ndarray],
        hyperparameters: Mapping[str, Any],
        setting: Setting,
        slots: Sequence[str],
    ) -> NumpySession:
        return NumpySession(self.target(**hyperparameters), weights)


class NumpySession:
    def __init__(self, optimizer: Numpy, weights: Sequence[np.ndarray]) -> None:
        self.optimizer = optimizer
        self.weights = [np.array(w, np.float32) for w in weights]
        self.slots: list[dict[str, np.ndarray]] = []

    def read(self) -> Snapshot:
        def wide(x: np.ndarray) -> np.ndarray:
            return x.astype(np.float64)

        shown = self.slots and self.optimizer.shown
        slots = tuple(
            {name: wide(x) for name, x in s.items()} if shown else {}
            for s in self.slots or [{}] * len(self.weights)
        )
        shared = dict(self.optimizer.shared) if shown else {}
        state = State(self.optimizer.iterations, slots, shared)
        return Snapshot([wide(w) for w in self.weights], state)

    def write(self, snapshot: Snapshot) -> None:
        if self.optimizer.slots and not self.optimizer.shown:
            raise Refused("its slots cannot be written")
        self.slots = [
            {
                name: np.array(slots.get(name, 0 * w), np.float32)
                for name in self.optimizer.slots
            }
            for slots, w in zip(snapshot.state.slots, snapshot.weights, strict=True)
        ]
        self.optimizer.shared = dict(snapshot.state.shared)
        self.optimizer.iterations = snapshot.state.iterations

    def apply(self, gradients: Sequence[Any]) -> None:
        self.slots = self.slots or [self.fresh(w) for w in self.weights]
        given = [
            g
            if g is None
            else IndexedSlices(np.float32(g.values), np.asarray(g.indices))
            if isinstance(g, IndexedSlices)
            else np.array(g, np.float32)
            for g in gradients
        ]
        with np.errstate(all="ignore"):
            self.optimizer.step(self.weights, given, self.slots)

    def fresh(self, w: np.ndarray) -> dict[str, np.ndarray]:
        starts = {name: self.optimizer.start(name) for name in self.optimizer.slots}
        return {n: np.full(w.shape, x, np.float32) for n, x in starts.items()}

    def set_learning_rate(self, value: float) -> None:
        self.optimizer.set_rate(value)

    def resume(self) -> None:
        old = self.optimizer
        self.optimizer = type(old)(**old.config())
        vars(self.optimizer).update(old.saved())
        self.slots = old.slots_after_resume(self.slots)

    def hyperparameter_formats(self) -> Mapping[str, Format]:
        return {}


# The right ones.


class SGD(Numpy):
    def update(self, w, g, s, t, lr):
        return w - lr * g, {}


class Momentum(Numpy):
    slots = ("momentum",)
    options = ("momentum", "nesterov")
    nesterov = False

    def update(self, w, g, s, t, lr):
        a = self.momentum * s["momentum"] - lr * g
        step = self.momentum * a - lr * g if self.nesterov else a
        return w + step, {"momentum": a}


class Adagrad(Numpy):
    slots = ("accumulator",)
    options = ("initial_accumulator_value", "epsilon")

    def start(self, slot):
        return self.initial_accumulator_value

    def update(self, w, g, s, t, lr):
        n = s["accumulator"] + g * g
        return w - lr * g / (np.sqrt(n) + self.epsilon), {"accumulator": n}


class Adadelta(Numpy):
    slots = ("accum_grad", "accum_var")
    options = ("rho", "epsilon")

    def update(self, w, g, s, t, lr):
        rho, eps = self.rho, self.epsilon
        n = rho * s["accum_grad"] + (1 - rho) * g * g
        u = np.sqrt(s["accum_var"] + eps) / np.sqrt(n + eps) * g
        d = rho * s["accum_var"] + (1 - rho) * u * u
        return w - lr * u, {"accum_grad": n, "accum_var": d}


class RMSprop(Numpy):
    slots: tuple[str, ...] = ("rms",)
    every: tuple[str, ...] = ("rms",)
    options: tuple[str, ...] = ("rho", "epsilon")

    def average(self, g, s):
        return self.rho * s["rms"] + (1 - self.rho) * g * g

    def update(self, w, g, s, t, lr):
        r = self.average(g, s)
        return w - lr * g / self.root(r), {"rms": r}

    def root(self, r):
        return np.sqrt(r) + self.epsilon


class CenteredRMSprop(RMSprop):
    slots = ("rms", "mg")
    every = ("rms", "mg")
    options = ("rho", "epsilon", "centered")

    def update(self, w, g, s, t, lr):
        r = self.average(g, s)
        m = self.rho * s["mg"] + (1 - self.rho) * g
        return w - lr * g / self.root(self.variance(r, m)), {"rms": r, "mg": m}

    def variance(self, r, m):
        return np.maximum(r - m * m, 0)


class MomentumRMSprop(RMSprop):
    slots = ("rms", "momentum")
    every = ()
    options = ("rho", "epsilon", "momentum")

    def update(self, w, g, s, t, lr):
        r = self.average(g, s)
        a = self.momentum * s["momentum"] + lr * g / self.root(r)
        return w - a, {"rms": r, "momentum": a}

    def root(self, r):
        return np.sqrt(r + self.epsilon)


class Adam(Numpy):
    slots: tuple[str, ...] = ("m", "v")
    every: tuple[str, ...] = ("m", "v", WEIGHT)
    options: tuple[str, ...] = ("beta_1", "beta_2", "epsilon")

    def moments(self, g, s):
        m = self.beta_1 * s["m"] + (1 - self.beta_1) * g
        v = self.beta_2 * s["v"] + (1 - self.beta_2) * g * g
        return m, v

    def corrections(self, t):
        return 1 - self.beta_1**t, 1 - self.beta_2**t

    def update(self, w, g, s, t, lr):
        m, v = self.moments(g, s)
        return w - self.move(m, v, t, lr), {"m": m, "v": v}

    def move(self, m, v, t, lr):
        c1, c2 = self.corrections(t)
        return lr * math.sqrt(c2) / c1 * m / (np.sqrt(v) + self.epsilon)


class Amsgrad(Adam):
    slots = ("m", "v", "vhat")
    every = ("m", "v", "vhat", WEIGHT)
    options = (*Adam.options, "amsgrad")

    def update(self, w, g, s, t, lr):
        m, v = self.moments(g, s)
        top = np.maximum(s["vhat"], v)
        return w - self.move(m, top, t, lr), {"m": m, "v": v, "vhat": top}


class Adamax(Numpy):
    slots = ("m", "v")
    options = ("beta_1", "beta_2", "epsilon")

    def update(self, w, g, s, t, lr):
        m = self.beta_1 * s["m"] + (1 - self.beta_1) * g
        u = np.maximum(self.beta_2 * s["v"], np.abs(g))
        return w - lr / (1 - self.beta_1**t) * m / (u + self.epsilon), {"m": m, "v": u}


class Nadam(Numpy):
    slots = ("m", "v")
    every = ("m", "v")
    options = ("beta_1", "beta_2", "epsilon", "schedule_decay")

    def shared_start(self):
        return {"momentum_cache": 1.0}

    def mu(self, t):
        return self.beta_1 * (1 - 0.5 * 0.96 ** (self.schedule_decay * t))

    def begin(self, t):
        self.shared["momentum_cache"] *= self.mu(t)

    def product(self, t):
        return self.shared["momentum_cache"] * self.mu(t + 1)

    def update(self, w, g, s, t, lr):
        mu, after = self.mu(t), self.mu(t + 1)
        m = self.beta_1 * s["m"] + (1 - self.beta_1) * g
        v = self.beta_2 * s["v"] + (1 - self.beta_2) * g * g
        g_hat = g / (1 - self.shared["momentum_cache"])
        m_bar = (1 - mu) * g_hat + after * m / (1 - self.product(t))
        root = np.sqrt(v / (1 - self.beta_2**t)) + self.epsilon
        return w - lr * m_bar / root, {"m": m, "v": v}


class Ftrl(Numpy):
    slots = ("accumulator", "linear")
    options = (
        "learning_rate_power",
        "initial_accumulator_value",
        "l1_regularization_strength",
        "l2_regularization_strength",
        "l2_shrinkage_regularization_strength",
        "beta",
    )

    def start(self, slot):
        return self.initial_accumulator_value if slot == "accumulator" else 0.0

    def squared(self, g, shrunk):
        return g * g

    def linear(self, z, shrunk, change, w):
        return z + shrunk - change * w

    def stabiliser(self, lr):
        return 2 * self.l2_regularization_strength + self.beta / lr

    def update(self, w, g, s, t, lr):
        power, l1 = -self.learning_rate_power, self.l1_regularization_strength
        shrunk = g + 2 * self.l2_shrinkage_regularization_strength * w
        n = s["accumulator"] + self.squared(g, shrunk)
        root, new_root = s["accumulator"] ** power, n**power
        z = self.linear(s["linear"], shrunk, (new_root - root) / lr, w)
        pull = np.sign(z) * l1 - z
        new = pull / (new_root / lr + self.stabiliser(lr))
        return np.where(np.abs(z) <= l1, 0, new), {"accumulator": n, "linear": z}


RIGHT: dict[type[Numpy], tuple[str, dict[str, Any]]] = {
    SGD: ("SGD", {}),
    Momentum: ("SGD", {"momentum": 0.9}),
    Adagrad: ("Adagrad", {}),
    Adadelta: ("Adadelta", {}),
    RMSprop: ("RMSprop", {}),
    CenteredRMSprop: ("RMSprop", {"centered": True}),
    MomentumRMSprop: ("RMSprop", {"momentum": 0.8}),
    Adam: ("Adam", {}),
    Amsgrad: ("Adam", {"amsgrad": True}),
    Adamax: ("Adamax", {}),
    Nadam: ("Nadam", {}),
    Ftrl: (
        "Ftrl",
        {
            "l1_regularization_strength": 0.01,
            "l2_regularization_strength": 0.05,
            "l2_shrinkage_regularization_strength": 0.02,
            "beta": 0.1,
        },
    ),
}

FAULTS: dict[type[Numpy], str] = {}
"""Each with the beginning, or a pattern, of the sentence that names it."""


def named(*sentences: str) -> Any:
    """Registers a fault with what its explanation says, any of several ways."""

    def register(cls: type[Numpy]) -> type[Numpy]:
        FAULTS[cls] = "|".join(sentences)
        return cls

    return register


INSIDE = "it behaves as with epsilon_inside=True"


def right_for(fault: type[Numpy]) -> tuple[str, dict[str, Any]]:
    """The rule and the options by which a fault is judged."""
    for cls in fault.__mro__:
        if cls in RIGHT:
            name, options = RIGHT[cls]
            return name, {**options, **getattr(fault, "judged_with", {})}
    raise LookupError(fault)


# Epsilon.


@named("epsilon is added to the bias-corrected root")
class AlgorithmOne(Adam):
    def move(self, m, v, t, lr):
        c1, c2 = self.corrections(t)
        return lr * (m / c1) / (np.sqrt(v / c2) + self.epsilon)


@named("epsilon is under the square root, added to the bias-corrected")
class AlgorithmOneUnderRoot(Adam):
    def move(self, m, v, t, lr):
        c1, c2 = self.corrections(t)
        return lr * (m / c1) / np.sqrt(v / c2 + self.epsilon)


@named("epsilon is under the square root")
class AdamUnderRoot(Adam):
    def move(self, m, v, t, lr):
        c1, c2 = self.corrections(t)
        return lr * math.sqrt(c2) / c1 * m / np.sqrt(v + self.epsilon)


@named("epsilon is under the square root", INSIDE)
class AdagradUnderRoot(Adagrad):
    judged_with: ClassVar = {"initial_accumulator_value": 0.0}

    def update(self, w, g, s, t, lr):
        n = s["accumulator"] + g * g
        return w - lr * g / np.sqrt(n + self.epsilon), {"accumulator": n}


@named("epsilon is under the square root")
class RMSpropUnderRoot(RMSprop):
    def root(self, r):
        return np.sqrt(r + self.epsilon)


@named("epsilon is outside the square root")
class RMSpropOutsideRoot(MomentumRMSprop):
    def root(self, r):
        return np.sqrt(r) + self.epsilon


@named("epsilon is under the square root")
class CenteredUnderRoot(CenteredRMSprop):
    def root(self, r):
        return np.sqrt(r + self.epsilon)


@named("the maximum", ".*maximum")
class CenteredBelowZero(CenteredRMSprop):
    def variance(self, r, m):
        return r - m * m


@named("epsilon accumulates in the second moment")
class EpsilonAccumulates(Adam):
    def moments(self, g, s):
        m, v = super().moments(g, s)
        return m, v + self.epsilon


@named("epsilon is inside the maximum")
class AdamaxEpsilonInMaximum(Adamax):
    def update(self, w, g, s, t, lr):
        m = self.beta_1 * s["m"] + (1 - self.beta_1) * g
        u = np.maximum(self.beta_2 * s["v"], np.abs(g) + self.epsilon)
        return w - lr / (1 - self.beta_1**t) * m / u, {"m": m, "v": u}


@named("epsilon is a lower limit")
class EpsilonAsLimit(Adam):
    def move(self, m, v, t, lr):
        c1, c2 = self.corrections(t)
        return lr * math.sqrt(c2) / c1 * m / np.maximum(np.sqrt(v), self.epsilon)


@named("epsilon is 1e-08")
class OtherDefaultEpsilon(Adam):
    def __init__(self, **given):
        super().__init__(**{**given, "epsilon": 1e-8})


@named("epsilon is added to the raw root")
class NadamEpsilonHat(Nadam):
    def update(self, w, g, s, t, lr):
        c2 = 1 - self.beta_2**t
        mu, after = self.mu(t), self.mu(t + 1)
        m = self.beta_1 * s["m"] + (1 - self.beta_1) * g
        v = self.beta_2 * s["v"] + (1 - self.beta_2) * g * g
        g_hat = g / (1 - self.shared["momentum_cache"])
        m_bar = (1 - mu) * g_hat + after * m / (1 - self.product(t))
        step = lr * math.sqrt(c2) * m_bar / (np.sqrt(v) + self.epsilon)
        return w - step, {"m": m, "v": v}


@named("`.*epsilon` instead of|the term `epsilon` is missing|epsilon is 0")
class AdadeltaWithoutEpsilonBelow(Adadelta):
    def update(self, w, g, s, t, lr):
        rho, eps = self.rho, self.epsilon
        n = rho * s["accum_grad"] + (1 - rho) * g * g
        u = np.sqrt(s["accum_var"] + eps) / np.sqrt(n) * g
        d = rho * s["accum_var"] + (1 - rho) * u * u
        return w - lr * u, {"accum_grad": n, "accum_var": d}


# Bias corrections and counting.


@named("`learning_rate` instead of `step_size`", ".*step_size = learning_rate`")
class NoCorrection(Adam):
    def corrections(self, t):
        return 1.0, 1.0


@named(
    "`learning_rate` instead", "the factor", "the square root", ".*step_size = learn"
)
class SecondMomentNotCorrected(Adam):
    def corrections(self, t):
        return 1 - self.beta_1**t, 1.0


@named("the division by")
class FirstMomentNotCorrected(Adam):
    def corrections(self, t):
        return 1.0, 1 - self.beta_2**t


@named("the moments are multiplied by their bias corrections")
class CorrectionsMultiplied(Adam):
    def move(self, m, v, t, lr):
        c1, c2 = self.corrections(t)
        return lr * (m * c1) / (np.sqrt(v * c2) + self.epsilon)


@named("the bias corrections are `beta")
class CorrectionsWithoutOne(Adam):
    def corrections(self, t):
        return self.beta_1**t, self.beta_2**t


@named("the square root of")
class CorrectionWithoutRoot(Adam):
    def move(self, m, v, t, lr):
        c1, c2 = self.corrections(t)
        return lr * c2 / c1 * m / (np.sqrt(v) + self.epsilon)


@named("t is one too large")
class CountsFromTwo(Adam):
    def count(self):
        return self.iterations + 2


@named("t is one too small")
class CountsFromZero(Adam):
    def count(self):
        return self.iterations

    def move(self, m, v, t, lr):
        c1, c2 = self.corrections(t)
        step = lr * np.float32(c2) ** np.float32(0.5) / np.float32(c1)
        return step * m / (np.sqrt(v) + np.float32(self.epsilon))


@named("t stays 1")
class CountStandsStill(Adam):
    def count(self):
        return 1


@named("the step count does not advance")
class IterationsStandStill(Adam):
    def advance(self):
        pass


@named("t advances with every weight")
class CountsEveryWeight(Adam):
    calls = 0

    def update(self, w, g, s, t, lr):
        self.calls += 1
        return super().update(w, g, s, self.calls, lr)

    def saved(self):
        return {**super().saved(), "calls": self.calls}


@named("the step count advances with every weight")
class IterationsWithEveryWeight(Adam):
    def update(self, w, g, s, t, lr):
        result = super().update(w, g, s, self.iterations + 1, lr)
        self.iterations += 1
        return result


@named("t counts the gradients of each weight")
class CountsPerWeight(Adam):
    def step(self, weights, gradients, slots):
        self.counts = getattr(self, "counts", [0] * len(weights))
        self.counts = [
            c + (g is not None) for c, g in zip(self.counts, gradients, strict=True)
        ]
        self.order = iter(
            [c for c, g in zip(self.counts, gradients, strict=True) if g is not None]
        )
        super().step(weights, gradients, slots)

    def update(self, w, g, s, t, lr):
        return super().update(w, g, s, next(self.order), lr)

    def saved(self):
        return {**super().saved(), "counts": self.counts}


@named("the step count is kept in bfloat16")
class CountInHalf(Adam):
    def count(self):
        t = np.float32(self.iterations + 1)
        bits = t.view(np.uint32) + np.uint32(0x8000)
        return float((bits & np.uint32(0xFFFF0000)).view(np.float32))


@named("the factor `1 - beta_1 \\*\\* t`", "the division by", "`learning_rate`")
class AdamaxNotCorrected(Adamax):
    def update(self, w, g, s, t, lr):
        m = self.beta_1 * s["m"] + (1 - self.beta_1) * g
        u = np.maximum(self.beta_2 * s["v"], np.abs(g))
        return w - lr * m / (u + self.epsilon), {"m": m, "v": u}


@named("the infinity norm is corrected for bias")
class AdamaxNormCorrected(Adamax):
    def update(self, w, g, s, t, lr):
        m = self.beta_1 * s["m"] + (1 - self.beta_1) * g
        u = np.maximum(self.beta_2 * s["v"], np.abs(g))
        low = u / (1 - self.beta_2**t) + self.epsilon
        return w - lr / (1 - self.beta_1**t) * m / low, {"m": m, "v": u}


@named("the momentum is not warmed up")
class NadamWithoutSchedule(Nadam):
    def mu(self, t):
        return self.beta_1


@named("the product of momenta contains the present one twice")
class NadamProductTwice(Nadam):
    def product(self, t):
        return super().product(t) * self.mu(t)


@named("`P` is not updated", "`P = P`", ".*`mu` is missing", "`P` .*")
class NadamProductNotKept(Nadam):
    def begin(self, t):
        pass


# Moments.


@named("`beta_1` and `beta_2` are swapped")
class BetasSwapped(Adam):
    def __init__(self, **given):
        super().__init__(**given)
        self.beta_1, self.beta_2 = self.beta_2, self.beta_1


@named("`beta_2` instead of every `beta_1`.*and `beta_1` instead of every `beta_2`")
class BetasSwappedInMoments(Adam):
    def moments(self, g, s):
        m = self.beta_2 * s["m"] + (1 - self.beta_2) * g
        v = self.beta_1 * s["v"] + (1 - self.beta_1) * g * g
        return m, v


@named(r"`\(?1 - beta_1\)?` instead of every `beta_1`")
class WeightsOfAverageSwapped(Adam):
    def moments(self, g, s):
        _, v = super().moments(g, s)
        return (1 - self.beta_1) * s["m"] + self.beta_1 * g, v


@named("the factor `1 - beta_1` is missing")
class SumInsteadOfAverage(Adam):
    def moments(self, g, s):
        _, v = super().moments(g, s)
        return self.beta_1 * s["m"] + g, v


@named("the power `\\*\\* 2` is missing", "`g` instead of `g")
class SquareForgotten(Adam):
    def moments(self, g, s):
        m, _ = super().moments(g, s)
        return m, self.beta_2 * s["v"] + (1 - self.beta_2) * np.abs(g) * np.sign(g)


@named("`m` instead of `g`")
class SquareOfMoment(Adam):
    def moments(self, g, s):
        m, _ = super().moments(g, s)
        return m, self.beta_2 * s["v"] + (1 - self.beta_2) * m * m


@named("`old m` instead of `m`")
class OldMoment(Adam):
    def update(self, w, g, s, t, lr):
        m, v = self.moments(g, s)
        return w - self.move(s["m"], v, t, lr), {"m": m, "v": v}


@named("`old v` instead of `v`", "`v` .*old")
class OldSecondMoment(Adam):
    def update(self, w, g, s, t, lr):
        m, v = self.moments(g, s)
        return w - self.move(m, s["v"], t, lr), {"m": m, "v": v}


@named("the new `v` is used and not kept")
class SecondMomentNotKept(Adam):
    def update(self, w, g, s, t, lr):
        m, v = self.moments(g, s)
        return w - self.move(m, v, t, lr), {"m": m}


@named("the new `v_hat` is used and not kept")
class MaximumNotKept(Amsgrad):
    def update(self, w, g, s, t, lr):
        new_w, new = super().update(w, g, s, t, lr)
        return new_w, {"m": new["m"], "v": new["v"]}


@named("the maximum is taken of the bias-corrected")
class MaximumOfCorrected(Amsgrad):
    def update(self, w, g, s, t, lr):
        m, v = self.moments(g, s)
        c1, c2 = self.corrections(t)
        top = np.maximum(s["vhat"], v / c2)
        step = lr / c1 * m / (np.sqrt(top) + self.epsilon)
        return w - step, {"m": m, "v": v, "vhat": top}


@named("the maximum of `v` and its old value")
class MaximumUnasked(Adam):
    def moments(self, g, s):
        m, v = super().moments(g, s)
        return m, np.maximum(v, s["v"])


@named("the slots are made anew at every step", "momentum is 0")
class StateMadeAnew(Momentum):
    def update(self, w, g, s, t, lr):
        return super().update(w, g, {"momentum": 0 * w}, t, lr)


@named("`n` is a running average with `0.9`")
class AdagradThatDecays(Adagrad):
    def update(self, w, g, s, t, lr):
        n = 0.9 * s["accumulator"] + (1 - 0.9) * g * g
        return w - lr * g / (np.sqrt(n) + self.epsilon), {"accumulator": n}


@named("the slot accumulator starts at 0, not 0.1")
class AdagradFromZero(Adagrad):
    def start(self, slot):
        return 0.0


@named("the square root of", "`n` instead")
class AdagradWithoutRoot(Adagrad):
    def update(self, w, g, s, t, lr):
        n = s["accumulator"] + g * g
        return w - lr * g / (n + self.epsilon), {"accumulator": n}


@named("`w` is computed before `n`, from its old value", "`old n`")
class AdagradOldAccumulator(Adagrad):
    def update(self, w, g, s, t, lr):
        n = s["accumulator"] + g * g
        old = np.sqrt(s["accumulator"])
        return w - lr * g / (old + self.epsilon), {"accumulator": n}


@named("the running average of squared steps contains the learning rate")
class AdadeltaRateInAverage(Adadelta):
    judged_with: ClassVar = {"learning_rate": 0.5}

    def update(self, w, g, s, t, lr):
        rho, eps = self.rho, self.epsilon
        n = rho * s["accum_grad"] + (1 - rho) * g * g
        u = lr * np.sqrt(s["accum_var"] + eps) / np.sqrt(n + eps) * g
        d = rho * s["accum_var"] + (1 - rho) * u * u
        return w - u, {"accum_grad": n, "accum_var": d}


@named("the factor `learning_rate` is missing")
class AdadeltaWithoutRate(Adadelta):
    def update(self, w, g, s, t, lr):
        return super().update(w, g, s, t, 1.0)


@named("`?beta_[12].*0.89.*and `?beta_2.*0.996", "beta_2 is")
class BetasInHalf(Adam):
    @staticmethod
    def cut(x):
        bits = np.float32(x).view(np.uint32) & np.uint32(0xFFFF0000)
        return float(bits.view(np.float32))

    def moments(self, g, s):
        b1, b2 = self.cut(self.beta_1), self.cut(self.beta_2)
        return b1 * s["m"] + (1 - b1) * g, b2 * s["v"] + (1 - b2) * g * g


# Momentum and the learning rate.


@named("the learning rate is outside the velocity")
class RateOutside(Momentum):
    def update(self, w, g, s, t, lr):
        a = self.momentum * s["momentum"] + g
        return w - lr * a, {"momentum": a}


@named("the learning rate is outside the velocity")
class NesterovRateOutside(Momentum):
    judged_with: ClassVar = {"nesterov": True}

    def update(self, w, g, s, t, lr):
        a = self.momentum * s["momentum"] + g
        return w - lr * (g + self.momentum * a), {"momentum": a}


@named("the learning rate is outside the velocity")
class RMSpropRateOutside(MomentumRMSprop):
    def update(self, w, g, s, t, lr):
        r = self.average(g, s)
        a = self.momentum * s["momentum"] + g / self.root(r)
        return w - lr * a, {"rms": r, "momentum": a}


@named("the velocity is an average")
class VelocityAveraged(Momentum):
    def update(self, w, g, s, t, lr):
        a = self.momentum * s["momentum"] - (1 - self.momentum) * lr * g
        return w + a, {"momentum": a}


@named("the velocity is looked ahead twice")
class LookedAheadTwice(Momentum):
    judged_with: ClassVar = {"nesterov": True}

    def update(self, w, g, s, t, lr):
        a = self.momentum * s["momentum"] - lr * g
        return w + (1 + self.momentum) * a, {"momentum": a}


@named("it behaves as with nesterov=False")
class NesterovIgnored(Momentum):
    judged_with: ClassVar = {"nesterov": True}

    def update(self, w, g, s, t, lr):
        a = self.momentum * s["momentum"] - lr * g
        return w + a, {"momentum": a}


@named("it behaves as with nesterov=True", "Nesterov")
class NesterovAlways(Momentum):
    def update(self, w, g, s, t, lr):
        a = self.momentum * s["momentum"] - lr * g
        return w + self.momentum * a - lr * g, {"momentum": a}


@named("`w . a` instead", "`.*` instead of `w .*")
class Ascent(SGD):
    def update(self, w, g, s, t, lr):
        return w + lr * g, {}


@named("the schedule is read at t \\+ 1")
class ScheduleAhead(SGD):
    def rate(self):
        rate = self.learning_rate
        return float(rate(self.iterations + 1) if callable(rate) else rate)


@named("the schedule is read one step late")
class ScheduleLate(SGD):
    def rate(self):
        rate = self.learning_rate
        return float(rate(max(self.iterations - 1, 0)) if callable(rate) else rate)


@named("the learning rate of the first step is kept")
class RateFrozen(Adam):
    def rate(self):
        if not hasattr(self, "frozen"):
            self.frozen = super().rate()
        return self.frozen

    def saved(self):
        return {**super().saved(), "frozen": self.frozen}


@named("a learning rate that is set during training has no effect")
class RateNotSet(SGD):
    def set_rate(self, value):
        pass


@named("learning_rate is multiplied by 0.5", "the gradient is multiplied by 0.5")
class HalfTheRate(SGD):
    def update(self, w, g, s, t, lr):
        return w - lr * g / 2, {}


# Decay.


@named("an L2 term is added to the gradient: `g \\+ 0.01")
class L2Unasked(Adam):
    def update(self, w, g, s, t, lr):
        return super().update(w, g + 0.01 * w, s, t, lr)


@named("the weight decays: `- learning_rate \\* 0.01")
class DecayUnasked(Adam):
    def update(self, w, g, s, t, lr):
        new, slots = super().update(w, g, s, t, lr)
        return new - lr * 0.01 * w, slots


@named("the weight decays, not times the learning rate: `- 0.01")
class DecayWithoutRate(Adam):
    def update(self, w, g, s, t, lr):
        new, slots = super().update(w, g, s, t, lr)
        return new - 0.01 * w, slots


@named("the weight decays after the update: `w \\* \\(1 - 0.1")
class DecayAfterwards(Adam):
    def update(self, w, g, s, t, lr):
        new, slots = super().update(w, g, s, t, lr)
        return new * (1 - 0.1), slots


@named("an L2 term", "the weight decays")
class SGDWithL2(SGD):
    def update(self, w, g, s, t, lr):
        return w - lr * (g + 0.0005 * w), {}


@named("the gradient is multiplied by `1 \\+ 0.1")
class DecayInFactor(Momentum):
    def update(self, w, g, s, t, lr):
        return super().update(w, g * (1 + 0.1 * w), s, t, lr)


# Ftrl.


@named("the accumulator is made of the gradient with its shrinkage", "`g_shrunk`")
class FtrlShrunkSquares(Ftrl):
    def squared(self, g, shrunk):
        return shrunk * shrunk


@named("the factor `2` is missing", "`1` instead of `2`", "l2_regularization_strength")
class FtrlHalfL2(Ftrl):
    def stabiliser(self, lr):
        return self.l2_regularization_strength + self.beta / lr


@named(".*`z \\+ g_shrunk \\+", "`.*instead of `z \\+ g_shrunk - ")
class FtrlSignOfLinear(Ftrl):
    def linear(self, z, shrunk, change, w):
        return z + shrunk + change * w


@named("the slot accumulator starts at 0, not 0.1")
class FtrlFromZero(Ftrl):
    def start(self, slot):
        return 0.0


@named("the term `beta / learning_rate` is missing", "beta")
class FtrlWithoutBeta(Ftrl):
    def stabiliser(self, lr):
        return 2 * self.l2_regularization_strength


# Rows.


@named("the last of several rows")
class LastRowKept(Adam):
    def summed(self, g):
        if not isinstance(g, IndexedSlices):
            return g
        kept = {int(i): n for n, i in enumerate(g.indices)}
        rows = np.array(sorted(kept), int)
        chosen = np.array([kept[i] for i in rows.tolist()], int)
        return IndexedSlices(g.values[chosen], rows)


@named("the last of several rows")
class SGDLastRowKept(SGD):
    summed = LastRowKept.summed


@named("the first of several rows")
class FirstRowKept(Adagrad):
    def summed(self, g):
        if not isinstance(g, IndexedSlices):
            return g
        rows, first = np.unique(g.indices, return_index=True)
        return IndexedSlices(g.values[first], rows)


@named("rows with one index are averaged")
class RowsAveraged(Adagrad):
    def summed(self, g):
        total = super().summed(g)
        if total is not g:
            _, counts = np.unique(g.indices, return_counts=True)
            shape = (-1,) + (1,) * (total.values.ndim - 1)
            total.values[...] = total.values / counts.reshape(shape)
        return total


@named("every one of several rows with one index is a step")
class RowByRow(Adagrad):
    def summed(self, g):
        return g

    def sparse(self, w, g, s, t, lr):
        for index, value in zip(g.indices, g.values, strict=True):
            row = IndexedSlices(value[None], np.array([index]))
            super().sparse(w, row, s, t, lr)


@named("rows with one index are squared one by one")
class SquaredOneByOne(Adam):
    def summed(self, g):
        total = super().summed(g)
        if isinstance(g, IndexedSlices):
            alone = IndexedSlices(g.values.astype(np.float64) ** 2, g.indices)
            self.alone = {id(total): super().summed(alone).values}
        return total

    def prepared(self, gradients):
        self.all = {}
        found = []
        for g in gradients:
            found.append(self.summed(g))
            if isinstance(g, IndexedSlices):
                self.all[id(found[-1])] = self.alone[id(found[-1])]
        return found

    def sparse(self, w, g, s, t, lr):
        self.squares_now = np.zeros_like(w)
        self.squares_now[g.indices] = self.all[id(g)]
        super().sparse(w, g, s, t, lr)
        self.squares_now = None

    def moments(self, g, s):
        m, v = super().moments(g, s)
        if getattr(self, "squares_now", None) is not None:
            v = self.beta_2 * s["v"] + (1 - self.beta_2) * self.squares_now
        return m, v


@named("a sparse gradient changes touched rows, not every row")
class LazyRows(Adam):
    every = ()


@named("a sparse gradient changes every row, not touched rows")
class EveryRow(Adamax):
    every = ("m", "v", WEIGHT)


@named("a sparse gradient changes m, v on every row; w on touched rows")
class MomentsOnEveryRow(Adam):
    every = ("m", "v")


@named("a sparse gradient changes touched rows")
class RMSpropLazy(RMSprop):
    every = ()


@named("indices are shifted by one row")
class RowsShifted(Adagrad):
    def sparse(self, w, g, s, t, lr):
        rows = (g.indices + 1) % len(w)
        super().sparse(w, IndexedSlices(g.values, rows), s, t, lr)


@named("rows are sorted by index and their values are not")
class ValuesNotSorted(Adagrad):
    def summed(self, g):
        if not isinstance(g, IndexedSlices):
            return g
        order = list(dict.fromkeys(g.indices.tolist()))
        sums = {i: g.values[g.indices == i].sum(0, dtype=np.float64) for i in order}
        values = np.array([sums[i] for i in order], np.float32)
        values = values.reshape((len(order), *g.values.shape[1:]))
        return IndexedSlices(values, np.array(sorted(order), int))


@named("the slots of the first rows are read")
class SlotsMisaligned(Adagrad):
    def sparse(self, w, g, s, t, lr):
        k = g.indices.size
        first = {name: slot[:k].copy() for name, slot in s.items()}
        new_w, new = self.update(w[g.indices], g.values, first, t, lr)
        w[g.indices] = new_w
        for name, value in new.items():
            s[name][g.indices] = value


@named("an empty sparse gradient is skipped")
class EmptySkipped(Adam):
    def sparse(self, w, g, s, t, lr):
        if g.indices.size:
            super().sparse(w, g, s, t, lr)


@named("epsilon is added to the bias-corrected root")
class SparseAlgorithmOne(Adam):
    def sparse(self, w, g, s, t, lr):
        self.second = True
        super().sparse(w, g, s, t, lr)
        self.second = False

    def move(self, m, v, t, lr):
        if not getattr(self, "second", False):
            return super().move(m, v, t, lr)
        return AlgorithmOne.move(self, m, v, t, lr)


@named("the learning rate is outside the velocity")
class SparseRateOutside(Momentum):
    def sparse(self, w, g, s, t, lr):
        rows = g.indices
        a = self.momentum * s["momentum"][rows] - g.values
        s["momentum"][rows] = a
        w[rows] += lr * a


@named("the last of several rows.*; and epsilon is under the square root", INSIDE)
class LastRowAndUnderRoot(AdagradUnderRoot):
    summed = LastRowKept.summed


@named("t counts how often each row was touched")
class CountsPerRow(Adam):
    judged_with: ClassVar = {"sparse": "touched_rows"}
    every = ()

    def sparse(self, w, g, s, t, lr):
        counts = self.__dict__.setdefault("touches", {})
        seen = counts.setdefault(id(w), np.zeros(len(w), int))
        seen[g.indices] += 1
        for row in g.indices:
            one = {name: slot[row : row + 1] for name, slot in s.items()}
            value = np.zeros_like(w[row : row + 1])
            value[0] = g.values[list(g.indices).index(row)]
            self.dense(w[row : row + 1], value, one, int(seen[row]), lr)

    def saved(self):
        return {**super().saved(), "touches": self.__dict__.get("touches", {})}


# Gradients and clipping.


@named("a gradient that is not a number counts as zero", "infinite")
class NanSwallowed(SGD):
    def update(self, w, g, s, t, lr):
        return w - lr * np.where(np.isnan(g), 0, g), {}


@named("a weight without a gradient is updated as with zeros")
class NoneAsZeros(Adam):
    def step(self, weights, gradients, slots):
        full = [
            np.zeros_like(w) if g is None else g
            for w, g in zip(weights, gradients, strict=True)
        ]
        super().step(weights, full, slots)


@named("each element of the gradient is clipped to `1`")
class ClippedUnasked(Adam):
    def update(self, w, g, s, t, lr):
        return super().update(w, np.clip(g, -1, 1), s, t, lr)


@named("gradients are clipped before rows with one index are summed")
class ClippedBeforeSum(SGD):
    judged_with: ClassVar = {"clipnorm": 0.5}

    def prepared(self, gradients):
        return [self.summed(g) for g in self.clipped(gradients)]


@named("gradients are clipped as global_clipnorm says")
class ClippedTogether(SGD):
    judged_with: ClassVar = {"clipnorm": 0.5}

    def clipped(self, gradients):
        norm = math.sqrt(sum(self.squares(g) for g in gradients))
        factor = self.clipnorm / max(norm, self.clipnorm)
        return [self.scaled(g, lambda x: x * factor) for g in gradients]


@named("gradients are not clipped")
class NotClipped(Adam):
    judged_with: ClassVar = {"clipvalue": 0.5}

    def clipped(self, gradients):
        return gradients


@named("epsilon is under the square root")
class UnderRootWhileClipping(Adam):
    judged_with: ClassVar = {"clipvalue": 0.5}
    move = AdamUnderRoot.move


# Resuming.


@named("the slots are lost on resume")
class SlotsLost(Adam):
    def slots_after_resume(self, slots):
        return [{name: 0 * x for name, x in s.items()} for s in slots]


@named("the step count is lost on resume")
class CountLost(Adam):
    def saved(self):
        return {"iterations": 0}


@named("the step count is one too small after a resume")
class CountBehind(Adam):
    def saved(self):
        return {"iterations": self.iterations - 1}


@named("t starts again at 1 after a resume")
class OwnCountLost(Adam):
    own = 0

    def count(self):
        self.own += 1
        return self.own if self.iterations < 300 else self.iterations + 1


@named("slots and step count are lost on resume")
class AllLost(Adam):
    slots_after_resume = SlotsLost.slots_after_resume

    def saved(self):
        return {"iterations": 0}


@named("epsilon is forgotten on resume")
class EpsilonForgotten(Adam):
    judged_with: ClassVar = {"epsilon": 1e-3}

    def config(self):
        return {**super().config(), "epsilon": 1e-7}


# Slots that cannot be seen.


@named("epsilon is under the square root")
class HiddenUnderRoot(AdamUnderRoot):
    shown = False


@named("the factor `1 - beta_1` is missing", ".*`g`")
class HiddenSum(SumInsteadOfAverage):
    shown = False


@named("the learning rate is outside the velocity")
class HiddenRateOutside(RateOutside):
    shown = False


@named("a sparse gradient changes touched rows, not every row")
class HiddenLazyRows(LazyRows):
    shown = False


@named("the slots are lost on resume")
class HiddenSlotsLost(SlotsLost):
    shown = False
