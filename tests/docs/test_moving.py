"""`docs/moving.md` is true: its code runs, its table misses no class."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

tf = pytest.importorskip("tensorflow", reason="the page is about TensorFlow")

import reference  # noqa: E402
import tf_impl  # noqa: E402

PAGE = Path(__file__).resolve().parents[2] / "docs" / "moving.md"
HOMES = {
    "tfa": "tensorflow_addons.optimizers.",
    "keras_adamw": "keras_adamw.",
    "tf": "tf.keras.optimizers.legacy.",
}


def blocks() -> list[tuple[int, str]]:
    """Line number and text of each fenced Python block."""
    page = PAGE.read_text(encoding="utf-8")
    found = re.finditer(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [(page.count("\n", 0, b.start(1)), b.group(1)) for b in found]


def table() -> list[tuple[str, str, str]]:
    """Library, name there and name here of each row."""
    page = PAGE.read_text(encoding="utf-8")
    return re.findall(
        r"^\| `(\w+)\.(?:[\w.]+\.)?(\w+)` \| `(\w+)` \|", page, re.MULTILINE
    )


def test_every_block_runs() -> None:
    namespace: dict[str, Any] = {"__name__": "moving"}
    for line, text in blocks():
        # Blank lines in front make a traceback point into the page.
        exec(compile("\n" * line + text, PAGE, "exec", dont_inherit=True), namespace)


def test_a_claim_that_is_wrong_is_seen() -> None:
    namespace: dict[str, Any] = {"__name__": "moving"}
    text = "".join(text for _, text in blocks()).replace("== 0.75", "== 0.5")
    with pytest.raises(AssertionError):
        exec(compile(text, PAGE, "exec", dont_inherit=True), namespace)


def test_every_class_that_is_named_exists() -> None:
    rows = table()
    assert rows
    assert [here for *_, here in rows if not hasattr(tf_impl, here)] == []


def test_no_class_of_these_libraries_is_missing() -> None:
    rows = {HOMES[library] + there for library, there, _ in table()}
    known = {**reference.OPTIMIZERS, **reference.WRAPPERS}
    homes = {cls.home for cls in known.values()}
    assert {home for home in homes if home.startswith(tuple(HOMES.values()))} <= rows
