"""TensorFlow's raw training operations: the table of them, and its surprises."""

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import reference
from reference import IndexedSlices, State
from reference.cli import CONFORMS, DIFFERS, MISUSE, main
from reference.conformance.port import Setting, Snapshot
from reference.conformance.rounding import FLOAT32
from tf_impl.raw_ops import (
    INDICES,
    KERNELS,
    KernelSession,
    check_raw_ops,
    duplicates_of,
)

TRAINING = ("ResourceApply", "ResourceSparseApply")
BY_LABEL = {kernel.label: kernel for kernel in KERNELS}


def test_every_training_operation_is_in_the_table():
    here = {name for name in dir(tf.raw_ops) if name.startswith(TRAINING)}
    assert {kernel.op for kernel in KERNELS} == here
    for kernel in KERNELS:
        kernel.registered()
        for attribute in kernel.attributes:
            assert BY_LABEL[kernel.label.replace(f"({attribute}=True)", "")]


def verdicts(*labels, **options):
    kernels = [kernel for kernel in KERNELS if kernel.label in labels]
    assert {kernel.label for kernel in kernels} == set(labels)
    return check_raw_ops(kernels=kernels, **options).verdicts


def test_what_conforms_and_what_has_no_kernel():
    found = verdicts(
        "ResourceSparseApplyAdagradDA", dtypes=["float16", "float64"], modes=["eager"]
    )
    told = {(v.dtype, v.indices, v.verdict) for v in found}
    for indices in INDICES:
        assert ("float16", indices, "no kernel") in told
        assert ("float64", indices, "conforms") in told
    assert {verdict for *_, verdict in told} == {"no kernel", "conforms"}


def test_what_is_not_registered_is_refused():
    """The table believes TensorFlow's registry; here is one that it lacks."""
    variables = [tf.Variable([1.0], dtype=tf.bfloat16) for _ in range(3)]
    scalars = ("beta1_power", "lr", "beta1", "beta2", "epsilon")
    assert ("CPU", "bfloat16", "") not in BY_LABEL["ResourceApplyAdaMax"].registered()
    with pytest.raises(tf.errors.OpError, match="No OpKernel was registered"):
        tf.raw_ops.ResourceApplyAdaMax(
            **dict(zip(["var", "m", "v"], (v.handle for v in variables), strict=True)),
            **dict.fromkeys(scalars, tf.constant(0.5, tf.bfloat16)),
            grad=tf.constant([1.0], tf.bfloat16),
        )


def test_the_page_shows_every_operation():
    page = (Path(__file__).parents[2] / "docs" / "raw_ops.md").read_text("utf-8")
    assert all(f"\n{kernel.label} " in page for kernel in KERNELS)


# What each surprise is, by hand.


@pytest.mark.parametrize(
    "kernel",
    [kernel for kernel in KERNELS if kernel.sparse],
    ids=lambda kernel: f"{kernel.label}-{KERNELS.index(kernel)}",
)
def test_duplicate_rows_are_applied_one_by_one(kernel):
    """Whoever calls a sparse operation must sum them; Keras and compat.v1 do."""
    assert duplicates_of(kernel) == "one by one"


def test_duplicate_rows_are_squared_one_by_one():
    w, n = tf.Variable([0.0]), tf.Variable([1.0])
    lr, rows = tf.constant(1.0), tf.constant([2.0, 2.0])
    tf.raw_ops.ResourceSparseApplyAdagrad(
        var=w.handle, accum=n.handle, lr=lr, grad=rows, indices=[0, 0]
    )
    assert n.numpy().tolist() == [1 + 2**2 + 2**2]  # of the sum: 1 + 4**2


@pytest.mark.slow
@pytest.mark.skipif(os.cpu_count() == 1, reason="threads cannot meet on one core")
@pytest.mark.parametrize(
    "label", ["ResourceSparseApplyAdagrad", "ResourceSparseApplyAdagradV2"]
)
def test_duplicate_rows_race_in_the_sparse_adagrad(label):
    """It shares its rows out among threads, where two may update one row at a time."""
    rows = IndexedSlices(np.full((200_000, 64), 2.0**-10), np.arange(200_000) % 2)
    results = set()
    for _ in range(50):
        kernel = BY_LABEL[label]
        session = KernelSession(
            kernel, kernel.rule, [np.ones((2, 64))], Setting(FLOAT32), "int64"
        )
        session.apply_as_given([rows])
        results.add(session.read().weights[0].tobytes())
        if len(results) > 1:
            return
    pytest.fail("fifty runs gave the same")


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_only_the_dense_ftrl_hides_what_is_not_finite(bad):
    hiding = set()
    for kernel in KERNELS:
        g = np.full(2, bad)
        session = KernelSession(
            kernel, kernel.rule, [np.ones(2)], Setting(FLOAT32), "int64"
        )
        session.apply([IndexedSlices(g, np.arange(2)) if kernel.sparse else g])
        if np.all(np.isfinite(session.read().weights[0])):
            hiding.add(kernel.op)
    assert hiding == {"ResourceApplyFtrl", "ResourceApplyFtrlV2"}


def one_step(op, slots, **arguments):
    """The weight and slots after one step from a weight of 0."""
    w = tf.Variable([0.0])
    variables = {name: tf.Variable([float(start)]) for name, start in slots.items()}
    getattr(tf.raw_ops, op)(
        var=w.handle,
        **{name: variable.handle for name, variable in variables.items()},
        **{
            name: value if isinstance(value, bool) else tf.constant(value)
            for name, value in arguments.items()
        },
    )
    return w.numpy()[0], {name: v.numpy()[0] for name, v in variables.items()}


def test_rmsprop_has_epsilon_under_the_root_without_momentum_too():
    w, _ = one_step(
        "ResourceApplyRMSProp",
        {"ms": 0, "mom": 0},
        **{"lr": 1.0, "rho": 0.75, "momentum": 0.0, "epsilon": 3.0, "grad": [2.0]},
    )
    assert w == -2 / np.sqrt(1 + 3)  # outside: -2 / (1 + 3)
    outside = reference.RMSprop(1.0, rho=0.75, epsilon=3.0)
    assert outside.run(np.zeros(1), [np.array([2.0])])[0].tolist() == [-0.5]


def test_a_centered_variance_rounds_below_zero_to_nan():
    """Constant gradients have the variance 0; ours never falls below it."""
    kernel = BY_LABEL["ResourceApplyCenteredRMSProp"]
    kernel = replace(kernel, rule=replace(kernel.rule, rho=0.5))
    size = 1000
    session = KernelSession(
        kernel, kernel.rule, [np.zeros(size)], Setting(FLOAT32, "function"), ""
    )
    g = np.random.default_rng(0).normal(size=size) * 100
    for _ in range(50):
        session.apply([g])
    assert np.any(np.isnan(session.read().weights[0]))
    ours, _ = kernel.rule.run(np.zeros(size, np.float32), [np.float32(g)] * 50)
    assert np.all(np.isfinite(ours))


def test_averages_round_where_they_were_not_where_they_come_to():
    """ms + (g**2 - ms) / 16 * 15 for a gradient of 0: ms / 16 needs no rounding."""
    kernel = BY_LABEL["ResourceApplyRMSProp"]
    kernel = replace(kernel, rule=replace(kernel.rule, rho=2.0**-4))
    start = np.random.default_rng(0).uniform(1, 2, 100).astype(np.float32)
    zeros = [np.zeros(100, np.float32)]
    session = KernelSession(kernel, kernel.rule, zeros, Setting(FLOAT32), "")
    slots = {**kernel.rule.init(zeros).slots[0], "rms": start}
    state = State(0, (slots,))
    session.write(Snapshot(zeros, state))
    session.apply(zeros)
    _, ours = kernel.rule.step(zeros, zeros, state)
    assert np.array_equal(ours.slots[0]["rms"], start / 16)
    assert not np.array_equal(session.read().state.slots[0]["rms"], start / 16)


def test_nesterov_of_adam_is_no_nadam():
    """beta_1 = 1/2, beta_2 = 3/4: corrections 1/2 and 1/4; v = 1, m = 1.

    The rate is sqrt(1/4) / (1/2) = 1, and what it multiplies m / 2 + g / 2 = 1.5.
    Dozat: m / (2 * (1 - 1/4)) + g = 2/3 + 2, over sqrt(1 / (1/4)) = 2.
    """
    w, slots = one_step(
        "ResourceApplyAdam",
        {"m": 0, "v": 0},
        **{"lr": 1.0, "beta1": 0.5, "beta2": 0.75, "epsilon": 0.0, "grad": [2.0]},
        **{"beta1_power": 0.5, "beta2_power": 0.75, "use_nesterov": True},
    )
    assert slots == {"m": 1, "v": 1}
    assert w == -1.5
    nadam = reference.Nadam(1.0, 0.5, 0.75, 0.0, schedule_decay=1e9)
    taken, _ = nadam.run(np.zeros(1), [np.array([2.0])])
    assert abs(taken[0] + (2 / 3 + 2) / 2) <= 8 * np.finfo(float).eps


def test_adagrad_may_hold_its_squares():
    w, slots = one_step(
        "ResourceApplyAdagradV2",
        {"accum": 4},
        **{"lr": 1.0, "epsilon": 0.0, "grad": [3.0], "update_slots": False},
    )
    assert (w, slots) == (-1.5, {"accum": 4})


def test_ftrl_may_have_the_learning_rate_inside_linear():
    """From n = 9 and g = 4: n = 25, z = 4, or 0.5 * 4; the weight is -0.5 * 4 / 5."""
    given = {"grad": [4.0], "lr": 0.5, "l1": 0.0, "l2": 0.0, "lr_power": -0.5}
    for scaled, linear in ((False, 4), (True, 2)):
        w, slots = one_step(
            "ResourceApplyFtrl",
            {"accum": 9, "linear": 0},
            **given,
            multiply_linear_by_lr=scaled,
        )
        assert slots == {"accum": 25, "linear": linear}
        assert w == np.float32(-0.4)


def test_half_precision_forms_coefficients_in_half_precision():
    """0.999 is 1 in bfloat16, so that ApplyAdam does not move."""
    bfloat16 = tf.bfloat16
    w, m, v = (tf.Variable([0.0], dtype=bfloat16) for _ in range(3))
    powers = {"beta1_power": 0.9, "beta2_power": 0.999, "beta1": 0.9, "beta2": 0.999}
    tf.raw_ops.ResourceApplyAdam(
        var=w.handle,
        m=m.handle,
        v=v.handle,
        **{name: tf.constant(x, bfloat16) for name, x in powers.items()},
        lr=tf.constant(1.0, bfloat16),
        epsilon=tf.constant(1e-7, bfloat16),
        grad=tf.constant([1.0], bfloat16),
    )
    assert float(w[0]) == 0
    (found,) = verdicts("ResourceApplyAdam", dtypes=["bfloat16"], modes=["eager"])
    assert found.verdict == "conforms"
    assert found.convention == "coefficients formed in bfloat16, arithmetic in bfloat16"


# The command line


def test_the_command_line_takes_what_means_something(capsys):
    assert main(["check", "raw_ops", "--strict"]) == MISUSE
    assert "check raw_ops takes no --strict" in capsys.readouterr().err
    assert main(["check", "raw_ops", "--mode", "xla"]) == MISUSE
    assert "mode must be one of eager, function" in capsys.readouterr().err


def test_the_command_line_writes_table_and_json(capsys, monkeypatch, tmp_path):
    few = ("ResourceApplyRMSProp", "ResourceSparseApplyMomentum")
    kernels = [kernel for kernel in KERNELS if kernel.label in few]
    monkeypatch.setattr("tf_impl.raw_ops.KERNELS", kernels)
    file = tmp_path / "raw_ops.json"
    assert main(["check", "raw_ops", "--quick", "--json", str(file)]) == CONFORMS
    shown = capsys.readouterr().out
    assert "one by one" in shown
    assert "epsilon is under the root" in shown
    written = json.loads(file.read_text())
    assert written["explained"]
    assert written["duplicates"] == {"ResourceSparseApplyMomentum": "one by one"}
    assert {v["verdict"] for v in written["verdicts"]} == {"conforms", "differs"}


def test_a_difference_that_is_not_explained_ends_with_status_1(monkeypatch, capsys):
    wrong = replace(BY_LABEL["ResourceApplyMomentum"], rule=reference.SGD(momentum=0.9))
    monkeypatch.setattr("tf_impl.raw_ops.KERNELS", [wrong])
    assert main(["check", "raw_ops", "--quick"]) == DIFFERS
    assert "differs, unexplained" in capsys.readouterr().out


# All of it


@pytest.mark.slow
def test_every_operation_follows_a_known_rule():
    report = check_raw_ops(modes=["eager"])  # the kernels are the same in a function
    assert report.explained, str(report)
    assert set(report.duplicates.values()) == {"one by one"}
    differing = {v.kernel for v in report.verdicts if v.verdict == "differs"}
    assert differing == {kernel.label for kernel in KERNELS if kernel.follows}
