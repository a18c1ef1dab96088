"""The oracle itself: time to import, time and memory of a large step."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np

from benchmarks.cases import Measurement
from benchmarks.timing import compare

ELEMENTS = 10_000_000
IMPORT_LIMIT_MS = 200.0


def import_time(seconds: float) -> Measurement:
    """Compare the time of `import reference` in a new Python with what it may take."""
    program = (
        "import time; start = time.perf_counter(); import reference; "
        "print((time.perf_counter() - start) * 1e3)"
    )

    def once() -> float:
        return float(subprocess.check_output([sys.executable, "-c", program]))

    best = min(once() for _ in range(10))
    return Measurement.of_times((best, IMPORT_LIMIT_MS))


def _problem() -> tuple[Any, np.ndarray, np.ndarray, Any]:
    import reference

    rng = np.random.default_rng(0)
    w, g = rng.standard_normal(ELEMENTS), rng.standard_normal(ELEMENTS)
    optimizer = reference.Adam()
    # A state with moments: the first step would meet zeros.
    w, state = optimizer.step(w, g, optimizer.init(w))
    return optimizer, w, g, state


def _plain_adam(w, g, m, v, t, learning_rate, beta_1, beta_2, epsilon):
    m = beta_1 * m + (1 - beta_1) * g
    v = beta_2 * v + (1 - beta_2) * g**2
    step_size = learning_rate * np.sqrt(1 - beta_2**t) / (1 - beta_1**t)
    w = w - step_size * m / (np.sqrt(v) + epsilon)
    return w, m, v


def adam_time(seconds: float) -> Measurement:
    """Compare a step of `reference.Adam` with its equations typed into NumPy."""
    optimizer, w, g, state = _problem()
    slots = state.slots[0]
    return Measurement.of_times(
        compare(
            lambda: optimizer.step(w, g, state),
            lambda: _plain_adam(
                w, g, slots["m"], slots["v"], 2, 0.001, 0.9, 0.999, 1e-7
            ),
            seconds,
        )
    )


def adam_memory(seconds: float) -> Measurement:
    """Compare the most memory that a step holds with what goes in and comes out."""
    optimizer, w, g, state = _problem()
    inputs = w.nbytes + g.nbytes + sum(slot.nbytes for slot in state.slots[0].values())
    outputs = w.nbytes + sum(slot.nbytes for slot in state.slots[0].values())
    tracemalloc.start()
    try:
        optimizer.step(w, g, state)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return Measurement(None, None, (inputs + peak) / (inputs + outputs))
