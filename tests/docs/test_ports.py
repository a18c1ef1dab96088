"""The example in `docs/ports.md` runs, and sees a fault."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from reference.dialects import LIBRARIES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ports.md"
TEXT = PAGE.read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)[0]


def outcomes(code: str, folder: Path) -> dict[str, int]:
    """How many tests passed, failed and were skipped."""
    path = folder / "test_example.py"
    path.write_text(code, encoding="utf-8")
    options = ["-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--rootdir={folder}", str(path)],
        capture_output=True,
        text=True,
        cwd=PAGE.parents[1],
    )
    last = run.stdout.strip().splitlines()[-1]
    return {word: int(n) for n, word in re.findall(r"(\d+) (\w+)", last)}


def test_the_example_passes(tmp_path):
    found = outcomes(CODE, tmp_path)
    assert found["passed"] > 15 and "failed" not in found
    assert found["skipped"] == 1  # a function cannot start late


def test_a_fault_fails_in_its_scenarios_alone(tmp_path):
    added = "np.add.at(w, g.indices, (-learning_rate * g.values).astype(w.dtype))"
    kept = "w[g.indices] += (-learning_rate * g.values).astype(w.dtype)"
    assert added in CODE
    found = outcomes(CODE.replace(added, kept), tmp_path)  # duplicates lost
    assert 0 < found["failed"] < found["passed"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_library_is_named(library):
    assert f"`{library}:" in TEXT
