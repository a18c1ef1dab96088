"""The optimizers that legacy Keras has."""

from __future__ import annotations

from math import sqrt

import reference
from tests.reference.worked import worked

# Keras' _resource_apply_sparse of each class.
EVERY_ROW = {
    "SGD": set(),
    "Adagrad": set(),
    "Adadelta": set(),
    "RMSprop": {"rms", "mg"},
    "RMSprop-momentum": set(),
    "Adam": {"weight", "m", "v", "vhat"},
    "Adamax": set(),
    "Nadam": {"m", "v"},
    "Ftrl": set(),
}


@worked
def sgd():
    opt = reference.SGD(0.25)
    w1 = [1 - 0.25 * 2, -2 + 0.25 * 4, 0.5 - 0.25 * 1]  # 0.5, -1, 0.25
    w2 = [0.5 + 0.25 * 3, -1 - 0, 0.25 - 0.25 * 3]
    dense = [(w1, {}), (w2, {})]
    sparse = [
        ([0.5, -2, 0.25], {}),
        ([0.5, -2 + 0.25 * 4, 0.25 - 0.25 * 3], {}),
    ]
    return opt, dense, sparse


@worked
def sgd_momentum():
    opt = reference.SGD(0.25, momentum=0.5)
    a1 = [-0.25 * 2, 0.25 * 4, -0.25 * 1]  # -0.5, 1, -0.25
    w1 = [1 - 0.5, -2 + 1, 0.5 - 0.25]  # 0.5, -1, 0.25
    a2 = [0.5 * -0.5 + 0.25 * 3, 0.5 * 1, 0.5 * -0.25 - 0.25 * 3]  # 0.5, 0.5, -0.875
    w2 = [0.5 + 0.5, -1 + 0.5, 0.25 - 0.875]
    dense = [(w1, {"momentum": a1}), (w2, {"momentum": a2})]
    sparse = [
        ([0.5, -2, 0.25], {"momentum": [-0.5, 0, -0.25]}),
        ([0.5, -2 + 1, 0.25 - 0.875], {"momentum": [-0.5, 0.25 * 4, -0.875]}),
    ]
    return opt, dense, sparse


@worked
def sgd_nesterov():
    opt = reference.SGD(0.25, momentum=0.5, nesterov=True)
    a1 = [-0.5, 1, -0.25]
    w1 = [  # w + momentum * a1 - learning_rate * g = 0.25, -0.5, 0.125
        1 + 0.5 * -0.5 - 0.25 * 2,
        -2 + 0.5 * 1 + 0.25 * 4,
        0.5 + 0.5 * -0.25 - 0.25 * 1,
    ]
    a2 = [0.5, 0.5, -0.875]
    w2 = [
        0.25 + 0.5 * 0.5 + 0.25 * 3,
        -0.5 + 0.5 * 0.5 - 0.25 * 0,
        0.125 + 0.5 * -0.875 - 0.25 * 3,
    ]
    dense = [(w1, {"momentum": a1}), (w2, {"momentum": a2})]
    sparse = [
        ([0.25, -2, 0.125], {"momentum": [-0.5, 0, -0.25]}),
        ([0.25, -2 + 0.5 * 1 + 0.25 * 4, w2[2]], {"momentum": [-0.5, 1, -0.875]}),
    ]
    return opt, dense, sparse


@worked
def adagrad():
    opt = reference.Adagrad(0.5, initial_accumulator_value=1.0, epsilon=0.25)
    n1 = [1 + 2**2, 1 + 4**2, 1 + 1**2]  # 5, 17, 2
    w1 = [
        1 - 0.5 * 2 / (sqrt(5) + 0.25),
        -2 + 0.5 * 4 / (sqrt(17) + 0.25),
        0.5 - 0.5 * 1 / (sqrt(2) + 0.25),
    ]
    n2 = [5 + 3**2, 17, 2 + 3**2]  # 14, 17, 11
    w2 = [
        w1[0] + 0.5 * 3 / (sqrt(14) + 0.25),
        w1[1],
        w1[2] - 0.5 * 3 / (sqrt(11) + 0.25),
    ]
    dense = [(w1, {"accumulator": n1}), (w2, {"accumulator": n2})]
    sparse = [
        ([w1[0], -2, w1[2]], {"accumulator": [5, 1, 2]}),
        ([w1[0], w1[1], w2[2]], {"accumulator": [5, 1 + 4**2, 11]}),
    ]
    return opt, dense, sparse


# Averages of squared gradients where rho or beta_2 is 3/4.
V1 = [0.25 * 2**2, 0.25 * 4**2, 0.25 * 1**2]  # 1, 4, 0.25
V2 = [0.75 * 1 + 0.25 * 3**2, 0.75 * 4, 0.75 * 0.25 + 0.25 * 3**2]  # 3, 3, 2.4375


@worked
def adadelta():
    opt = reference.Adadelta(0.5, rho=0.75, epsilon=1.0)
    u1 = [sqrt(1) / sqrt(2) * 2, -sqrt(1) / sqrt(5) * 4, sqrt(1) / sqrt(1.25) * 1]
    d1 = [0.25 * 4 / 2, 0.25 * 16 / 5, 0.25 / 1.25]  # 0.5, 0.8, 0.2
    w1 = [1 - 0.5 * u1[0], -2 - 0.5 * u1[1], 0.5 - 0.5 * u1[2]]
    u2 = [-sqrt(1.5) / sqrt(4) * 3, 0.0, sqrt(1.2) / sqrt(3.4375) * 3]
    d2 = [
        0.75 * 0.5 + 0.25 * 1.5 / 4 * 9,
        0.75 * 0.8,
        0.75 * 0.2 + 0.25 * 1.2 / 3.4375 * 9,
    ]
    w2 = [w1[0] - 0.5 * u2[0], w1[1], w1[2] - 0.5 * u2[2]]
    dense = [
        (w1, {"accum_grad": V1, "accum_var": d1}),
        (w2, {"accum_grad": V2, "accum_var": d2}),
    ]
    sparse = [
        (
            [w1[0], -2, w1[2]],
            {"accum_grad": [1, 0, 0.25], "accum_var": [0.5, 0, 0.2]},
        ),
        (  # row 0 does not decay; row 1 is as the first dense step leaves it
            [w1[0], -2 + 0.5 * 4 / sqrt(5), w2[2]],
            {"accum_grad": [1, 4, 2.4375], "accum_var": [0.5, 0.8, d2[2]]},
        ),
    ]
    return opt, dense, sparse


@worked
def rmsprop():
    opt = reference.RMSprop(0.5, rho=0.75, epsilon=0.25)
    w1 = [
        1 - 0.5 * 2 / (1 + 0.25),
        -2 + 0.5 * 4 / (2 + 0.25),
        0.5 - 0.5 * 1 / (0.5 + 0.25),
    ]
    w2 = [
        w1[0] + 0.5 * 3 / (sqrt(3) + 0.25),
        w1[1],
        w1[2] - 0.5 * 3 / (sqrt(2.4375) + 0.25),
    ]
    dense = [(w1, {"rms": V1}), (w2, {"rms": V2})]
    sparse = [
        ([w1[0], -2, w1[2]], {"rms": [1, 0, 0.25]}),
        # The average of row 0 decays, its weight stays.
        ([w1[0], w1[1], w2[2]], {"rms": [0.75 * 1, 0.25 * 4**2, 2.4375]}),
    ]
    return opt, dense, sparse


# Averages of the gradient in centered RMSprop; V1 - MG1**2 is 0.75, 3, 0.1875.
MG1 = [0.25 * 2, 0.25 * -4, 0.25 * 1]  # 0.5, -1, 0.25
MG2 = [
    0.75 * 0.5 - 0.25 * 3,
    0.75 * -1,
    0.75 * 0.25 + 0.25 * 3,
]  # -0.375, -0.75, 0.9375
VARIANCE_2 = [3 - 0.375**2, 3 - 0.75**2, 2.4375 - 0.9375**2]


@worked
def rmsprop_centered():
    opt = reference.RMSprop(0.5, rho=0.75, epsilon=0.25, centered=True)
    w1 = [
        1 - 0.5 * 2 / (sqrt(0.75) + 0.25),
        -2 + 0.5 * 4 / (sqrt(3) + 0.25),
        0.5 - 0.5 * 1 / (sqrt(0.1875) + 0.25),
    ]
    w2 = [
        w1[0] + 0.5 * 3 / (sqrt(VARIANCE_2[0]) + 0.25),
        w1[1],
        w1[2] - 0.5 * 3 / (sqrt(VARIANCE_2[2]) + 0.25),
    ]
    dense = [(w1, {"rms": V1, "mg": MG1}), (w2, {"rms": V2, "mg": MG2})]
    sparse = [
        ([w1[0], -2, w1[2]], {"rms": [1, 0, 0.25], "mg": [0.5, 0, 0.25]}),
        (
            [w1[0], w1[1], w2[2]],
            {"rms": [0.75, 4, 2.4375], "mg": [0.75 * 0.5, -1, 0.9375]},
        ),
    ]
    return opt, dense, sparse


@worked
def rmsprop_momentum():
    """Epsilon is under the root here, as in Keras."""
    opt = reference.RMSprop(0.5, rho=0.75, momentum=0.5, epsilon=0.25)
    a1 = [0.5 * 2 / sqrt(1.25), -0.5 * 4 / sqrt(4.25), 0.5 * 1 / sqrt(0.5)]
    w1 = [1 - a1[0], -2 - a1[1], 0.5 - a1[2]]
    a2 = [
        0.5 * a1[0] - 0.5 * 3 / sqrt(3.25),
        0.5 * a1[1],
        0.5 * a1[2] + 0.5 * 3 / sqrt(2.6875),
    ]
    w2 = [w1[0] - a2[0], w1[1] - a2[1], w1[2] - a2[2]]
    dense = [(w1, {"rms": V1, "momentum": a1}), (w2, {"rms": V2, "momentum": a2})]
    sparse = [
        (
            [w1[0], -2, w1[2]],
            {"rms": [1, 0, 0.25], "momentum": [a1[0], 0, a1[2]]},
        ),
        (
            [w1[0], w1[1], w2[2]],
            {"rms": [1, 4, 2.4375], "momentum": [a1[0], a1[1], a2[2]]},
        ),
    ]
    return opt, dense, sparse


@worked
def rmsprop_momentum_centered():
    opt = reference.RMSprop(0.5, rho=0.75, momentum=0.5, epsilon=0.25, centered=True)
    a1 = [0.5 * 2 / sqrt(1), -0.5 * 4 / sqrt(3.25), 0.5 * 1 / sqrt(0.4375)]
    w1 = [1 - 1, -2 - a1[1], 0.5 - a1[2]]
    a2 = [
        0.5 * 1 - 0.5 * 3 / sqrt(VARIANCE_2[0] + 0.25),
        0.5 * a1[1],
        0.5 * a1[2] + 0.5 * 3 / sqrt(VARIANCE_2[2] + 0.25),
    ]
    w2 = [w1[0] - a2[0], w1[1] - a2[1], w1[2] - a2[2]]
    dense = [
        (w1, {"rms": V1, "momentum": a1, "mg": MG1}),
        (w2, {"rms": V2, "momentum": a2, "mg": MG2}),
    ]
    sparse = [
        (
            [w1[0], -2, w1[2]],
            {
                "rms": [1, 0, 0.25],
                "momentum": [1, 0, a1[2]],
                "mg": [0.5, 0, 0.25],
            },
        ),
        (
            [w1[0], w1[1], w2[2]],
            {
                "rms": [1, 4, 2.4375],
                "momentum": [1, a1[1], a2[2]],
                "mg": [0.5, -1, 0.9375],
            },
        ),
    ]
    return opt, dense, sparse


# First moments of Adam, AMSGrad, Adamax and Nadam with beta_1 = 1/4.
M1 = [0.75 * 2, 0.75 * -4, 0.75 * 1]  # 1.5, -3, 0.75
M2 = [0.25 * 1.5 - 0.75 * 3, 0.25 * -3, 0.25 * 0.75 + 0.75 * 3]  # -1.875, -0.75, 2.4375
STEP_1 = 0.5 * sqrt(1 - 0.75) / (1 - 0.25)  # 1/3
STEP_2 = 0.5 * sqrt(1 - 0.75**2) / (1 - 0.25**2)
ADAM_1 = [
    1 - STEP_1 * 1.5 / (1 + 0.25),
    -2 + STEP_1 * 3 / (2 + 0.25),
    0.5 - STEP_1 * 0.75 / (0.5 + 0.25),
]


@worked
def adam():
    opt = reference.Adam(0.5, beta_1=0.25, beta_2=0.75, epsilon=0.25)
    w1 = ADAM_1
    w2 = [
        w1[0] + STEP_2 * 1.875 / (sqrt(3) + 0.25),
        w1[1] + STEP_2 * 0.75 / (sqrt(3) + 0.25),
        w1[2] - STEP_2 * 2.4375 / (sqrt(2.4375) + 0.25),
    ]
    dense = [(w1, {"m": M1, "v": V1}), (w2, {"m": M2, "v": V2})]
    sparse = [
        ([w1[0], -2, w1[2]], {"m": [1.5, 0, 0.75], "v": [1, 0, 0.25]}),
        (  # row 0 decays and moves; row 1 has t = 2
            [
                w1[0] - STEP_2 * 0.375 / (sqrt(0.75) + 0.25),
                -2 + STEP_2 * 3 / (2 + 0.25),
                w2[2],
            ],
            {"m": [0.25 * 1.5, -3, 2.4375], "v": [0.75 * 1, 0.25 * 16, 2.4375]},
        ),
    ]
    return opt, dense, sparse


@worked
def adam_touched_rows():
    """LazyAdam: row 0 stays as the first step left it, the others are as in Adam."""
    opt = reference.Adam(
        0.5, beta_1=0.25, beta_2=0.75, epsilon=0.25, sparse="touched_rows"
    )
    _, dense, [first, (w, slots)] = adam()
    m, v = slots["m"], slots["v"]
    second = ([ADAM_1[0], *w[1:]], {"m": [1.5, *m[1:]], "v": [1, *v[1:]]})
    return opt, dense, [first, second]


@worked
def amsgrad():
    opt = reference.Adam(0.5, beta_1=0.25, beta_2=0.75, epsilon=0.25, amsgrad=True)
    w1 = ADAM_1
    vhat2 = [3, 4, 2.4375]  # the larger of V1 and V2
    w2 = [
        w1[0] + STEP_2 * 1.875 / (sqrt(3) + 0.25),
        w1[1] + STEP_2 * 0.75 / (2 + 0.25),
        w1[2] - STEP_2 * 2.4375 / (sqrt(2.4375) + 0.25),
    ]
    dense = [
        (w1, {"m": M1, "v": V1, "vhat": V1}),
        (w2, {"m": M2, "v": V2, "vhat": vhat2}),
    ]
    sparse = [
        (
            [w1[0], -2, w1[2]],
            {"m": [1.5, 0, 0.75], "v": [1, 0, 0.25], "vhat": [1, 0, 0.25]},
        ),
        (
            [
                w1[0] - STEP_2 * 0.375 / (1 + 0.25),
                -2 + STEP_2 * 3 / (2 + 0.25),
                w2[2],
            ],
            {
                "m": [0.375, -3, 2.4375],
                "v": [0.75, 4, 2.4375],
                "vhat": [1, 4, 2.4375],
            },
        ),
    ]
    return opt, dense, sparse


@worked
def adamax():
    opt = reference.Adamax(0.5, beta_1=0.25, beta_2=0.75, epsilon=0.25)
    u1 = [2, 4, 1]
    step_1, step_2 = 0.5 / (1 - 0.25), 0.5 / (1 - 0.25**2)
    w1 = [
        1 - step_1 * 1.5 / (2 + 0.25),
        -2 + step_1 * 3 / (4 + 0.25),
        0.5 - step_1 * 0.75 / (1 + 0.25),
    ]
    u2 = [3, 0.75 * 4, 3]  # the larger of 0.75 * u1 = 1.5, 3, 0.75 and |g| = 3, 0, 3
    w2 = [
        w1[0] + step_2 * 1.875 / (3 + 0.25),
        w1[1] + step_2 * 0.75 / (3 + 0.25),
        w1[2] - step_2 * 2.4375 / (3 + 0.25),
    ]
    dense = [(w1, {"m": M1, "v": u1}), (w2, {"m": M2, "v": u2})]
    sparse = [
        ([w1[0], -2, w1[2]], {"m": [1.5, 0, 0.75], "v": [2, 0, 1]}),
        (
            [w1[0], -2 + step_2 * 3 / (4 + 0.25), w2[2]],
            {"m": [1.5, -3, 2.4375], "v": [2, 4, 3]},
        ),
    ]
    return opt, dense, sparse


@worked
def nadam():
    opt = reference.Nadam(
        0.5, beta_1=0.25, beta_2=0.75, epsilon=0.25, schedule_decay=2.0
    )
    mu_1 = 0.25 * (1 - 0.5 * 0.96**2)
    mu_2 = 0.25 * (1 - 0.5 * 0.96**4)
    mu_3 = 0.25 * (1 - 0.5 * 0.96**6)
    of_g1, of_m1 = (1 - mu_1) / (1 - mu_1), mu_2 / (1 - mu_1 * mu_2)
    of_g2, of_m2 = (1 - mu_2) / (1 - mu_1 * mu_2), mu_3 / (1 - mu_1 * mu_2 * mu_3)
    w1 = [  # roots of V1 / (1 - 0.75): 2, 4, 1
        1 - 0.5 * (of_g1 * 2 + of_m1 * 1.5) / (2 + 0.25),
        -2 + 0.5 * (of_g1 * 4 + of_m1 * 3) / (4 + 0.25),
        0.5 - 0.5 * (of_g1 * 1 + of_m1 * 0.75) / (1 + 0.25),
    ]
    w2 = [  # 1 - 0.75**2 = 0.4375
        w1[0] + 0.5 * (of_g2 * 3 + of_m2 * 1.875) / (sqrt(3 / 0.4375) + 0.25),
        w1[1] + 0.5 * (of_m2 * 0.75) / (sqrt(3 / 0.4375) + 0.25),
        w1[2] - 0.5 * (of_g2 * 3 + of_m2 * 2.4375) / (sqrt(2.4375 / 0.4375) + 0.25),
    ]
    dense = [
        (w1, {"m": M1, "v": V1, "momentum_cache": mu_1}),
        (w2, {"m": M2, "v": V2, "momentum_cache": mu_1 * mu_2}),
    ]
    sparse = [
        (
            [w1[0], -2, w1[2]],
            {"m": [1.5, 0, 0.75], "v": [1, 0, 0.25], "momentum_cache": mu_1},
        ),
        (  # the moments of row 0 decay, its weight stays
            [
                w1[0],
                -2 + 0.5 * (of_g2 * 4 + of_m2 * 3) / (sqrt(4 / 0.4375) + 0.25),
                w2[2],
            ],
            {
                "m": [0.375, -3, 2.4375],
                "v": [0.75, 4, 2.4375],
                "momentum_cache": mu_1 * mu_2,
            },
        ),
    ]
    return opt, dense, sparse


@worked
def ftrl():
    opt = reference.Ftrl(0.5, initial_accumulator_value=1.0)
    n1, n2 = [5, 17, 2], [14, 17, 11]
    z1 = [
        2 - (sqrt(5) - 1) / 0.5 * 1,
        -4 + (sqrt(17) - 1) / 0.5 * 2,
        1 - (sqrt(2) - 1) / 0.5 * 0.5,
    ]
    w1 = [-z1[0] / (2 * sqrt(5)), -z1[1] / (2 * sqrt(17)), -z1[2] / (2 * sqrt(2))]
    z2 = [
        z1[0] - 3 - (sqrt(14) - sqrt(5)) / 0.5 * w1[0],
        z1[1],
        z1[2] + 3 - (sqrt(11) - sqrt(2)) / 0.5 * w1[2],
    ]
    w2 = [-z2[0] / (2 * sqrt(14)), w1[1], -z2[2] / (2 * sqrt(11))]
    dense = [
        (w1, {"accumulator": n1, "linear": z1}),
        (w2, {"accumulator": n2, "linear": z2}),
    ]
    sparse = [  # row 1 keeps its initial weight until it is touched
        ([w1[0], -2, w1[2]], {"accumulator": [5, 1, 2], "linear": [z1[0], 0, z1[2]]}),
        (
            [w1[0], w1[1], w2[2]],
            {"accumulator": [5, 17, 11], "linear": [z1[0], z1[1], z2[2]]},
        ),
    ]
    return opt, dense, sparse


@worked
def ftrl_regularised():
    opt = reference.Ftrl(
        0.5,
        initial_accumulator_value=1.0,
        l1_regularization_strength=0.25,
        l2_regularization_strength=0.5,
        l2_shrinkage_regularization_strength=0.25,
        beta=0.5,
    )
    n1, n2 = [5, 17, 2], [14, 17, 11]
    # g + 2 * 0.25 * w = 2.5, -5, 1.25; denominators 2 root(n) + 2 * 0.5 + 0.5 / 0.5.
    z1 = [
        2.5 - (sqrt(5) - 1) / 0.5 * 1,  # 0.03, less than l1: the weight becomes 0
        -5 + (sqrt(17) - 1) / 0.5 * 2,  # 7.49
        1.25 - (sqrt(2) - 1) / 0.5 * 0.5,  # 0.84
    ]
    w1 = [0, (0.25 - z1[1]) / (2 * sqrt(17) + 2), (0.25 - z1[2]) / (2 * sqrt(2) + 2)]
    z2 = [
        z1[0] - 3,  # negative
        z1[1] + 0.5 * w1[1],  # positive
        z1[2] + 3 + 0.5 * w1[2] - (sqrt(11) - sqrt(2)) / 0.5 * w1[2],  # positive
    ]
    w2 = [
        (-0.25 - z2[0]) / (2 * sqrt(14) + 2),
        (0.25 - z2[1]) / (2 * sqrt(17) + 2),
        (0.25 - z2[2]) / (2 * sqrt(11) + 2),
    ]
    dense = [
        (w1, {"accumulator": n1, "linear": z1}),
        (w2, {"accumulator": n2, "linear": z2}),
    ]
    sparse = [
        ([0, -2, w1[2]], {"accumulator": [5, 1, 2], "linear": [z1[0], 0, z1[2]]}),
        (
            [0, w1[1], w2[2]],
            {"accumulator": [5, 17, 11], "linear": [z1[0], z1[1], z2[2]]},
        ),
    ]
    return opt, dense, sparse


@worked
def ftrl_power():
    """Power -1.5, so that the accumulator enters as n * sqrt(n)."""
    opt = reference.Ftrl(0.5, learning_rate_power=-1.5, initial_accumulator_value=1.0)
    n1, n2 = [5, 17, 2], [14, 17, 11]
    z1 = [
        2 - (5 * sqrt(5) - 1) / 0.5 * 1,
        -4 + (17 * sqrt(17) - 1) / 0.5 * 2,
        1 - (2 * sqrt(2) - 1) / 0.5 * 0.5,
    ]
    w1 = [
        -z1[0] / (2 * 5 * sqrt(5)),
        -z1[1] / (2 * 17 * sqrt(17)),
        -z1[2] / (2 * 2 * sqrt(2)),
    ]
    z2 = [
        z1[0] - 3 - (14 * sqrt(14) - 5 * sqrt(5)) / 0.5 * w1[0],
        z1[1],
        z1[2] + 3 - (11 * sqrt(11) - 2 * sqrt(2)) / 0.5 * w1[2],
    ]
    w2 = [-z2[0] / (2 * 14 * sqrt(14)), w1[1], -z2[2] / (2 * 11 * sqrt(11))]
    dense = [
        (w1, {"accumulator": n1, "linear": z1}),
        (w2, {"accumulator": n2, "linear": z2}),
    ]
    sparse = [
        ([w1[0], -2, w1[2]], {"accumulator": [5, 1, 2], "linear": [z1[0], 0, z1[2]]}),
        (
            [w1[0], w1[1], w2[2]],
            {"accumulator": [5, 17, 11], "linear": [z1[0], z1[1], z2[2]]},
        ),
    ]
    return opt, dense, sparse
