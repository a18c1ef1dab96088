"""`docs/findings.md` names tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_every_finding_names_its_test() -> None:
    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    findings = re.split(r"^\* ", page, flags=re.MULTILINE)[1:]
    assert findings
    for finding in findings:
        named = re.findall(r"`(tests/\S+\.py)::(\w+)`", finding)
        assert named, finding
        for file, test in named:
            tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
            tests = [n.name for n in tree.body if isinstance(n, ast.FunctionDef)]
            assert test in tests, f"{file} has no {test}"
