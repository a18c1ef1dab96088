"""A run of the oracle itself, as an implementation would make it."""

from __future__ import annotations

import numpy as np

from ..optimizer import Arithmetic, Optimizer, State
from .judge import Recording
from .mutants import Resume
from .port import Snapshot
from .rounding import Format
from .scenarios import Program, settled_state


def simulate(
    optimizer: Optimizer,
    program: Program,
    stored: Format,
    resumed: Resume | None = None,
) -> Recording:
    """``program`` run by ``optimizer``, with state kept in the format ``stored``.

    ``resumed`` is what a resume makes of the optimizer and its state.
    """
    weights = [np.asarray(w.start, np.float64) for w in program.weights]
    state = _rounded(optimizer.init(weights), stored)
    if program.iterations:
        state = settled_state(optimizer, program, stored)
    snapshots = [Snapshot(weights, state)]
    for step in range(program.steps):
        if step == program.resume_before and resumed is not None:
            optimizer, state = resumed(optimizer, state)
        if step in program.learning_rates:
            rate = program.learning_rates[step]
            optimizer = optimizer.replaced(learning_rate=rate)
        weights, state = optimizer.advance(
            weights, program.gradients(step), state, Arithmetic()
        )
        weights = [stored.round(w) for w in weights]
        state = _rounded(state, stored)
        snapshots.append(Snapshot(weights, state))
    return Recording(program, snapshots)


def _rounded(state: State, stored: Format) -> State:
    slots = tuple({n: stored.round(s) for n, s in each.items()} for each in state.slots)
    return State(state.iterations, slots, state.shared)
