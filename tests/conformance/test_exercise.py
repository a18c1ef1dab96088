"""Spot the bug: one line is wrong, it shows, and the answer says which."""

from __future__ import annotations

import re

import pytest

import reference
from reference.cli import CONFORMS, MISUSE, main
from reference.conformance.exercise import exercise

ADAM = [
    "m = beta_1 * m + (1 - beta_1) * g",
    "v = beta_2 * v + (1 - beta_2) * g ** 2",
    "step_size = learning_rate * np.sqrt(1 - beta_2 ** t) / (1 - beta_1 ** t)",
    "w = w - step_size * m / (np.sqrt(v) + epsilon)",
    "return (w, m, v)",
]


@pytest.mark.parametrize("seed", range(6))
def test_one_line_is_wrong_and_the_answer_names_it(seed, monkeypatch):
    monkeypatch.setattr(reference.Adam, "examples", ({},))
    question = exercise([reference.Adam], seed, answer=False)
    lines = re.findall(r"^  \d  (.*)$", question, re.MULTILINE)
    wrong = [n for n, (a, b) in enumerate(zip(lines, ADAM, strict=True), 1) if a != b]
    answer = exercise([reference.Adam], seed, answer=True)
    assert len(wrong) == 1
    assert answer.startswith(f"Line {wrong[0]}: ")
    assert f"it reads     {lines[wrong[0] - 1]}" in answer.replace("old ", "old_")
    assert f"it should be {ADAM[wrong[0] - 1]}" in answer


def test_every_elementwise_optimizer_makes_an_exercise():
    for cls in reference.OPTIMIZERS.values():
        if cls.elementwise:
            assert "Which one?" in exercise([cls], 1, answer=False)


def test_the_command_line_asks_and_answers(capsys):
    assert main(["exercise", "Adam", "--seed", "3"]) == CONFORMS
    assert "Step 2, with w = " in capsys.readouterr().out
    assert main(["exercise", "Adam", "--seed", "3", "--answer"]) == CONFORMS
    assert "it should be" in capsys.readouterr().out
    assert main(["exercise", "Adamm"]) == MISUSE
