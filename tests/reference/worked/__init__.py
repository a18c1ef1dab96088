"""What the cases that are worked by hand have in common; one file for each family.

All cases start from the same weights and see the same gradients:

    w = 1, -2, 0.5      first step: g = 2, -4, 1      second step: g = -3, 0, 3

The sparse cases see three rows of one number each. The first step touches row 0 (g = 2)
and row 2 (twice, 0.75 and 0.25, so g = 1); the second touches row 1 (twice, -5 and 1,
so g = -4) and row 2 (g = 3). So row 0 is left alone at the second step, row 1 is first
touched at the second step, and row 2 has the history of the third weight above.

The numbers are written as arithmetic, in the order of the equations in the paper that
the class names. Hyperparameters are quarters and halves, so that most lines are exact
and can be followed in the head; a decay is never a half, which would hide `1 - decay`.

A file also says, in `EVERY_ROW`, which tensors of a class the home library changes on
rows without a gradient: `"weight"` or slot names; the others change on touched rows.
"""

from __future__ import annotations

import importlib
import pkgutil

import numpy as np

from reference import IndexedSlices

W = [1.0, -2.0, 0.5]
G1 = [2.0, -4.0, 1.0]
G2 = [-3.0, 0.0, 3.0]
S1 = IndexedSlices(np.array([0.75, 2.0, 0.25]), np.array([2, 0, 2]))
S2 = IndexedSlices(np.array([-5.0, 3.0, 1.0]), np.array([1, 2, 1]))

# The bound. Two steps of the longest rule (Nadam) take fewer than 40 operations on each
# side, the rule's and the arithmetic below; each is off by at most eps / 2 of its
# result, so of the largest intermediate. On its way to a weight or slot an error meets
# factors of magnitude at most 4 (a gradient) and divisors of magnitude at least 1/4.
OPERATIONS = 2 * 40
GAIN = 4 * 4


def bound(*numbers):
    largest = max(np.max(np.abs(values)) for values in numbers)
    return OPERATIONS * GAIN * np.finfo(np.float64).eps / 2 * largest


CASES = {}


def worked(function):
    """Register a case: the optimizer; w and slots after each step, dense and sparse.

    The function returns the optimizer and two lists of two pairs: the three weights,
    and the values of every slot (and shared slot) by name.
    """
    CASES[function.__name__] = function()
    return function


MATRICES = {}


def worked_matrix(function):
    """Register a case of a rule that asks for two axes or more.

    The function returns the optimizer, the weight, two gradients, and a list of two
    pairs: the weight and the values of its slots, by name, after each step.
    """
    MATRICES[function.__name__] = function()
    return function


def compare(optimizer, steps, gradients, shape, start=W):
    tolerance = bound(
        start,
        G1,
        G2,
        *[values for w, slots in steps for values in (w, *slots.values())],
    )
    w = np.array(start).reshape(shape)
    state = optimizer.init(w)
    for (due_w, due), g in zip(steps, gradients, strict=True):
        w, state = optimizer.step(w, g, state)
        came = {**state.slots[0], **state.shared}
        assert set(came) == set(due)
        assert np.all(np.abs(w.ravel() - np.ravel(due_w)) <= tolerance)
        for slot, values in due.items():
            error = np.abs(np.reshape(came[slot], np.shape(values)) - values)
            assert np.all(error <= tolerance), slot


def modules():
    """The families."""
    return [
        importlib.import_module(module.name)
        for module in pkgutil.iter_modules(__path__, f"{__name__}.")
    ]
