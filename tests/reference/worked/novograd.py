"""NovoGrad, by hand: beta_1 = 1/4, beta_2 = 3/4, epsilon = 1, a half for the rest."""

from __future__ import annotations

from math import sqrt

import reference
from tests.reference.worked import worked

EVERY_ROW = {"NovoGrad": set()}

V1, V1_OF_ROWS = 4 + 16 + 1, 4 + 1
V2 = 0.75 * 21 + 0.25 * (9 + 9)  # 20.25, less than V1
V2_OF_ROWS = 0.75 * 5 + 0.25 * (16 + 9)  # 10


def steps(part, v2, amsgrad=False):
    """From how much of a later direction enters, and what it is divided by."""
    first = sqrt(V1) + 1
    m1 = [
        -0.5 * (2 / first + 0.5 * 1),
        -0.5 * (-4 / first + 0.5 * -2),
        -0.5 * (1 / first + 0.5 * 0.5),
    ]
    w1 = [1 + m1[0], -2 + m1[1], 0.5 + m1[2]]
    second = sqrt(v2) + 1
    m2 = [
        0.25 * m1[0] - 0.5 * part * (-3 / second + 0.5 * w1[0]),
        0.25 * m1[1] - 0.5 * part * (0.5 * w1[1]),
        0.25 * m1[2] - 0.5 * part * (3 / second + 0.5 * w1[2]),
    ]
    w2 = [w1[0] + m2[0], w1[1] + m2[1], w1[2] + m2[2]]

    first = sqrt(V1_OF_ROWS) + 1
    r1 = [-0.5 * (2 / first + 0.5 * 1), 0, -0.5 * (1 / first + 0.5 * 0.5)]
    x1 = [1 + r1[0], -2, 0.5 + r1[2]]
    second = sqrt(V2_OF_ROWS) + 1
    r2 = [  # row 0 does not decay
        r1[0],
        -0.5 * part * (-4 / second + 0.5 * -2),
        0.25 * r1[2] - 0.5 * part * (3 / second + 0.5 * x1[2]),
    ]
    x2 = [x1[0], x1[1] + r2[1], x1[2] + r2[2]]

    def slots(m, v, largest):
        return {"m": m, "v": v, **({"vhat": largest} if amsgrad else {})}

    return [(w1, slots(m1, V1, V1)), (w2, slots(m2, V2, v2))], [
        (x1, slots(r1, V1_OF_ROWS, V1_OF_ROWS)),
        (x2, slots(r2, V2_OF_ROWS, V2_OF_ROWS)),
    ]


def optimizer(**options):
    return reference.NovoGrad(
        0.5, beta_1=0.25, beta_2=0.75, epsilon=1.0, weight_decay=0.5, **options
    )


@worked
def novograd():
    return optimizer(), *steps(1, V2)


@worked
def novograd_averaging():
    return optimizer(grad_averaging=True), *steps(0.75, V2)


@worked
def novograd_amsgrad():
    return optimizer(amsgrad=True), *steps(1, V1, amsgrad=True)


@worked
def novograd_averaging_amsgrad():
    opt = optimizer(grad_averaging=True, amsgrad=True)
    return opt, *steps(0.75, V1, amsgrad=True)
