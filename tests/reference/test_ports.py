"""The rules against second sources: torch.optim and optax, in float64.

Only where the two rules are the same in exact arithmetic; the mapping stands beside
each case. Both sides run freely from the same weights over gradients of six decades,
with sign changes and zeros. How far they may be apart is worked out by the rule itself,
on numbers that carry their rounding bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

import reference
from reference import IndexedSlices, State
from reference.conformance.convention import BoundedArithmetic, Convention
from reference.conformance.judge import compare
from reference.conformance.rounding import FLOAT32, FLOAT64, IEEE, SLACK, Format

STEPS = 12
SIZE = 40


def some_gradients(zeros=True, seed=0):
    rng = np.random.default_rng(seed)
    g = rng.standard_normal((STEPS, SIZE)) * 10.0 ** rng.uniform(-4, 2, (STEPS, SIZE))
    if zeros:
        g[:, 0] = 0  # never a gradient
        g[rng.uniform(size=g.shape) < 0.1] = 0
    return g


def some_weights(seed=1):
    w = np.random.default_rng(seed).standard_normal(SIZE)
    w[:10] = 0  # so that their own rounding hides nothing
    return w


def some_rows(seed=2):
    """Sparse gradients of a table of 8 rows of 3: duplicates, absent rows, none."""
    rng = np.random.default_rng(seed)
    for step in range(STEPS):
        count = 0 if step == 5 else 9
        indices = rng.integers(0, 8, count)
        yield IndexedSlices(rng.standard_normal((count, 3)), indices)


def bounded_steps(optimizers, w, gradients, coefficients=FLOAT64):
    """Weights and slots after each step, with the bound that each has by then.

    All is float64 but the coefficients of a step, such as 1 - beta**t.
    """
    convention = Convention("", coefficients, FLOAT64)
    arithmetic = BoundedArithmetic(convention, FLOAT64, IEEE)
    start = optimizers[0].init(w)
    slots = {name: arithmetic.lift(slot) for name, slot in start.slots[0].items()}
    weights, state = [arithmetic.lift(w)], State(0, (slots,), start.shared)
    for optimizer, g in zip(optimizers, gradients, strict=True):
        weights, state = optimizer.advance(weights, [g], state, arithmetic)
        yield {"w": weights[0], **state.slots[0]}


def assert_same(case, w, gradients, other):
    optimizers = case.optimizers()
    due = bounded_steps(optimizers, w, gradients, case.coefficients)
    ours, state = w, optimizers[0].init(w)
    for step, (bounded, came) in enumerate(zip(due, other, strict=True)):
        # What is compared is what people use: the step in float64 is within its own
        # bound, and so is the other library.
        ours, state = optimizers[step].step(ours, gradients[step], state)
        for name, values in {"w": ours, **state.slots[0]}.items():
            assert np.max(compare(bounded[name], values)[0]) <= SLACK, (step, name)
        for name, values in came.items():
            ratio, undecidable = compare(bounded[name], np.asarray(values))
            assert np.max(ratio) <= SLACK, (step, name)
            assert not np.any(undecidable), (step, name)


@dataclass(frozen=True)
class Case:
    """A rule of ours and the class that does the same.

    Attributes:
        ours: the optimizer.
        theirs: name of the class or function in the other library.
        arguments: its arguments.
        state: names of its state behind our slots; a pair gives a factor too.
        corrected: it adds epsilon to the corrected root, so that ours has to be its
            epsilon times sqrt(1 - beta_2**t) at step t.
        zeros: gradients include zeros; not where epsilon is 0 and 0 / 0 would come.
        coefficients: the format in which it forms them. With FLOAT32 the
            hyperparameters are numbers that float32 holds exactly.
        start_at_zero: the two agree for weights that start at zero.
    """

    ours: reference.Optimizer
    theirs: str
    arguments: dict
    state: dict
    corrected: bool = False
    zeros: bool = True
    coefficients: Format = FLOAT64
    start_at_zero: bool = False

    def optimizers(self):
        if not self.corrected:
            return [self.ours] * STEPS
        roots = [math.sqrt(1 - self.ours.beta_2**t) for t in range(1, STEPS + 1)]
        return [replace(self.ours, epsilon=self.ours.epsilon * root) for root in roots]

    def weights(self):
        return np.zeros(SIZE) if self.start_at_zero else some_weights()


MOMENTS = {"m": "exp_avg", "v": "exp_avg_sq"}

# --------------------------------------------------------------------------------------
# torch

TORCH = {
    "SGD": Case(reference.SGD(0.1), "SGD", {"lr": 0.1}, {}),
    # torch has the learning rate outside the velocity: b = momentum * b + g.
    "SGD momentum": Case(
        reference.SGD(0.1, momentum=0.9),
        "SGD",
        {"lr": 0.1, "momentum": 0.9},
        {"momentum": ("momentum_buffer", -0.1)},
    ),
    "SGD nesterov": Case(
        reference.SGD(0.1, momentum=0.9, nesterov=True),
        "SGD",
        {"lr": 0.1, "momentum": 0.9, "nesterov": True},
        {"momentum": ("momentum_buffer", -0.1)},
    ),
    "Adagrad": Case(
        reference.Adagrad(0.1, 0.3, 1e-4),
        "Adagrad",
        {"lr": 0.1, "initial_accumulator_value": 0.3, "eps": 1e-4},
        {"accumulator": "sum"},
    ),
    "Adadelta": Case(
        reference.Adadelta(0.7, 0.9, 1e-4),
        "Adadelta",
        {"lr": 0.7, "rho": 0.9, "eps": 1e-4},
        {"accum_grad": "square_avg", "accum_var": "acc_delta"},
    ),
    "RMSprop": Case(
        reference.RMSprop(0.1, 0.9, epsilon=1e-4),
        "RMSprop",
        {"lr": 0.1, "alpha": 0.9, "eps": 1e-4},
        {"rms": "square_avg"},
    ),
    "RMSprop centered": Case(
        reference.RMSprop(0.1, 0.9, epsilon=1e-4, centered=True),
        "RMSprop",
        {"lr": 0.1, "alpha": 0.9, "eps": 1e-4, "centered": True},
        {"rms": "square_avg", "mg": "grad_avg"},
    ),
    "Adam": Case(
        reference.Adam(0.1, 0.9, 0.99, 1e-4),
        "Adam",
        {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-4},
        MOMENTS,
        corrected=True,
    ),
    "Adam amsgrad": Case(
        reference.Adam(0.1, 0.9, 0.99, 1e-4, amsgrad=True),
        "Adam",
        {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-4, "amsgrad": True},
        {**MOMENTS, "vhat": "max_exp_avg_sq"},
        corrected=True,
    ),
    # torch has epsilon inside the maximum: the same where it is 0.
    "Adamax": Case(
        reference.Adamax(0.1, 0.9, 0.99, 0.0),
        "Adamax",
        {"lr": 0.1, "betas": (0.9, 0.99), "eps": 0.0},
        {"m": "exp_avg", "v": "exp_inf"},
        zeros=False,
    ),
    # torch keeps the product of the momenta in float32.
    "Nadam": Case(
        reference.Nadam(0.125, 0.875, 0.96875, 2**-12, schedule_decay=2**-8),
        "NAdam",
        {
            "lr": 0.125,
            "betas": (0.875, 0.96875),
            "eps": 2**-12,
            "momentum_decay": 2**-8,
        },
        MOMENTS,
        coefficients=FLOAT32,
    ),
    # Without regularisation and from weight 0, FTRL-Proximal is gradient descent with
    # the same rates (McMahan et al. 2013, section 3): with a root, Adagrad ...
    "Ftrl": Case(
        reference.Ftrl(0.1, initial_accumulator_value=0.3),
        "Adagrad",
        {"lr": 0.1, "initial_accumulator_value": 0.3, "eps": 0.0},
        {"accumulator": "sum"},
        start_at_zero=True,
    ),
    # ... and with the power 0, plain descent.
    "Ftrl power 0": Case(
        reference.Ftrl(0.1, learning_rate_power=0.0),
        "SGD",
        {"lr": 0.1},
        {},
        start_at_zero=True,
    ),
}


def torch_steps(case, w, gradients):
    torch = pytest.importorskip("torch", reason="torch, a second source, is missing")
    parameter = torch.nn.Parameter(torch.tensor(w))
    optimizer = getattr(torch.optim, case.theirs)([parameter], **case.arguments)
    for g in gradients:
        if isinstance(g, IndexedSlices):
            parameter.grad = torch.sparse_coo_tensor(
                g.indices[None, :], g.values, parameter.shape, check_invariants=True
            )
        else:
            parameter.grad = torch.tensor(g)
        optimizer.step()
        state = optimizer.state[parameter]
        came = {"w": parameter.detach().numpy().copy()}
        for slot, name in case.state.items():
            name, factor = (name, 1) if isinstance(name, str) else name
            came[slot] = factor * state[name].numpy()
        yield came


@pytest.mark.parametrize("name", TORCH)
def test_torch_takes_the_same_steps(name):
    case = TORCH[name]
    w, gradients = case.weights(), list(some_gradients(case.zeros))
    assert_same(case, w, gradients, torch_steps(case, w, gradients))


TORCH_SPARSE = {
    "SGD": TORCH["SGD"],
    "Adagrad": TORCH["Adagrad"],
    # Epsilon on the raw root, as in ours; rows that are not touched stay.
    "Adam touched rows": Case(
        reference.Adam(0.1, 0.9, 0.99, 1e-4, sparse="touched_rows"),
        "SparseAdam",
        {"lr": 0.1, "betas": (0.9, 0.99), "eps": 1e-4},
        MOMENTS,
    ),
}


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")  # inside torch
@pytest.mark.parametrize("name", TORCH_SPARSE)
def test_torch_takes_the_same_sparse_steps(name):
    case = TORCH_SPARSE[name]
    w, gradients = some_weights()[-24:].reshape(8, 3), list(some_rows())
    assert_same(case, w, gradients, torch_steps(case, w, gradients))


def test_torch_scales_and_limits_gradients_as_we_do():
    """clip_grad_value_ alone: clip_grad_norm_ adds 1e-6 to the norm."""
    torch = pytest.importorskip("torch", reason="torch, a second source, is missing")
    g = some_gradients()[0]
    parameter = torch.nn.Parameter(torch.zeros(SIZE, dtype=torch.float64))
    parameter.grad = torch.tensor(g)
    torch.nn.utils.clip_grad_value_([parameter], 0.5)
    w, _ = reference.SGD(1.0, clipvalue=0.5).run(np.zeros(SIZE), [g])
    assert np.array_equal(-w, parameter.grad.numpy())
    assert np.count_nonzero(np.abs(g) > 0.5) > 0


# --------------------------------------------------------------------------------------
# optax. It forms 1 - beta**t in float32 even where all else is float64.

OPTAX = {
    "SGD": Case(reference.SGD(0.125), "sgd", {"learning_rate": 0.125}, {}),
    "SGD momentum": Case(
        reference.SGD(0.125, momentum=0.875),
        "sgd",
        {"learning_rate": 0.125, "momentum": 0.875},
        {},
    ),
    "SGD nesterov": Case(
        reference.SGD(0.125, momentum=0.875, nesterov=True),
        "sgd",
        {"learning_rate": 0.125, "momentum": 0.875, "nesterov": True},
        {},
    ),
    # optax has epsilon under the root: the same where it is 0.
    "Adagrad": Case(
        reference.Adagrad(0.125, 0.25, 0.0),
        "adagrad",
        {"learning_rate": 0.125, "initial_accumulator_value": 0.25, "eps": 0.0},
        {},
    ),
    "Adadelta": Case(
        reference.Adadelta(0.75, 0.875, 2**-12),
        "adadelta",
        {"learning_rate": 0.75, "rho": 0.875, "eps": 2**-12},
        {},
    ),
    "RMSprop": Case(
        reference.RMSprop(0.125, 0.875, epsilon=2**-12),
        "rmsprop",
        {
            "learning_rate": 0.125,
            "decay": 0.875,
            "eps": 2**-12,
            "eps_in_sqrt": False,
        },
        {},
    ),
    # Epsilon under the root, which is where ours puts it once there is momentum.
    "RMSprop momentum": Case(
        reference.RMSprop(0.125, 0.875, momentum=0.75, epsilon=2**-12),
        "rmsprop",
        {"learning_rate": 0.125, "decay": 0.875, "eps": 2**-12, "momentum": 0.75},
        {},
    ),
    "RMSprop momentum centered": Case(
        reference.RMSprop(0.125, 0.875, 0.75, epsilon=2**-12, centered=True),
        "rmsprop",
        {
            "learning_rate": 0.125,
            "decay": 0.875,
            "eps": 2**-12,
            "momentum": 0.75,
            "centered": True,
        },
        {},
    ),
    "Adam": Case(
        reference.Adam(0.125, 0.875, 0.96875, 2**-12),
        "adam",
        {"learning_rate": 0.125, "b1": 0.875, "b2": 0.96875, "eps": 2**-12},
        {},
        corrected=True,
        coefficients=FLOAT32,
    ),
    "Adamax": Case(
        reference.Adamax(0.125, 0.875, 0.96875, 0.0),
        "adamax",
        {"learning_rate": 0.125, "b1": 0.875, "b2": 0.96875, "eps": 0.0},
        {},
        zeros=False,
        coefficients=FLOAT32,
    ),
    # optax has no warming of the momentum: the limit of a large schedule_decay, where
    # 0.96**schedule_decay is 0.
    "Nadam": Case(
        reference.Nadam(0.125, 0.875, 0.96875, 2**-12, schedule_decay=2.0**40),
        "nadam",
        {"learning_rate": 0.125, "b1": 0.875, "b2": 0.96875, "eps": 2**-12},
        {},
        coefficients=FLOAT32,
    ),
}


@pytest.fixture
def optax():
    """optax with jax in float64 for the duration of a test."""
    optax = pytest.importorskip("optax", reason="optax, a second source, is missing")
    import jax

    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield optax
    jax.config.update("jax_enable_x64", before)


@pytest.mark.parametrize("name", OPTAX)
def test_optax_takes_the_same_steps(name, optax):
    case = OPTAX[name]
    transform = getattr(optax, case.theirs)(**case.arguments)
    w, gradients = case.weights(), list(some_gradients(case.zeros))

    def steps():
        weights, state = w, transform.init(w)
        for g in gradients:
            updates, state = transform.update(g, state, weights)
            weights = optax.apply_updates(weights, updates)
            assert weights.dtype == np.float64
            yield {"w": weights}

    assert_same(case, w, gradients, steps())


def test_optax_clips_as_we_do(optax):
    """Joint norm and value."""
    gradients = list(some_gradients()[:2])
    zeros = [np.zeros(SIZE)] * 2
    joint, _ = reference.SGD(1.0, global_clipnorm=2.0).run(zeros, [gradients])
    theirs, _ = optax.clip_by_global_norm(2.0).update(gradients, optax.EmptyState())
    value, _ = reference.SGD(1.0, clipvalue=0.5).run(zeros, [gradients])
    limited, _ = optax.clip(0.5).update(gradients, optax.EmptyState())
    # On each side: a square and a sum for each element, then four operations.
    operations = 2 * (2 * 2 * SIZE + 4)
    eps = np.finfo(np.float64).eps
    for one, other in zip(joint, theirs, strict=True):
        assert np.all(np.abs(one + other) <= operations * eps / 2 * np.abs(other))
    for one, other in zip(value, limited, strict=True):
        assert np.array_equal(-one, other)


# --------------------------------------------------------------------------------------
# Ftrl with its regularisers has no equal in torch or optax. The second source is what
# the paper says the rule is for: each new weight minimises the sum of all gradients, of
# the distances to all earlier weights, and of the penalties.


def test_ftrl_minimises_the_objective_of_the_paper():
    rate, l1, l2, shrinkage, beta, start = 0.5, 0.25, 0.125, 0.0625, 0.5, 0.25
    ftrl = reference.Ftrl(
        rate,
        initial_accumulator_value=start,
        l1_regularization_strength=l1,
        l2_regularization_strength=l2,
        l2_shrinkage_regularization_strength=shrinkage,
        beta=beta,
    )
    gradients, w = list(some_gradients() / 10), np.zeros(SIZE)
    due = bounded_steps([ftrl] * STEPS, w, gradients)
    state = ftrl.init(w)
    exact = np.longdouble
    n = np.full(SIZE, start, exact)
    slope, sigma_w = np.zeros(SIZE, exact), np.zeros(SIZE, exact)
    zero_weights = 0
    for g, bounded in zip(gradients, due, strict=True):
        slope = slope + g + 2 * exact(shrinkage) * w
        sigma = (np.sqrt(n + exact(1) * g * g) - np.sqrt(n)) / rate
        n = n + exact(1) * g * g
        sigma_w = sigma_w + sigma * w
        w, state = ftrl.step(w, g, state)
        curvature = np.sqrt(n) / rate + beta / rate + 2 * l2
        # The derivative of all that is smooth in the objective, at the new weight.
        derivative = slope - sigma_w + curvature * w
        # It would be exact but for the errors of the weights: of the new one, and of
        # the earlier ones, which the bound of `linear` holds too. One ulp of each term
        # is for the longdouble sums on this side, where longdouble is no wider.
        terms = np.abs(slope) + np.abs(sigma_w) + np.abs(curvature * w)
        eps = np.finfo(exact).eps
        slack = curvature * bounded["w"].bound + bounded["linear"].bound + eps * terms
        slack = SLACK * slack
        off = np.where(w == 0, np.abs(derivative) - l1, derivative + l1 * np.sign(w))
        assert np.all(np.where(w == 0, off, np.abs(off)) <= slack)
        zero_weights += np.count_nonzero(w == 0)
    assert 0 < zero_weights < STEPS * SIZE


# --------------------------------------------------------------------------------------


def test_every_built_in_rule_has_a_second_source():
    sources = [*TORCH.values(), *TORCH_SPARSE.values(), *OPTAX.values()]
    compared = {case.ours.rule for case in sources}
    built_in = (
        reference.SGD,
        reference.Adagrad,
        reference.Adadelta,
        reference.RMSprop,
        reference.Adam,
        reference.Adamax,
        reference.Nadam,
        reference.Ftrl,
    )
    in_families_test_conventions = {
        reference.Adagrad.adagrad_epsilon_inside,
        reference.Adamax.adamax_epsilon_inside,
        *[r for n, r in reference.RMSprop.rules().items() if "side" in n],
    }
    rules = {rule for cls in built_in for rule in cls.rules().values()}
    assert compared == rules - in_families_test_conventions
