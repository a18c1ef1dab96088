"""Times of two things that take turns, so that a busy machine slows both alike."""

from __future__ import annotations

import time
from collections.abc import Callable

Action = Callable[[], object]


def milliseconds(action: Action) -> float:
    """Return the time that one call of `action` takes."""
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


def fastest(
    ours: Action, rival: Action, seconds: float, at_least: int = 5
) -> tuple[float, float]:
    """Return the shortest time of each, in milliseconds.

    The shortest is what the code needs; all above it is what else the machine did.

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
    """Return the smallest result of each, called by turns as in `fastest`."""
    end = time.perf_counter() + seconds
    best_ours = best_rival = float("inf")
    turn = 0
    while turn < at_least or time.perf_counter() < end:
        first, second = (ours, rival) if turn % 2 else (rival, ours)
        one, other = first(), second()
        best_ours = min(best_ours, one if turn % 2 else other)
        best_rival = min(best_rival, other if turn % 2 else one)
        turn += 1
    return best_ours, best_rival
