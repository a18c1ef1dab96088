"""The ports drive torch, optax, Keras and plain functions as their users would."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reference
from reference import IndexedSlices
from reference.conformance import assert_conforms, check, scenarios
from reference.conformance.ports import load, port_for
from reference.dialects import LIBRARIES, Dialect

FLOAT32 = {"dtypes": ["float32"]}


def adagrad(weights, grads, state, *, learning_rate=0.01, epsilon=1e-7):
    """Right, dense and sparse."""
    if state is None:
        state = {"accumulator": [np.full_like(w, 0.1) for w in weights]}
    new, sums = [], []
    for w, g, n in zip(weights, grads, state["accumulator"], strict=True):
        if isinstance(g, IndexedSlices):
            dense = np.zeros(w.shape)
            np.add.at(dense, g.indices, g.values.astype(np.float64))
            g = dense
        if g is not None:
            n64 = n.astype(np.float64) + np.square(g, dtype=np.float64)
            w = (w - learning_rate * g / (np.sqrt(n64) + epsilon)).astype(w.dtype)
            n = n64.astype(n.dtype)
        new.append(w)
        sums.append(n)
    return new, {"accumulator": sums}


def adagrad_without_sum(weights, grads, state, *, learning_rate=0.01):
    """A state that does not keep what it sums."""
    new, _ = adagrad(weights, grads, None, learning_rate=learning_rate)
    return new, state


@pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")
def test_a_function_on_numpy_arrays_conforms():
    report = check(adagrad, "Adagrad", dtypes=["float32", "float64"])
    assert report.conforms, str(report)
    assert {r.gradient for r in report.results} == {"dense", "sparse"}
    assert {"weight", "accumulator"} <= set(report.results[0].ratios)
    assert "a function starts at its first step" in str(report)


@pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")
def test_a_function_that_forgets_is_seen_through_its_weights():
    report = check(adagrad_without_sum, "Adagrad", quick=True)
    failure = next(r.failure for r in report.results if r.gradient == "dense")
    assert (failure.comparison, failure.slot, failure.step) == ("locked", "weight", 2)
    assert "checked through the weights: accumulator" in str(report)


def test_a_function_in_a_file_is_a_target(tmp_path: Path):
    path = tmp_path / "mine.py"
    path.write_text(
        "def step(weights, grads, state, *, learning_rate):\n"
        "    pairs = zip(weights, grads, strict=True)\n"
        "    new = [w if g is None else w - learning_rate * g for w, g in pairs]\n"
        "    return new, state\n"
    )
    report = check(f"{path}:step", "SGD", scenario="gradients over ten decades")
    assert report.conforms, str(report)


@pytest.mark.parametrize("thing", [3, "text", dict, object()])
def test_what_no_port_drives_is_refused_with_what_may_be(thing):
    with pytest.raises(ValueError, match=r"torch\.optim\.Optimizer"):
        port_for(thing)


def test_a_library_that_is_missing_is_said(monkeypatch):
    monkeypatch.setitem(LIBRARIES, "absent", ("no_such_library.optimizers",))
    with pytest.raises(ValueError, match="no_such_library is not installed"):
        load("absent:Adam")
    with pytest.raises(ValueError, match="no Adamm"):
        load("reference:Adamm")


def test_a_port_is_loaded_with_its_framework_alone():
    program = (
        "import sys, reference.conformance; "
        "print(*{m.split('.')[0] for m in sys.modules})"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    heavy = {"torch", "jax", "optax", "keras", "tf_keras", "tensorflow"}
    assert heavy.isdisjoint(run.stdout.split())


# --------------------------------------------------------------------------------------
# Scenarios as tests

SCENARIOS = scenarios(reference.Adagrad)


def test_the_scenarios_cover_a_whole_check():
    assert len(set(SCENARIOS)) == len(SCENARIOS)
    assert {"zero gradient", "rows with duplicates", "resume", "late"} <= {*SCENARIOS}


@pytest.mark.filterwarnings("ignore:(overflow|invalid value):RuntimeWarning")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_scenario_is_a_test_of_its_own(scenario):
    assert_conforms(adagrad, "Adagrad", scenario=scenario, **FLOAT32)


def test_a_scenario_sees_its_fault_and_another_does_not():
    def steps_ahead(weights, grads, state, *, learning_rate=0.01):
        """Forgets a gradient of zero rows, and all else is right."""
        new, state = adagrad(weights, grads, state, learning_rate=learning_rate)
        moved = [w + 1 if g is None else w for w, g in zip(new, grads, strict=True)]
        return moved, state

    assert_conforms(steps_ahead, "Adagrad", scenario="zero gradient", **FLOAT32)
    with pytest.raises(AssertionError, match="no gradient at two steps"):
        assert_conforms(
            steps_ahead, "Adagrad", scenario="no gradient at two steps", **FLOAT32
        )


def test_a_scenario_has_to_exist():
    with pytest.raises(ValueError, match="scenario must be one of"):
        check(adagrad, "Adagrad", scenario="no such")


# --------------------------------------------------------------------------------------
# torch


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="torch is not installed")


def test_torch_runs_in_every_path_dense_and_sparse(torch):
    report = check("torch:Adagrad", "Adagrad", **FLOAT32)
    assert report.conforms, str(report)
    found = {(r.gradient, r.mode) for r in report.results}
    dense = {("dense", mode) for mode in ("loop", "foreach", "fused")}
    assert found == dense | {("sparse", "loop"), ("sparse", "foreach")}
    assert "`fused` does not support sparse grad" in str(report)
    assert report.versions["torch"] == torch.__version__


def test_a_class_of_torch_can_be_given_itself(torch):
    assert_conforms(torch.optim.Adadelta, reference.Adadelta, quick=True)


def test_torch_counts_steps_for_each_weight(torch):
    """Weights without a gradient for a while are judged at their own step."""
    for scenario in ("no gradient at two steps", "first gradient late"):
        assert_conforms("torch:NAdam", "Nadam", scenario=scenario, **FLOAT32)


def test_torchs_fused_momentum_breaks_on_a_gradient_that_comes_late(torch):
    report = check(
        "torch:SGD",
        hyperparameters={"momentum": 0.9},
        scenario="first gradient late",
        **FLOAT32,
    )
    wrong = {r.mode: r.failure.message for r in report.failures}
    assert wrong.keys() == {"fused"}
    assert wrong["fused"].startswith("TypeError: expected Tensor as element 1")


class Touching:
    """Mixed into a torch class: it changes weights that have no gradient."""

    def step(self, closure=None):
        super().step(closure)
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    p.data.add_(1.0)


def test_a_weight_that_moves_without_a_gradient_is_seen(torch):
    class Moving(Touching, torch.optim.NAdam):
        pass

    report = check(Moving, "Nadam", scenario="no gradient at two steps", **FLOAT32)
    assert not report.conforms
    assert "a weight without a gradient changed" in str(report)


def test_faults_in_a_torch_class_are_seen_where_they_are(torch):
    class Frozen(torch.optim.Adagrad):
        def step(self, closure=None):
            for group in self.param_groups:
                group["lr"] = group.setdefault("first", group["lr"])
            super().step(closure)

    class Forgetful(torch.optim.Adagrad):
        def load_state_dict(self, state_dict):
            pass

    for cls, program in [(Frozen, "learning rate set"), (Forgetful, "resume")]:
        report = check(cls, "Adagrad", modes=["loop"], **FLOAT32)
        failures = {r.failure.program for r in report.failures}
        assert failures == {program}, str(report)


def test_what_torch_refuses_is_a_skip_of_its_scenario(torch):
    import unittest

    with pytest.raises(unittest.SkipTest, match="does not support sparse gradients"):
        assert_conforms(
            "torch:Adadelta", "Adadelta", scenario="all rows the same", **FLOAT32
        )


# --------------------------------------------------------------------------------------
# optax


@pytest.fixture(scope="module")
def optax():
    return pytest.importorskip("optax", reason="optax is not installed")


def test_optax_runs_eagerly_and_compiled(optax):
    report = check("optax:adadelta", "Adadelta", **FLOAT32)
    assert report.conforms, str(report)
    assert {(r.gradient, r.mode) for r in report.results} == {
        ("dense", "eager"),
        ("dense", "jit"),
    }
    assert "optax has no sparse gradients" in str(report)


def test_optax_takes_float64_under_x64(optax):
    options = {"dtypes": ["float64"], "modes": ["jit"]}
    assert_conforms(optax.sgd, "SGD", **options)


def test_a_slot_of_the_opposite_sign_is_judged(optax):
    from reference.conformance.ports.optax import OptaxPort

    given = {"momentum": 0.5}
    for name, right in [("-trace", True), ("trace", False)]:
        port = OptaxPort(optax.rmsprop, Dialect("", "", "", slots={"momentum": name}))
        report = check(port, "RMSprop", hyperparameters=given, modes=["jit"], **FLOAT32)
        assert report.conforms is right, str(report)


def test_a_function_of_the_user_that_makes_a_transformation(optax):
    def descent_with_decay(learning_rate):
        return optax.chain(
            optax.add_decayed_weights(2.0**-10), optax.sgd(learning_rate)
        )

    options = {"scenario": "gradients over ten decades", **FLOAT32}
    assert not check(descent_with_decay, "SGD", **options).conforms


# --------------------------------------------------------------------------------------
# Keras


@pytest.fixture(scope="module")
def keras():
    return pytest.importorskip("keras", reason="Keras is not installed")


@pytest.fixture(scope="module")
def tf_keras():
    return pytest.importorskip("tf_keras", reason="tf-keras is not installed")


EVERY_ROW = reference.Adam(sparse="every_row")


def test_keras_3_conforms_dense_and_not_where_rows_repeat(keras):
    report = check("keras:Adam", EVERY_ROW, quick=True)
    dense = [r for r in report.results if r.gradient == "dense"]
    assert all(r.conforms for r in dense)
    assert {r.convention for r in dense} == {"powers of t formed in float32"}
    if keras.backend.backend() == "tensorflow":
        failure = next(r.failure for r in report.results if r.gradient == "sparse")
        assert (failure.slot, failure.row) == ("v", "duplicated")


def test_the_newer_optimizers_of_tf_keras_conform(tf_keras):
    report = check("tf_keras:Adam", EVERY_ROW, quick=True)
    assert report.conforms, str(report)
    assert {r.gradient for r in report.results} == {"dense", "sparse"}


def test_the_legacy_optimizers_of_tf_keras_conform(tf_keras):
    assert_conforms("tf_keras.legacy:Adam", "Adam", quick=True, modes=["eager"])


def test_the_command_line_takes_the_rule_from_the_map(torch, capsys):
    from reference.cli import CONFORMS, MISUSE, main

    arguments = ["check", "torch:Adadelta", "--quick", "--set", "eps=0.001"]
    assert main(arguments) == CONFORMS
    assert "Adadelta" in capsys.readouterr().out
    assert main(["check", "torch:LBFGS", "--quick"]) == MISUSE
    assert "it needs the loss" in capsys.readouterr().err
    assert main(["check", "torch:Adadelta", "--quick", "--set", "beta=1"]) == MISUSE
    assert main(["check", "torch:Adadelta", "torch:Adam"]) == MISUSE
