"""Times of two things that take turns, so that a busy machine slows both alike."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

Action = Callable[[], object]


def milliseconds(action: Action) -> float:
    """Return the time that one call of `action` takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


def compare(
    ours: Action, rival: Action, seconds: float, at_least: int = 5
) -> tuple[float, float]:
    """Return how long a call of each takes, in milliseconds.

    Args:
        ours, rival: called by turns, after one call each that does not count.
        seconds: for how long.
        at_least: how many turns, even if they take longer.
    """
    ours()
    rival()
    return alternate(
        lambda: milliseconds(ours), lambda: milliseconds(rival), seconds, at_least
    )


def alternate(
    ours: Callable[[], float],
    rival: Callable[[], float],
    seconds: float,
    at_least: int = 5,
) -> tuple[float, float]:
    """Return the lower quartile of the results of each, called by turns.

    What is above is what else the machine did; the least of many is a stroke of luck.
    """
    end = time.perf_counter() + seconds
    results: tuple[list[float], list[float]] = ([], [])
    turn = 0
    while turn < at_least or time.perf_counter() < end:
        for which in (0, 1) if turn % 2 else (1, 0):
            results[which].append((ours, rival)[which]())
        turn += 1
    our_quartile, rival_quartile = (float(np.quantile(r, 0.25)) for r in results)
    return our_quartile, rival_quartile
