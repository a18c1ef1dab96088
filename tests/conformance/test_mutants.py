"""Wrong rules: the scenarios tell them all, and the diagnosis names them."""

from __future__ import annotations

import ast
import json

import numpy as np
import pytest

import reference
from reference.cli import CONFORMS, DIFFERS, main
from reference.conformance.convention import ideal
from reference.conformance.diagnose import diagnose
from reference.conformance.driver_faults import clipping_mutants, driver_mutants
from reference.conformance.mutants import (
    functions_of,
    parsed,
    rule_mutants,
    with_rules,
)
from reference.conformance.port import Setting
from reference.conformance.rounding import FLOAT32, IEEE
from reference.conformance.scenarios import programs
from reference.conformance.score import score
from reference.conformance.simulate import simulate


def edits(optimizer: reference.Optimizer) -> set[str]:
    return {mutant.edit for mutant in rule_mutants(optimizer)}


@pytest.mark.parametrize(
    "edit",
    [
        "w = w + step_size * m / (np.sqrt(v) + epsilon)",
        "w = w - step_size * m / np.sqrt(v + epsilon)",
        "w = w - step_size * m / np.sqrt(v)",
        "w = w - step_size * old m / (np.sqrt(v) + epsilon)",
        "w = w - step_size * g / (np.sqrt(v) + epsilon)",
        "m = beta_1 * m + beta_1 * g",
        "m = beta_1 * m + (1 - beta_2) * g",
        "v = beta_2 * v + (1 - beta_2) * g",
        "v = beta_2 * v",
        "step_size = learning_rate * np.sqrt(1 - beta_2 ** t) / (1 - beta_1)",
        "step_size = learning_rate / (1 - beta_1 ** t)",
        "return (w, m, old v)",
    ],
)
def test_the_typical_faults_of_adam_are_among_the_edits(edit):
    assert edit in edits(reference.Adam())


def test_epsilon_moves_into_the_maximum():
    assert "u = np.maximum(beta_2 * u, np.abs(g) + epsilon)" in edits(
        reference.Adamax()
    )


def test_a_mutant_runs_as_it_reads():
    by_edit = {m.edit: m for m in rule_mutants(reference.SGD(learning_rate=0.5))}
    mutant = by_edit["w = w + learning_rate * g"]
    w, _ = mutant.optimizer.run(np.array([1.0]), [np.array([2.0])])
    assert w.tolist() == [2.0]
    assert type(mutant.optimizer).__name__ == "SGD"
    assert reference.SGD(learning_rate=0.5).run(np.array([1.0]), [np.array([2.0])])[
        0
    ].tolist() == [0.0]


def test_no_edit_is_made_twice_and_none_is_the_rule():
    for cls in reference.OPTIMIZERS.values():
        optimizer = cls()
        rules = {ast.unparse(parsed(r)) for r in functions_of(optimizer).values()}
        texts = [ast.unparse(m.tree) for m in rule_mutants(optimizer)]
        assert len(set(texts)) == len(texts) > 0
        assert not rules & set(texts)


def test_the_driver_can_be_wrong_in_each_way():
    sentences = " | ".join(m.sentence for m in driver_mutants(reference.Adam()))
    for word in (
        *("t is", "t stays", "every weight", "gradients of each weight", "schedule"),
        *("empty", "shifted", "averaged", "first", "last", "squared one by one"),
        *("step of its own", "touched", "lost on resume", "made anew", "starts at"),
    ):
        assert word in sentences
    clipping = " | ".join(
        m.sentence for m in clipping_mutants(reference.Adam(clipnorm=1.0))
    )
    for word in ("before rows", "not clipped", "global_clipnorm", "each row"):
        assert word in clipping


@pytest.mark.slow
@pytest.mark.parametrize("name", reference.OPTIMIZERS)
def test_no_mutant_survives(name):
    result = score(reference.OPTIMIZERS[name])
    assert result.to_dict()["survivors"] == []
    assert result.killed + len(result.equivalent) == result.mutants
    signs = [why for _, why in result.equivalent if "sees the signs" in why]
    assert result.killed > 0.9 * (result.mutants - len(signs))


def test_a_missing_scenario_is_noticed(monkeypatch):
    """Adagrad's epsilon cannot be seen while the accumulator starts at 0.1."""
    monkeypatch.setattr(reference.Adagrad, "examples", ({},))
    survivors = score(reference.Adagrad).to_dict()["survivors"]
    assert "line 2: w = w - learning_rate * g / np.sqrt(n)" in survivors


def test_the_command_line_counts(capsys):
    assert main(["mutants", "sgd", "--json", "-"]) == CONFORMS
    counts = json.loads(capsys.readouterr().out)["SGD"]
    assert counts["surviving"] == 0
    assert counts["mutants"] == counts["killed"] + counts["equivalent"]
    assert main(["mutants", "sgd"]) == CONFORMS
    out = capsys.readouterr().out
    assert out.splitlines()[0].split()[:2] == ["optimizer", "mutants"]
    for program in ("steps", "learning rate set", "schedule", "resume"):
        assert f"told by '{program}' alone" in out, "a scenario that nothing needs"


DIAGNOSES = {
    "EpsilonUnderRoot": "epsilon is under the square root",
    "StepsFromZero": "t is one too large",
    "StepInHalfPrecision": "the step count is kept in bfloat16",
    "NoBiasCorrection": "`learning_rate` instead of `step_size`",
    "OldMomentInStep": "`old m` instead of `m`",
    "MomentNotKept": "the new `v` is used and not kept",
    "LearningRateFrozen": "the learning rate of the first step is kept",
    "ScheduleAhead": "the schedule is read at t + 1",
    "LazyRows": "a sparse gradient changes touched rows, not every row",
    "LastDuplicateKept": "the last of several rows with one index is kept",
    "RowsShiftedByOne": "indices are shifted by one row",
    "EmptyGradientSkipped": "an empty sparse gradient is skipped",
}


@pytest.mark.parametrize("fault", DIAGNOSES)
def test_the_diagnosis_names_the_fault_first(fault):
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    from tests.conformance.implementations import judged

    report = judged(fault)
    for result in report.failures:
        first = result.explanations[0]
        assert first.sentence.startswith(DIAGNOSES[fault]), result.gradient
        assert first.reproduces == "everything"
    assert f"likely cause: {DIAGNOSES[fault]}" in str(report)


def test_diagnose_prints_line_and_edit(capsys):
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
    target = "tests.conformance.implementations:EpsilonUnderRoot"
    arguments = ["diagnose", target, "--against", "Adam", "--json", "-"]
    assert main(arguments) == DIFFERS
    first = json.loads(capsys.readouterr().out)["explanations"][0]
    assert first["line"] == 4
    assert first["edit"] == "w = w - step_size * m / np.sqrt(v + epsilon)"
    assert first["reproduces"] == "everything"


def test_two_faults_in_different_rules_are_told_slot_by_slot():
    nadam, setting = reference.Nadam(), Setting(FLOAT32)
    by_edit = {mutant.edit: mutant for mutant in rule_mutants(nadam)}
    functions = {
        **by_edit["P = P + mu"].functions,
        **by_edit["v = beta_2 * v + (1 - beta_2) * g"].functions,
    }
    twice = with_rules(nadam, functions)
    program = programs(nadam, setting, 0, quick=True)[0]
    runs = [(simulate(twice, program, FLOAT32), nadam)]
    judging = (ideal(FLOAT32), setting, IEEE, {"dense"})
    found = diagnose(runs, *judging, seconds=2.0)
    assert any("momentum_cache" in explanation.reproduces for explanation in found)
