"""Wrappers: by hand, against other libraries, and where they do nothing."""

from __future__ import annotations

import numpy as np
import pytest

import reference
from reference import (
    SGD,
    SWA,
    ExponentialMovingAverage,
    GradientAccumulation,
    IndexedSlices,
    Lookahead,
    LossScaleOptimizer,
    MovingAverage,
    MultiOptimizer,
)
from tests.reference.families.sources import optax_in_float64

INNER = [
    pytest.param(cls(**options), id="-".join([name, *options]))
    for name, cls in reference.OPTIMIZERS.items()
    for options in cls.examples
    if "multipliers" not in options
]

START = [np.array([[1.0, -2.0], [0.5, 3.0], [-1.5, 0.25]], np.float32), np.ones(3)]
# Eighths: their sums, halves and quarters are exact in float32.
DENSE = [
    [np.array([[0.5, 1.0], [2.0, 0.125], [0.75, 0.25]]), np.array([1.0, -0.5, 2.0])],
    [np.array([[-1.0, 0.25], [0.5, 2.0], [0.0, -0.75]]), np.array([0.5, 0.25, -1.0])],
    [np.array([[0.75, -0.5], [1.25, 0.5], [-1.0, 1.5]]), np.array([-2.0, 0.125, 1.0])],
    [np.array([[0.25, 0.5], [-0.5, 1.0], [2.0, 0.625]]), np.array([1.0, 1.0, 0.5])],
]
SPARSE = [
    [IndexedSlices(g[[0, 1, 0]], np.array(rows)), v]
    for (g, v), rows in zip(
        DENSE, ([2, 0, 2], [1, 1, 0], [0, 2, 1], [2, 2, 2]), strict=True
    )
]
GRADIENTS = {"dense": DENSE, "sparse": SPARSE}


def path(optimizer, gradients, w=0.0, slot=None):
    """The weight, or its slot, after each step."""
    w, state, seen = np.array(w), None, []
    for g in gradients:
        w, state = optimizer.run(w, [np.array(g)], state)
        seen.append(float(w if slot is None else state.slots[0][slot]))
    return seen


def assert_same(left, right):
    """Weights and whatever slots both have are equal."""
    (weights, state), (others, other) = left, right
    for w, o in zip(weights, others, strict=True):
        assert w.dtype == o.dtype and np.array_equal(w, o)
    for slots, others in zip(state.slots, other.slots, strict=True):
        assert set(others) <= set(slots)
        for name, slot in others.items():
            assert np.array_equal(slots[name], slot), name
    assert state.iterations == other.iterations


class TestLookahead:
    def test_by_hand(self):
        # fast 1, 2, 3; slow 0 + (3 - 0) / 4 = 0.75; fast 1.75, 2.75, 3.75; slow
        # 0.75 + (3.75 - 0.75) / 4 = 1.5.
        lookahead = Lookahead(SGD(1.0), sync_period=3, slow_step_size=0.25)
        assert path(lookahead, [-1.0] * 6) == [1.0, 2.0, 0.75, 1.75, 2.75, 1.5]
        assert path(lookahead, [-1.0] * 6, slot="slow") == [0, 0, 0.75, 0.75, 0.75, 1.5]

    def test_a_row_that_was_touched_before_is_pulled_back_too(self):
        lookahead = Lookahead(SGD(1.0), sync_period=2)
        grads = [IndexedSlices(np.array([-1.0]), np.array([row])) for row in (0, 1)]
        w, _ = lookahead.run(np.zeros(3), grads)
        assert w.tolist() == [0.5, 0.5, 0.0]

    def test_a_weight_without_a_gradient_is_left_alone(self):
        lookahead = Lookahead(SGD(1.0), sync_period=2)
        w, state = lookahead.run([np.zeros(()), np.zeros(())], [[np.array(-1.0)] * 2])
        w, state = lookahead.step(w, [np.array(-1.0), None], state)
        assert [float(x) for x in w] == [1.0, 1.0]
        assert float(state.slots[1]["slow"]) == 0.0

    @pytest.mark.parametrize("kind", GRADIENTS)
    @pytest.mark.parametrize("inner", INNER)
    def test_of_period_and_step_size_one_is_the_inner_optimizer(self, inner, kind):
        # slow + (w - slow) is w where neither sum is rounded in float64; the weights
        # are float32: 24 bits, and at most 2**29 smaller than `slow` here.
        lookahead = Lookahead(inner, sync_period=1, slow_step_size=1.0)
        weights = [w.astype(np.float32) for w in START]
        for g in GRADIENTS[kind][:2]:
            bare = inner.run(weights, [g])
            for before, after in zip(weights, bare[0], strict=True):
                nonzero = after != 0
                assert np.all(np.abs(before / np.where(nonzero, after, 1)) < 2**28)
            assert_same(lookahead.run(weights, [g]), bare)

    def test_optax_agrees(self):
        gradients = [-1.0, -3.0, 2.0, 0.5, -1.0, -1.0]
        with optax_in_float64() as optax:
            fast = optax.lookahead(optax.sgd(0.5), 2, 0.25)
            params = optax.LookaheadParams.init_synced(np.array(0.0))
            state, theirs = fast.init(params), []
            for g in gradients:
                updates, state = fast.update(np.array(g), state, params)
                params = optax.apply_updates(params, updates)
                theirs.append(float(params.fast))
        ours = Lookahead(SGD(0.5), sync_period=2, slow_step_size=0.25)
        assert path(ours, gradients) == theirs


class TestMovingAverage:
    def test_by_hand(self):
        # weights 1, 2, 3; averages (0 + 1) / 2, (0.5 + 2) / 2, (1.25 + 3) / 2
        average = MovingAverage(SGD(1.0), average_decay=0.5)
        assert path(average, [-1.0] * 3) == [1.0, 2.0, 3.0]
        assert path(average, [-1.0] * 3, slot="average") == [0.5, 1.25, 2.125]

    def test_the_dynamic_decay_by_hand(self):
        # weights 10, 20; decays 1/10 and 2/11: 0.9 * 10, then 2/11 * 9 + 9/11 * 20
        average = MovingAverage(SGD(10.0), dynamic_decay=True)
        first, second = path(average, [-1.0] * 2, slot="average")
        eps = 2.0**-52
        # Three roundings, of values below 20.
        assert abs(first - 9) <= 3 * eps * 20 and abs(second - 18) <= 6 * eps * 20

    def test_before_start_step_the_average_is_the_weights(self):
        average = MovingAverage(SGD(1.0), average_decay=0.5, start_step=2)
        # weights 1, 2, 3: the third step is the first that averages: (2 + 3) / 2
        assert path(average, [-1.0] * 3, slot="average") == [1.0, 2.0, 2.5]

    def test_num_updates_limits_the_decay(self):
        # at most (1 + 8) / (10 + 8) = 1/2
        average = MovingAverage(SGD(1.0), average_decay=0.75, num_updates=8)
        assert path(average, [-1.0], slot="average") == [0.5]

    @pytest.mark.parametrize("kind", GRADIENTS)
    @pytest.mark.parametrize("inner", INNER)
    def test_of_decay_zero_is_the_weights(self, inner, kind):
        average = MovingAverage(inner, average_decay=0.0)
        weights, state = average.run(START, GRADIENTS[kind])
        for w, slots in zip(weights, state.slots, strict=True):
            assert np.array_equal(w, slots["average"])
        assert_same((weights, state), inner.run(START, GRADIENTS[kind]))


class TestSWA:
    def test_snapshots_by_hand(self):
        # snapshots of 0, 3, 6: 0, 3/2, (0 + 3 + 6) / 3; before the first none
        swa = SWA(SGD(1.0), start_averaging=0, average_period=3)
        assert path(swa, [-1.0] * 6, slot="average") == [0, 0, 1.5, 1.5, 1.5, 3.0]
        # snapshots of 2, 4, 6
        swa = SWA(SGD(1.0), start_averaging=2, average_period=2)
        assert path(swa, [-1.0] * 6, slot="average") == [1.0, 2.0, 2.0, 3.0, 3.0, 4.0]

    def test_torch_agrees(self):
        torch = pytest.importorskip(
            "torch", reason="torch, a second source, is missing"
        )
        parameter = torch.nn.Parameter(torch.zeros((), dtype=torch.float64))
        model = torch.nn.ParameterList([parameter])
        theirs = torch.optim.swa_utils.AveragedModel(model)
        for step in range(1, 9):
            with torch.no_grad():
                parameter -= -1.0
            if step in (2, 5, 8):
                theirs.update_parameters(model)
        ours = SWA(SGD(1.0), start_averaging=2, average_period=3)
        assert path(ours, [-1.0] * 8, slot="average")[-1] == theirs.module[0].item()

    @pytest.mark.parametrize("kind", GRADIENTS)
    @pytest.mark.parametrize("inner", INNER)
    def test_before_the_first_snapshot_the_average_is_the_weights(self, inner, kind):
        weights, state = SWA(inner, start_averaging=9).run(START, GRADIENTS[kind])
        for w, slots in zip(weights, state.slots, strict=True):
            assert np.array_equal(w, slots["average"])
        assert_same((weights, state), inner.run(START, GRADIENTS[kind]))


class TestExponentialMovingAverage:
    def test_by_hand(self):
        # weights 1, 2, 3; averages 1, (1 + 2) / 2, (1.5 + 3) / 2
        ema = ExponentialMovingAverage(SGD(1.0), ema_momentum=0.5)
        assert path(ema, [-1.0] * 3, slot="average") == [1.0, 1.5, 2.25]

    def test_the_weights_are_overwritten_with_their_average(self):
        # 1; 2, average 1.5, taken; 2.5, average 2; 3.5, average 2.75, taken
        ema = ExponentialMovingAverage(SGD(1.0), 0.5, ema_overwrite_frequency=2)
        assert path(ema, [-1.0] * 4) == [1.0, 1.5, 2.5, 2.75]

    def test_a_weight_whose_first_gradient_is_late_does_not_start_from_zero(self):
        ema = ExponentialMovingAverage(SGD(1.0), ema_momentum=0.5)
        w, state = ema.run([np.array(0.0), np.array(8.0)], [[np.array(1.0), None]])
        _, state = ema.step(w, [None, np.array(-2.0)], state)
        assert float(state.slots[1]["average"]) == 9.0  # (8 + 10) / 2

    @pytest.mark.parametrize("kind", GRADIENTS)
    @pytest.mark.parametrize("inner", INNER)
    def test_of_momentum_zero_is_the_weights(self, inner, kind):
        ema = ExponentialMovingAverage(inner, 0.0, ema_overwrite_frequency=1)
        weights, state = ema.run(START, GRADIENTS[kind])
        for w, slots in zip(weights, state.slots, strict=True):
            assert np.array_equal(w, slots["average"])
        assert_same((weights, state), inner.run(START, GRADIENTS[kind]))


class TestGradientAccumulation:
    def test_by_hand(self):
        # means (1 + 3) / 2 and (-2 + 4) / 2
        two = GradientAccumulation(SGD(1.0), gradient_accumulation_steps=2)
        assert path(two, [1.0, 3.0, -2.0, 4.0]) == [0.0, -2.0, -2.0, -3.0]
        sums = path(two, [1.0, 3.0, -2.0], slot="accumulated_gradient")
        assert sums == [1.0, 0.0, -2.0]

    @pytest.mark.parametrize("kind", GRADIENTS)
    @pytest.mark.parametrize("inner", INNER)
    def test_is_one_large_batch(self, inner, kind):
        accumulated = GradientAccumulation(inner, gradient_accumulation_steps=4)
        gradients = GRADIENTS[kind]
        together = [
            IndexedSlices(
                np.concatenate([g.values / 4 for g in each]),
                np.concatenate([g.indices for g in each]),
            )
            if isinstance(each[0], IndexedSlices)
            else sum(each) / 4
            for each in zip(*gradients, strict=True)
        ]
        assert_same(
            accumulated.run(START, [*gradients, *gradients]),
            inner.run(START, [together, together]),
        )

    @pytest.mark.parametrize("kind", GRADIENTS)
    @pytest.mark.parametrize("inner", INNER)
    def test_of_one_is_the_inner_optimizer(self, inner, kind):
        one = GradientAccumulation(inner, gradient_accumulation_steps=1)
        assert_same(one.run(START, GRADIENTS[kind]), inner.run(START, GRADIENTS[kind]))

    def test_optax_agrees(self):
        gradients = [1.0, -3.0, 2.0, 0.5, -1.0, -4.0]
        with optax_in_float64() as optax:
            multi = optax.MultiSteps(optax.sgd(0.5, momentum=0.5), 2)
            w, theirs = np.array(0.0), []
            state = multi.init(w)
            for g in gradients:
                updates, state = multi.update(np.array(g), state, w)
                w = optax.apply_updates(w, updates)
                theirs.append(float(w))
        ours = GradientAccumulation(SGD(0.5, momentum=0.5), 2)
        assert path(ours, gradients) == theirs

    def test_an_average_inside_does_not_move_in_between(self):
        """Keras 3 moves its average, and overwrites with it, at every call."""
        ema = ExponentialMovingAverage(SGD(1.0), ema_momentum=0.5)
        two = GradientAccumulation(ema, gradient_accumulation_steps=2)
        assert path(two, [-1.0] * 6, slot="average") == [0.0, 1.0, 1.0, 1.5, 1.5, 2.25]

    def test_a_gradient_that_stays_out_is_refused_before_anything_changes(self):
        two = GradientAccumulation(SGD(1.0), gradient_accumulation_steps=2)
        w, state = two.run([np.zeros(2), np.zeros(2)], [[np.ones(2), np.ones(2)]])
        with pytest.raises(ValueError, match="weight 1 has no gradient now"):
            two.step(w, [np.ones(2), None], state)
        assert state.slots[0]["accumulated_gradient"].tolist() == [1.0, 1.0]

    def test_a_weight_that_never_has_a_gradient_is_left_alone(self):
        two = GradientAccumulation(reference.Ftrl(1.0), gradient_accumulation_steps=2)
        grads = [[np.ones(2), None]] * 2
        w, _ = two.run([np.ones(2), np.ones(2)], grads)
        assert w[1].tolist() == [1.0, 1.0]


class TestLossScaleOptimizer:
    def test_the_scale_by_hand(self):
        half = LossScaleOptimizer(SGD(1.0), initial_scale=4.0, dynamic_growth_steps=2)
        w, state = np.array(0.0), None
        seen = []
        for g in [-1.0, -1.0, np.inf, -1.0, np.nan, np.nan, np.nan, np.nan]:
            w, state = half.run(w, [np.array(g)], state)
            seen.append((float(w), half.scale(state), state.iterations))
        assert seen == [
            (1, 4, 1),
            (2, 8, 2),
            (2, 4, 2),
            (3, 4, 3),
            (3, 2, 3),
            (3, 1, 3),
            (3, 1, 3),
            (3, 1, 3),
        ]

    def test_gradients_are_unscaled(self):
        half = LossScaleOptimizer(SGD(1.0), initial_scale=4.0)
        rows = IndexedSlices(np.array([8.0]), np.array([1]))
        state = half.init([np.zeros(2)] * 3)
        dense, sparse, none = half.unscaled([np.array([4.0, 2.0]), rows, None], state)
        assert dense.tolist() == [1.0, 0.5]
        assert sparse.values.tolist() == [2.0] and none is None

    @pytest.mark.parametrize("kind", GRADIENTS)
    @pytest.mark.parametrize("inner", INNER)
    def test_of_finite_gradients_is_the_inner_optimizer(self, inner, kind):
        left = LossScaleOptimizer(inner).run(START, GRADIENTS[kind])
        assert_same(left, inner.run(START, GRADIENTS[kind]))

    def test_what_is_inside_sees_no_skipped_step(self):
        half = LossScaleOptimizer(MovingAverage(SGD(1.0), average_decay=0.5))
        averages = path(half, [-1.0, np.inf, -1.0], slot="average")
        assert averages == [0.5, 0.5, 1.25]


class TestMultiOptimizer:
    def test_each_weight_has_its_optimizer(self):
        two = MultiOptimizer([(SGD(1.0), [0]), (SGD(1.0, momentum=0.5), ...)])
        w, state = two.run([np.array(0.0)] * 3, [[np.array(-1.0)] * 3] * 2)
        assert [float(x) for x in w] == [2.0, 2.5, 2.5]
        assert [list(slots) for slots in state.slots] == [
            [],
            ["momentum"],
            ["momentum"],
        ]

    def test_each_counts_its_own_steps(self):
        rate = reference.schedules.PiecewiseConstantDecay([0], [1.0, 2.0])
        two = MultiOptimizer([(SGD(rate), [0]), (reference.Nadam(), [1])])
        grads = [[None, np.array(1.0)], [np.array(-1.0), None], [np.array(-1.0), None]]
        w, state = two.run([np.array(0.0)] * 2, grads)
        assert float(w[0]) == 3.0  # rates 1 and 2: the step without it is none of its
        assert state.iterations == 3
        assert (state.shared["0/iterations"], state.shared["1/iterations"]) == (2, 1)

    @pytest.mark.parametrize("kind", GRADIENTS)
    @pytest.mark.parametrize("inner", INNER)
    def test_of_one_is_that_one(self, inner, kind):
        one = MultiOptimizer([(inner, ...)])
        assert_same(one.run(START, GRADIENTS[kind]), inner.run(START, GRADIENTS[kind]))

    def test_a_weight_without_an_optimizer_is_refused(self):
        with pytest.raises(ValueError, match=r"positions \[1\]"):
            MultiOptimizer([(SGD(), [0])]).init([np.zeros(1)] * 2)


INSIDE = {
    "Lookahead": lambda inner: Lookahead(inner, sync_period=2),
    "MovingAverage": lambda inner: MovingAverage(inner, average_decay=0.5),
    "SWA": lambda inner: SWA(inner, average_period=1),
    "ExponentialMovingAverage": lambda inner: ExponentialMovingAverage(inner, 0.5),
}


@pytest.mark.parametrize("name", INSIDE)
def test_a_wrapper_sees_weights_after_their_constraint(name):
    """Addons averages, and keeps slow weights, that the constraint has not seen."""
    w, state = INSIDE[name](SGD(1.0)).run(
        np.array(1.0), [np.array(-5.0)] * 2, constraints=lambda w: np.minimum(w, 1.0)
    )
    slot = "slow" if name == "Lookahead" else "average"
    assert float(w) == 1.0 and float(state.slots[0][slot]) == 1.0


@pytest.mark.parametrize("name", reference.WRAPPERS)
def test_state_can_be_left_and_taken_up_anywhere(name):
    for options in reference.WRAPPERS[name].examples:
        wrapper = reference.WRAPPERS[name](**options)
        whole = wrapper.run(START, DENSE)
        weights, state = START, wrapper.init(START)
        for g in DENSE:
            weights, state = wrapper.step(weights, g, state)
        assert_same((weights, state), whole)
        assert state.shared == whole[1].shared


@pytest.mark.parametrize("name", reference.WRAPPERS)
def test_no_argument_is_changed(name):
    for options in reference.WRAPPERS[name].examples:
        wrapper = reference.WRAPPERS[name](**options)
        weights = [w.copy() for w in START]
        state = wrapper.run(weights, SPARSE[:1])[1]
        kept = [{n: s.copy() for n, s in slots.items()} for slots in state.slots]
        shared = dict(state.shared)
        wrapper.run(weights, SPARSE[1:], state)
        assert all(map(np.array_equal, weights, START))
        assert state.shared == shared
        for before, slots in zip(kept, state.slots, strict=True):
            assert all(np.array_equal(before[n], slots[n]) for n in before)


@pytest.mark.parametrize("name", reference.WRAPPERS)
def test_a_foreign_state_is_refused(name):
    wrapper = reference.WRAPPERS[name](**reference.WRAPPERS[name].examples[0])
    with pytest.raises(ValueError, match="the state"):
        wrapper.step(START, DENSE[0], SGD().init(START))


def test_a_slot_that_the_inner_optimizer_has_too_is_refused():
    class Averaging(SGD):
        slots = ("average",)

    with pytest.raises(ValueError, match="both have a slot called average"):
        SWA(Averaging())


@pytest.mark.parametrize("name", reference.WRAPPERS)
def test_home_and_domain_are_stated(name):
    cls = reference.WRAPPERS[name]
    assert cls.home and cls.examples and "Args:" in cls.__doc__ and ">>>" in cls.__doc__


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: Lookahead(3), TypeError, "Lookahead needs an optimizer"),
        (lambda: Lookahead(SGD(), sync_period=0), ValueError, "sync_period"),
        (lambda: Lookahead(SGD(), sync_period=2.5), TypeError, "integer"),
        (lambda: Lookahead(SGD(), slow_step_size=1.5), ValueError, "slow_step_size"),
        (lambda: Lookahead(Lookahead(SGD())), ValueError, "at most once"),
        (lambda: Lookahead(SWA(SGD())), ValueError, "the order is"),
        (lambda: MovingAverage(SWA(SGD())), ValueError, "the order is"),
        (lambda: SWA(GradientAccumulation(SGD())), ValueError, "skipped"),
        (lambda: SWA(LossScaleOptimizer(SGD())), ValueError, "skipped"),
        (lambda: SWA(SGD(), average_period=0), ValueError, "average_period"),
        (lambda: SWA(SGD(), start_averaging=-1), ValueError, "start_averaging"),
        (lambda: MovingAverage(SGD(), average_decay=2.0), ValueError, "average_decay"),
        (lambda: GradientAccumulation(SGD(), 0), ValueError, "accumulation_steps"),
        (
            lambda: GradientAccumulation(LossScaleOptimizer(SGD())),
            ValueError,
            "the order is",
        ),
        (lambda: LossScaleOptimizer(SGD(), dynamic=False), ValueError, "initial_scale"),
        (lambda: MultiOptimizer([(3, [0])]), TypeError, "needs an optimizer"),
        (
            lambda: MultiOptimizer([(SGD(), [0]), (SGD(), [0])]),
            ValueError,
            "one optimizer",
        ),
        (
            lambda: MultiOptimizer([(GradientAccumulation(SGD()), ...)]),
            ValueError,
            "the order is",
        ),
        (
            lambda: Lookahead(MultiOptimizer([(SWA(SGD()), ...)])),
            ValueError,
            "the order is",
        ),
    ],
)
def test_what_cannot_mean_anything_is_refused(make, error, words):
    with pytest.raises(error, match=words):
        make()
