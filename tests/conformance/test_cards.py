"""Report cards: what they say, and that each finding can be reproduced."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from reference import RMSprop
from reference.cli import CONFORMS, DIFFERS, MISUSE, main
from reference.conformance import cards
from reference.conformance.cards import Card, report_card
from reference.conformance.findings import FINDINGS, Finding
from reference.dialects import DIALECTS, LIBRARIES, Dialect

PAGES = Path(__file__).resolve().parents[2] / "docs" / "report_cards"


def needs(*packages: str) -> None:
    for package in packages:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


@pytest.mark.parametrize("number", range(len(FINDINGS)))
def test_a_finding_is_reproduced_by_its_code(number):
    code = FINDINGS[number].code
    needs(*re.findall(r"^import (\w+)", code, re.MULTILINE))
    needs(*re.findall(r"^import \w+, (\w+)", code, re.MULTILINE))
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    if "tensorflow" in code or "import keras" in code:
        environment["KERAS_BACKEND"] = "tensorflow"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert run.returncode == 0, run.stderr


def test_reproductions_are_short_and_can_fail():
    for finding in FINDINGS:
        lines = finding.code.strip().splitlines()
        assert len(lines) <= 8, finding.sentence
        assert "assert" in finding.code


def two_lines(monkeypatch) -> None:
    chosen = [
        Dialect("torch", "SGD", "SGD", {"momentum": 0.0}),
        Dialect("torch", "Adadelta", "Adadelta"),
        Dialect("torch", "LBFGS", "", differs="it needs the loss itself"),
    ]
    for module in (cards, sys.modules["reference.dialects"]):
        monkeypatch.setattr(module, "DIALECTS", chosen)


def test_a_card_says_what_conforms_differs_and_is_refused(monkeypatch, tmp_path):
    needs("torch")
    two_lines(monkeypatch)
    card = report_card("torch")
    verdicts = {
        e.label: (e.verdict("dense"), e.verdict("sparse")) for e in card.entries
    }
    assert verdicts["Adadelta"] == ("conforms", "refuses")
    dense, sparse = verdicts["SGD(momentum=0)"]
    assert (dense, sparse) == ("differs in float16 fused, bfloat16 fused", "conforms")
    assert card.explained
    for text in (str(card), card.markdown()):
        assert "moves half-precision weights only" in text
        assert "LBFGS: it needs the loss itself" in text
    assert "```python\nimport torch" in card.markdown()
    data = json.loads(card.to_json())
    assert data["findings"][0]["reproduction"] == FINDINGS[0].code
    assert data["versions"]["torch"]


def test_what_nothing_explains_is_said(monkeypatch):
    needs("torch")
    two_lines(monkeypatch)
    monkeypatch.setattr(cards, "FINDINGS", ())
    card = report_card("torch")
    assert not card.explained
    assert "not explained:\n  SGD(momentum=0), dense, float16 fused" in str(card)


def test_a_finding_is_told_from_others_by_its_place(monkeypatch):
    needs("torch")
    two_lines(monkeypatch)
    elsewhere = [
        Finding("s", ("optax",), ("*",), ("dense",), ""),
        Finding("s", ("torch",), ("Adam*",), ("dense",), ""),
        Finding("s", ("torch",), ("*",), ("sparse",), ""),
        Finding("s", ("torch",), ("*",), ("dense",), "", modes=("loop",)),
        Finding("s", ("torch",), ("*",), ("dense",), "", dtypes=("float32",)),
        Finding("s", ("torch",), ("*",), ("dense",), "", words="no such words"),
    ]
    monkeypatch.setattr(cards, "FINDINGS", elsewhere)
    assert not report_card("torch").explained


def test_a_library_that_is_missing_is_in_the_table(monkeypatch, capsys):
    monkeypatch.setitem(LIBRARIES, "addons", ("no_such_library.optimizers",))
    absent = [Dialect("addons", "Yogi", "SGD")]
    monkeypatch.setattr(cards, "DIALECTS", absent)
    assert report_card("addons").missing == "no_such_library is not installed"
    assert main(["report", "addons"]) == CONFORMS
    assert "addons: no_such_library is not installed" in capsys.readouterr().out


def test_the_command_line(monkeypatch, tmp_path, capsys):
    def fake(library, progress=None, *, quick=False):
        return Card(library, versions={"torch": "0"}, quick=quick)

    monkeypatch.setattr(cards, "report_card", fake)
    assert main(["report", "torch", "optax", "--markdown", str(tmp_path)]) == CONFORMS
    assert {path.name for path in tmp_path.iterdir()} == {"torch.md", "optax.md"}
    one = tmp_path / "one.md"
    assert main(["report", "torch", "--markdown", str(one), "--json", "-"]) == CONFORMS
    assert one.read_text().startswith("# torch\n")
    assert "--quick" not in one.read_text()
    assert main(["report", "torch", "--quick", "--markdown", str(one)]) == CONFORMS
    assert "report torch --quick --markdown" in one.read_text()
    assert main(["report", "torch", "optax", "--markdown", str(one)]) == MISUSE
    assert DIFFERS != MISUSE


def test_an_unknown_library_is_misuse(capsys):
    assert main(["report", "tensorflow"]) == MISUSE
    assert "a library is one of torch" in capsys.readouterr().err


@pytest.mark.parametrize("path", sorted(PAGES.glob("*.md")), ids=lambda p: p.stem)
def test_a_page_knows_every_line_and_has_no_unexplained_failure(path):
    page = path.read_text(encoding="utf-8")
    assert "Not explained" not in page
    for line in DIALECTS:
        if line.library == path.stem:
            assert re.search(rf"^(\| |\* ){line.name}\b", page, re.MULTILINE), line


def test_a_label_has_the_arguments_in_the_order_of_ours():
    needs("optax")
    line = Dialect("optax", "rmsprop", "RMSprop", arguments={"epsilon_inside": ""})
    shown = {"centered", "epsilon", "momentum", "rho", "learning_rate"}
    assert cards.label(line, RMSprop(momentum=0.5), shown) == (
        "rmsprop(learning_rate=0.001, decay=0.9, momentum=0.5, eps=1e-07, "
        "centered=False)"
    )
