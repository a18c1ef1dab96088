"""The command line: what it prints, and its exit status."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path

import pytest

import reference
from reference.cli import CONFORMS, DIFFERS, MISUSE, main
from reference.wrapper import Lines
from tests.conformance import implementations

ADAM = f"{implementations.__name__}:RightAdam"
LAZY = f"{implementations.__name__}:LazyRows"
FAST = ["--quick", "--mode", "eager"]


def needs_tensorflow() -> None:
    pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


def test_list_names_every_optimizer_in_aligned_columns(capsys):
    assert main(["list"]) == CONFORMS
    lines = capsys.readouterr().out.splitlines()
    named = {line.split()[0] for line in lines[1:]}
    assert named == {*reference.OPTIMIZERS, *reference.WRAPPERS}
    start = lines[0].index("sparse gradient changes")
    assert all(line[start - 2 : start] == "  " for line in lines)


def test_list_as_json(capsys):
    assert main(["list", "--json"]) == CONFORMS
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["Adam"]["slots"] == ["m", "v", "vhat"]
    assert rows["Adam"]["sparse"] == ["every row"]
    assert rows["Nadam"]["slots"] == ["m", "v", "momentum_cache"]
    assert all(set(row) == set(rows["Adam"]) for row in rows.values())


@pytest.mark.parametrize("name", reference.OPTIMIZERS)
def test_explain_shows_source_documentation_and_every_named_value(name, capsys):
    assert main(["explain", name]) == CONFORMS
    out = capsys.readouterr().out
    cls = reference.OPTIMIZERS[name]
    rule = cls().rule
    assert rule.source.strip() in out
    assert "Args:" in out or fields(cls) == fields(cls.__mro__[1])
    for parameter in rule.parameters:
        assert f"\n  {parameter} " in out


@pytest.mark.parametrize("name", reference.WRAPPERS)
def test_explain_shows_what_a_wrapper_adds(name, capsys):
    assert main(["explain", name]) == CONFORMS
    out = capsys.readouterr().out
    assert "Args:" in out
    for lines in vars(reference.WRAPPERS[name]).values():
        if isinstance(lines, Lines):
            assert lines.source.strip() in out


def test_a_wrapper_has_no_mutants_of_its_own(capsys):
    assert main(["mutants", "Lookahead"]) == 2
    assert "Lookahead is a wrapper" in capsys.readouterr().err


def test_explain_values_are_those_of_the_rule_by_hand(capsys):
    assert main(["explain", "adam", "--set", "beta_1=0.5", "--set", "epsilon=0"]) == 0
    shown = capsys.readouterr().out.split("-----\n")[-1]
    values = {line.split()[0]: line.split()[1:] for line in shown.splitlines()}
    assert values["m"] == ["0.25", "-0.125", "0"]
    assert values["v"] == ["0.00025", "6.25e-05", "0"]


def test_check_exits_with_0_1_and_2(capsys, tmp_path: Path):
    needs_tensorflow()
    broken = tmp_path / "broken.py"
    broken.write_text("import nothing_of_this_name")
    report = tmp_path / "report.json"
    right = ["check", ADAM, "--against", "Adam", *FAST]
    assert main([*right, "--json", str(report)]) == CONFORMS
    assert json.loads(report.read_text())["conforms"] is True
    out = capsys.readouterr().out
    assert "2 of 2 conform" in out
    assert "GPU: none here" in out or "@GPU" in out
    assert main(["check", LAZY, "--against", "Adam", *FAST]) == DIFFERS
    assert "untouched" in capsys.readouterr().out
    for wrong in (
        ["check", LAZY],
        ["check", LAZY, "--against", "Adamm"],
        ["check", "Adamm"],
        ["check", LAZY, ADAM, "--against", "Adam"],
        ["check", LAZY, "--against", "Adam", "--set", "epsilon"],
        ["check", LAZY, "--against", "Adam", "--json", "no/such/folder/file.json"],
        ["check", "builtins:dict", "--against", "Adam"],
        ["check", f"{broken}:Adam", "--against", "Adam"],
        ["check", ADAM, "--against", "Adam", "--set", "epsilon=small"],
        ["check", ADAM, "--against", "Adam", "--set", "epsilon=-1"],
        ["explain", "Adamm"],
    ):
        assert main(wrong) == MISUSE
        assert capsys.readouterr().err.startswith("optimizer-oracle: ")


@pytest.mark.parametrize(
    "wrong", [[], ["chek"], ["check", "--mode", "graph"], ["check", "--jobs", "0"]]
)
def test_arguments_that_do_not_parse_exit_with_2(wrong, capsys):
    with pytest.raises(SystemExit) as caught:
        main(wrong)
    assert caught.value.code == MISUSE
    assert "usage" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["list", "explain", "check"])
def test_help_has_an_example(command, capsys):
    with pytest.raises(SystemExit) as caught:
        main([command, "--help"])
    assert caught.value.code == CONFORMS
    assert f"example: optimizer-oracle {command}" in capsys.readouterr().out


def test_jobs_give_the_same_report(capsys):
    needs_tensorflow()
    arguments = ["check", ADAM, "--against", "Adam", "--quick", "--json", "-"]
    reports = []
    for jobs in ("1", "2"):
        assert main([*arguments, "--jobs", jobs]) == CONFORMS
        reports.append(capsys.readouterr().out)
    assert reports[0] == reports[1]
