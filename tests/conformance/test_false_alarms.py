"""Ten thousand random runs of valid rewrites of the rules give no failure.

Each run is one element: its own weight, gradients and hyperparameters, all powers of
ten apart, in float32. A rewrite is equal to its rule in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import reference
from reference.conformance.convention import BoundedArithmetic, ideal
from reference.conformance.judge import compare
from reference.conformance.rounding import FLOAT32, IEEE, SLACK
from reference.optimizer import State

F = np.float32
STEPS = 6
ELEMENTS = 64


def fma(a: Any, b: Any, c: Any) -> np.ndarray:
    """``a * b + c`` rounded once: the product is exact in float64."""
    return F(np.float64(F(a)) * np.float64(F(b)) + np.float64(F(c)))


def average(old: Any, beta: float, new: Any) -> np.ndarray:
    return F(beta) * old + F(1 - beta) * new


def incremental(old: Any, beta: float, new: Any) -> np.ndarray:
    return old + (new - old) * F(1 - beta)


def fused(old: Any, beta: float, new: Any) -> np.ndarray:
    return fma(F(beta), old, F(1 - beta) * new)


def fused_the_other_way(old: Any, beta: float, new: Any) -> np.ndarray:
    return fma(F(1 - beta), new, F(beta) * old)


AVERAGES = (average, incremental, fused, fused_the_other_way)


def quotient(a: Any, b: Any, c: Any) -> np.ndarray:
    return a * b / c


def by_reciprocal(a: Any, b: Any, c: Any) -> np.ndarray:
    return a * (b * (F(1) / c))


def divided_first(a: Any, b: Any, c: Any) -> np.ndarray:
    return a * (b / c)


def fused_quotient(a: Any, b: Any, c: Any) -> np.ndarray:
    return (b / c) * a


QUOTIENTS = (quotient, by_reciprocal, divided_first, fused_quotient)

Step = Callable[..., dict[str, np.ndarray]]


def adam(w, g, m, v, t, h, mean, over):
    m, v = mean(m, h["beta_1"], g), mean(v, h["beta_2"], g * g)
    c1, c2 = 1 - h["beta_1"] ** t, 1 - h["beta_2"] ** t
    step = F(h["learning_rate"] * np.sqrt(c2) / c1)
    w = w - over(step, m, np.sqrt(v) + F(h["epsilon"]))
    return {"w": w, "m": m, "v": v}


def adagrad(w, g, accumulator, t, h, mean, over):
    n = fma(g, g, accumulator) if mean is fused else accumulator + g * g
    w = w - over(F(h["learning_rate"]), g, np.sqrt(n) + F(h["epsilon"]))
    return {"w": w, "accumulator": n}


def rmsprop(w, g, rms, t, h, mean, over):
    r = mean(rms, h["rho"], g * g)
    w = w - over(F(h["learning_rate"]), g, np.sqrt(r) + F(h["epsilon"]))
    return {"w": w, "rms": r}


def momentum(w, g, momentum, t, h, mean, over):
    lr, mu = F(h["learning_rate"]), F(h["momentum"])
    a = fma(mu, momentum, -(lr * g)) if mean is fused else mu * momentum - lr * g
    return {"w": w + a, "momentum": a}


def adamax(w, g, m, v, t, h, mean, over):
    m = mean(m, h["beta_1"], g)
    u = np.maximum(F(h["beta_2"]) * v, np.abs(g))
    rate = F(h["learning_rate"] / (1 - h["beta_1"] ** t))
    return {"w": w - over(rate, m, u + F(h["epsilon"])), "m": m, "v": u}


def adadelta(w, g, accum_grad, accum_var, t, h, mean, over):
    eps, rho = F(h["epsilon"]), h["rho"]
    n = mean(accum_grad, rho, g * g)
    if over is by_reciprocal:
        u = np.sqrt(accum_var + eps) * (F(1) / np.sqrt(n + eps)) * g
    else:
        u = np.sqrt(accum_var + eps) * g / np.sqrt(n + eps)
    d = mean(accum_var, rho, u * u)
    return {"w": w - F(h["learning_rate"]) * u, "accum_grad": n, "accum_var": d}


@dataclass(frozen=True)
class Rewritten:
    cls: type[reference.Optimizer]
    step: Step
    fixed: dict[str, Any]


REWRITTEN = (
    Rewritten(reference.Adam, adam, {}),
    Rewritten(reference.Adagrad, adagrad, {}),
    Rewritten(reference.RMSprop, rmsprop, {}),
    Rewritten(reference.SGD, momentum, {"momentum": 0.75}),
    Rewritten(reference.Adamax, adamax, {}),
    Rewritten(reference.Adadelta, adadelta, {}),
)


def drawn(cls: type, rng: np.random.Generator, fixed: dict[str, Any]) -> dict[str, Any]:
    """Random hyperparameters of the usual sizes."""
    ranges = {
        "learning_rate": lambda: float(10.0 ** rng.uniform(-4, 0)),
        "epsilon": lambda: float(10.0 ** rng.uniform(-8, -2)),
        "beta_1": lambda: float(rng.uniform(0.5, 0.99)),
        "beta_2": lambda: float(1 - 10.0 ** rng.uniform(-4, -1)),
        "rho": lambda: float(rng.uniform(0.5, 0.99)),
    }
    names = cls(**fixed).hyperparameters()
    return {n: draw() for n, draw in ranges.items() if n in names} | fixed


def failures(
    rewritten: Rewritten, mean: Any, over: Any, rng: np.random.Generator
) -> tuple[int, int]:
    """How many runs leave the bound, of how many; a run fails once."""
    h = drawn(rewritten.cls, rng, rewritten.fixed)
    optimizer = rewritten.cls(**h)
    arithmetic = BoundedArithmetic(ideal(FLOAT32), FLOAT32, IEEE)
    w = F(rng.normal(size=ELEMENTS))
    state = optimizer.init(w)
    slots = {name: F(x) for name, x in state.slots[0].items()}
    free_w = [arithmetic.lift(w)]
    free = State(0, ({n: arithmetic.lift(x) for n, x in slots.items()},))
    bad = np.zeros(ELEMENTS, bool)
    for t in range(1, STEPS + 1):
        size = 10.0 ** rng.uniform(-5, 2, ELEMENTS)
        g = F(size * rng.choice([-1.0, 1.0], ELEMENTS))
        g[rng.random(ELEMENTS) < 0.1] = 0
        before = {n: arithmetic.lift(x) for n, x in slots.items()}
        locked = optimizer.advance(
            [arithmetic.lift(w)], [g], State(t - 1, (before,)), arithmetic
        )
        free_w, free = optimizer.advance(free_w, [g], free, arithmetic)
        made = rewritten.step(w, g, **slots, t=t, h=h, mean=mean, over=over)
        w, slots = made["w"], {n: made[n] for n in slots}
        for (due_w,), due in (locked, (free_w, free)):
            for name, value in {**due.slots[0], "w": due_w}.items():
                bad |= compare(value, np.float64(made[name]))[0] > SLACK
    return int(bad.sum()), ELEMENTS


@pytest.mark.slow
def test_ten_thousand_random_runs_give_no_alarm():
    rng = np.random.default_rng(0)
    alarms, runs = 0, 0
    for rewritten in REWRITTEN:
        for mean in AVERAGES:
            for over in QUOTIENTS:
                for _ in range(2):
                    bad, count = failures(rewritten, mean, over, rng)
                    alarms, runs = alarms + bad, runs + count
    assert runs >= 10_000
    assert alarms == 0


def test_a_wrong_rewrite_is_an_alarm():
    def wrong(old, beta, new):
        return F(beta) * old + F(beta) * new

    bad, count = failures(REWRITTEN[0], wrong, quotient, np.random.default_rng(0))
    assert bad > count / 2
