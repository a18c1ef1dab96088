"""``import reference`` loads NumPy and nothing that is heavier."""

from __future__ import annotations

import subprocess
import sys

HEAVY = ("tensorflow", "tf_keras", "keras", "torch", "jax", "optax", "scipy", "mpmath")


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after ``statement``."""
    report = "import sys; print(*{m.split('.')[0] for m in sys.modules})"
    program = f"{statement}; {report}"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_reference_loads_no_framework():
    loaded = loaded_by("import reference")
    assert "numpy" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_the_conformance_package_loads_no_framework_by_itself():
    modules = "rounding, convention, judge, scenarios, check, explain, report"
    loaded = loaded_by(f"from reference.conformance import {modules}")
    assert loaded.isdisjoint(HEAVY)


def test_the_probe_sees_what_is_loaded():
    assert "json" in loaded_by("import reference, json")
