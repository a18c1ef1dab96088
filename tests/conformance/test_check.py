"""The check passes what is right, fails what is wrong, and says where."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("tensorflow", reason="TensorFlow is not installed")

import reference
import tf_impl
from reference.conformance import Report, assert_conforms, check
from tests.conformance import implementations
from tests.conformance.implementations import (
    EAGER,
    FAULTS,
    RightAdam,
    SinglePrecisionCoefficients,
    judged,
)
from tf_impl.legacy_keras import OptimizerV2, keras


def failures(report: Report) -> dict[str, tuple[str, str, str]]:
    return {
        r.gradient: (r.failure.program, r.failure.slot, r.failure.row)
        for r in report.results
        if r.failure
    }


def test_a_right_implementation_conforms_strictly():
    report = check(RightAdam, "Adam", strict=True, **EAGER)
    assert report.conforms, str(report)
    assert {r.gradient for r in report.results} == {"dense", "sparse"}
    assert all(r.worst_ratio >= 0.5 for r in report.results)


@pytest.mark.parametrize("fault", [cls.__name__ for cls in FAULTS])
def test_a_fault_is_seen(fault):
    assert not judged(fault).conforms


@pytest.mark.parametrize(
    ("name", "gradient", "program", "slot", "row"),
    [
        ("EpsilonUnderRoot", "dense", "steps", "weight", ""),
        ("MomentNotKept", "dense", "steps", "v", ""),
        ("OldMomentInStep", "dense", "steps", "weight", ""),
        ("SwappedBetas", "dense", "steps", "m", ""),
        ("SignOfSecondMomentLost", "dense", "steps", "v", ""),
        ("LearningRateFrozen", "dense", "learning rate set", "weight", ""),
        ("ScheduleAhead", "dense", "schedule", "weight", ""),
        ("LostOnResume", "dense", "resume", "m", ""),
        ("StepInHalfPrecision", "dense", "late", "weight", ""),
        ("LazyRows", "sparse", "steps", "m", "untouched"),
        ("LastDuplicateKept", "sparse", "steps", "m", "duplicated"),
        ("DuplicatesSquaredOneByOne", "sparse", "steps", "v", "duplicated"),
        ("EmptyGradientSkipped", "sparse", "steps", "m", "untouched"),
    ],
)
def test_the_failure_names_the_place(name, gradient, program, slot, row):
    assert failures(judged(name))[gradient] == (program, slot, row)


def test_sparse_faults_leave_the_dense_results_alone():
    for name in ("LazyRows", "LastDuplicateKept", "RowsShiftedByOne"):
        assert set(failures(judged(name))) == {"sparse"}, name


def test_slots_under_other_names_are_checked_through_the_weights():
    epsilon = {"epsilon": 1e-3}
    report = check(implementations.OtherNames, "Adam", hyperparameters=epsilon, **EAGER)
    assert report.conforms, str(report)
    assert "not seen, checked through the weights: m, v" in str(report)


def test_coefficients_in_float32_are_a_convention_with_a_price():
    report = check(SinglePrecisionCoefficients, "Adam", **EAGER)
    assert report.conforms, str(report)
    dense = next(r for r in report.results if r.gradient == "dense")
    assert dense.convention == "coefficients formed in float32"
    assert dense.cost.endswith("times the ideal bound, in v.")
    assert dense.convention in str(report)
    strict = check(SinglePrecisionCoefficients, "Adam", strict=True, **EAGER)
    assert not strict.conforms


def test_hyperparameters_kept_in_float32_are_found_in_float64():
    report = check(
        keras.optimizers.legacy.Adam,
        "Adam",
        modes=["eager"],
        dtypes=["float64"],
        strategies=["none"],
    )
    assert report.conforms, str(report)
    assert {r.convention for r in report.results} == {
        "learning_rate, beta_1, beta_2 kept in float32, coefficients formed in float64"
    }


def test_the_same_hyperparameters_reach_both_sides():
    assert check(RightAdam, "Adam", hyperparameters={"epsilon": 1e-3}, **EAGER).conforms
    wrong = check(RightAdam, reference.Adam(epsilon=1e-3), **EAGER)
    assert wrong.conforms


@pytest.mark.parametrize(
    "name", [n for n in reference.OPTIMIZERS if hasattr(keras.optimizers.legacy, n)]
)
def test_legacy_keras_conforms_in_single_precision(name):
    cls = getattr(keras.optimizers.legacy, name)
    report = check(cls, name, quick=True, **EAGER)
    assert report.conforms, str(report)


def test_legacy_keras_gives_nan_for_a_centered_variance_below_zero():
    report = check(
        keras.optimizers.legacy.RMSprop,
        "RMSprop",
        hyperparameters={"centered": True},
        **EAGER,
    )
    failure = next(r.failure for r in report.results if r.gradient == "dense")
    assert (failure.program, failure.part) == ("late", "constant gradient")
    assert failure.came != failure.came


def test_assert_conforms_carries_the_failure_text():
    with pytest.raises(AssertionError) as caught:
        assert_conforms(implementations.EpsilonUnderRoot, "Adam", quick=True, **EAGER)
    text = str(caught.value)
    for word in ("step 1", "weight[", "came", "due", "bound", "exposes"):
        assert word in text
    assert assert_conforms(RightAdam, reference.Adam, quick=True, **EAGER).conforms


def test_the_report_is_json_of_the_promised_form():
    report = check(implementations.LazyRows, "Adam", quick=True, **EAGER)
    data = json.loads(report.to_json())
    assert set(data) >= {"conforms", "results", "seed", "versions"}
    assert data["conforms"] is False
    for result in data["results"]:
        assert set(result) >= {
            "optimizer",
            "gradient",
            "dtype",
            "mode",
            "device",
            "conforms",
            "worst_ratio",
            "undecidable",
            "failure",
        }
    failed = next(r for r in data["results"] if not r["conforms"])
    assert failed["failure"]["row"] == "untouched"


def test_two_runs_with_one_seed_are_the_same_and_another_seed_differs():
    reports = [
        check(RightAdam, "Adam", quick=True, seed=seed, **EAGER).to_json()
        for seed in (7, 7, 8)
    ]
    assert reports[0] == reports[1] != reports[2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"target": "no_colon", "against": "Adam"}, "package.module:Class"),
        ({"target": "missing.py:A", "against": "Adam"}, "no file"),
        ({"target": "no_such_module:A", "against": "Adam"}, "cannot import"),
        ({"target": RightAdam, "against": "Adamm"}, "there are "),
        ({"target": RightAdam}, "needs a rule"),
        ({"against": "Adam"}, "needs a target"),
        ({"names": ["Adamm"]}, "there are "),
        ({"target": RightAdam, "against": "Adam", "dtypes": ["int8"]}, "float16"),
        ({"target": RightAdam, "against": "Adam", "modes": ["graph"]}, "eager"),
        (
            {
                "target": RightAdam,
                "against": "Adam",
                "hyperparameters": {"epsilom": 1.0},
            },
            "epsilon",
        ),
        (
            {
                "target": RightAdam,
                "against": "Adam",
                "hyperparameters": {"amsgrad": True},
            },
            "does not take amsgrad",
        ),
    ],
)
def test_misuse_says_what_is_allowed(arguments, words):
    with pytest.raises(ValueError, match=words):
        check(**arguments)


def test_only_optimizers_can_be_judged():
    with pytest.raises(ValueError, match="OptimizerV2"):
        check(dict, "Adam")


def test_a_file_is_a_target(tmp_path: Path):
    source = Path(implementations.__file__).read_text()
    path = tmp_path / "mine.py"
    path.write_text(source)
    assert check(f"{path}:RightAdam", "adam", quick=True, **EAGER).conforms
    assert not check(f"{path}:LazyRows", "adam", quick=True, **EAGER).conforms


class DenseAlone(RightAdam):
    _resource_apply_sparse = OptimizerV2._resource_apply_sparse


def test_without_a_sparse_rule_the_dense_one_is_judged_all_the_same():
    report = check(DenseAlone, "Adam", quick=True, **EAGER)
    dense, sparse = report.results
    assert (dense.gradient, dense.conforms) == ("dense", True)
    assert (sparse.gradient, sparse.conforms) == ("sparse", False)
    assert "NotImplementedError" in sparse.failure.message


def test_what_has_no_kernel_is_refused_and_said():
    options = {"modes": ["xla"], "dtypes": ["float32"], "strategies": ["none"]}
    adagrad = keras.optimizers.legacy.Adagrad
    report = check(adagrad, "Adagrad", quick=True, **options)
    assert [r.gradient for r in report.results] == ["dense"]
    assert report.conforms
    assert "refused sparse, float32 xla: XLA has no kernel for" in str(report)


def test_a_class_that_cannot_be_made_does_not_conform():
    class NeedsMore(RightAdam):
        def __init__(self, must_be_given, **kwargs):
            super().__init__(**kwargs)

    report = check(NeedsMore, "Adam", quick=True, **EAGER)
    assert not report.conforms
    assert "must_be_given" in str(report)


@pytest.mark.parametrize("limit", ["clipvalue", "clipnorm", "global_clipnorm"])
def test_keras_clips_before_it_sums_duplicates_and_ours_after(limit):
    options = {"hyperparameters": {limit: 0.5}, "quick": True, **EAGER}
    assert check(tf_impl.SGD, "SGD", strict=True, **options).conforms
    report = check(keras.optimizers.legacy.SGD, "SGD", **options)
    sparse = next(r for r in report.results if r.gradient == "sparse")
    assert not sparse.conforms


def test_a_case_that_ends_its_process_fails_and_the_others_run():
    options = {"devices": ["CPU"], "strategies": ["none"], "dtypes": ["float32"]}
    fatal = "tests.tf_impl.broken:Fatal"
    report = check(fatal, "SGD", modes=["eager", "xla"], jobs=2, **options)
    conforms = {(r.mode, r.gradient): r.conforms for r in report.results}
    assert conforms["eager", "dense"] and conforms["eager", "sparse"]
    assert not conforms["xla", "dense"]
    ended = next(r for r in report.results if r.mode == "xla")
    assert "the process that ran it ended" in ended.failure.message
