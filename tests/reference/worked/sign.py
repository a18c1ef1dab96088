"""Descent by signs."""

from __future__ import annotations

import reference
from tests.reference.worked import worked

# Their libraries have no sparse gradients: the same as dense.
EVERY_ROW = {
    "SignSGD": set(),
    "Signum": {"weight", "m"},
    "Rprop": {"weight", "prev", "step_size"},
}


@worked
def sign_descent():
    opt = reference.SignSGD(0.25)
    w1 = [1 - 0.25, -2 + 0.25, 0.5 - 0.25]
    w2 = [0.75 + 0.25, -1.75, 0.25 - 0.25]
    dense = [(w1, {}), (w2, {})]
    sparse = [
        ([0.75, -2, 0.25], {}),
        ([0.75, -2 + 0.25, 0], {}),
    ]
    return opt, dense, sparse


@worked
def signum():
    opt = reference.Signum(0.25, beta=0.25)
    m1 = [0.75 * 2, 0.75 * -4, 0.75 * 1]  # 1.5, -3, 0.75
    m2 = [0.25 * 1.5 - 0.75 * 3, 0.25 * -3, 0.25 * 0.75 + 0.75 * 3]
    w1 = [1 - 0.25, -2 + 0.25, 0.5 - 0.25]
    w2 = [0.75 + 0.25, -1.75 + 0.25, 0.25 - 0.25]
    dense = [(w1, {"m": m1}), (w2, {"m": m2})]
    sparse = [  # row 0 goes on moving
        ([0.75, -2, 0.25], {"m": [1.5, 0, 0.75]}),
        ([0.75 - 0.25, -2 + 0.25, 0], {"m": [0.25 * 1.5, -3, m2[2]]}),
    ]
    return opt, dense, sparse


@worked
def rprop():
    """Step sizes start at 0.25 and stay between 0.2 and 0.3."""
    opt = reference.Rprop(
        0.25, eta_minus=0.75, eta_plus=1.5, min_step_size=0.2, max_step_size=0.3
    )
    w1 = [1 - 0.25, -2 + 0.25, 0.5 - 0.25]
    # The first gradient turned: 0.75 * 0.25 is too short. The third goes on: 1.5 * 0.25
    # is too long.
    w2 = [0.75, -1.75, 0.25 - 0.3]
    dense = [
        (w1, {"prev": [2, -4, 1], "step_size": [0.25, 0.25, 0.25]}),
        (w2, {"prev": [0, 0, 3], "step_size": [0.2, 0.25, 0.3]}),
    ]
    sparse = [  # row 0 forgets its last gradient
        ([0.75, -2, 0.25], {"prev": [2, 0, 1], "step_size": [0.25, 0.25, 0.25]}),
        (
            [0.75, -2 + 0.25, 0.25 - 0.3],
            {"prev": [0, -4, 3], "step_size": [0.25, 0.25, 0.3]},
        ),
    ]
    return opt, dense, sparse
