"""`docs/custom_optimizer.md` is true: its code runs, its traces are what happens."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="the page is about TensorFlow")

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "custom_optimizer.md"


@pytest.fixture(autouse=True)
def examples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOCS / "examples"))


def python_blocks(page: str) -> list[tuple[int, str]]:
    """Line number and text of each fenced Python block."""
    blocks = re.finditer(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [(page.count("\n", 0, b.start(1)), b.group(1)) for b in blocks]


def test_every_python_block_runs() -> None:
    blocks = python_blocks(PAGE.read_text(encoding="utf-8"))
    assert blocks
    namespace: dict[str, Any] = {"__name__": "custom_optimizer"}
    for line, text in blocks:
        # Blank lines in front make a traceback point into the page.
        code = compile("\n" * line + text, PAGE, "exec", dont_inherit=True)
        exec(code, namespace)


def test_no_code_on_the_page_is_left_out_of_the_tests() -> None:
    fences = re.findall(r"^```(.*)\n", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert set(fences[::2]) <= {"python", "text", "console"}
    assert set(fences[1::2]) == {""}


@functools.cache
def trace(*arguments: str) -> str:
    finished = subprocess.run(
        [sys.executable, str(DOCS / "trace_minimize.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.rstrip("\n")


def pasted(arguments: tuple[str, ...], page: str) -> str:
    """The trace that the page shows for `trace_minimize.py *arguments`."""
    name = " ".join(["trace", *arguments])
    found = re.search(
        rf"<!-- {name} -->\n```text\n(.*?)\n```\n<!-- /{name} -->", page, re.S
    )
    assert found, f"no block between the markers of {name!r}"
    return found.group(1)


def without_versions(text: str) -> list[str]:
    """`text` without what another TensorFlow writes differently: versions and lines."""
    _, base, *rest = text.splitlines()
    rest = [" ".join(re.sub(r"(\.py):\d+", r"\1", line).split()) for line in rest]
    return [base.removeprefix("tf_"), *rest]


@pytest.mark.parametrize("arguments", [(), ("--distributed",)], ids=["one", "two"])
def test_the_page_shows_the_trace_of_today(arguments: tuple[str, ...]) -> None:
    shown, real = pasted(arguments, PAGE.read_text(encoding="utf-8")), trace(*arguments)
    assert without_versions(shown) == without_versions(real)
    if shown.splitlines()[0] == real.splitlines()[0]:  # the same versions
        assert shown == real


def test_a_trace_that_rots_is_seen() -> None:
    shown = pasted((), PAGE.read_text(encoding="utf-8"))
    for old, new in {
        "_create_slots(": "_create_slot(",
        "at [2,0,2]": "at [2,0]",
        "[[2],[1]]": "[[1],[1]]",
        "iterations = 1": "iterations = 2",
    }.items():
        assert old in shown
        assert without_versions(shown.replace(old, new)) != without_versions(shown)


def test_paste_writes_the_trace_between_its_markers(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("a\n<!-- trace -->\nold\n<!-- /trace -->\nb\n", encoding="utf-8")
    assert trace("--paste", str(page)) == ""
    text = page.read_text(encoding="utf-8")
    assert text == f"a\n<!-- trace -->\n```text\n{trace()}\n```\n<!-- /trace -->\nb\n"


# The two examples against numbers worked by hand, all of them exact in binary.

Step = Callable[[Any], None]


def eager(step: Step) -> Step:
    return step


def function(step: Step) -> Step:
    return tf.function(step)


def xla(step: Step) -> Step:
    return tf.function(step, jit_compile=True)


@pytest.fixture(params=[eager, function, xla], ids=lambda mode: mode.__name__)
def mode(request: pytest.FixtureRequest) -> Callable[[Step], Step]:
    return request.param


@pytest.fixture(params=["CPU", "GPU"])
def device(request: pytest.FixtureRequest) -> Any:
    if not tf.config.list_logical_devices(request.param):
        pytest.skip(f"TensorFlow sees no {request.param} here")
    with tf.device(request.param):
        yield request.param


def dense(*values: float) -> Any:
    return tf.constant([[value] for value in values])


def sparse(rows: list[int], *values: float, of: int = 3) -> Any:
    return tf.IndexedSlices(dense(*values), tf.constant(rows), tf.constant([of, 1]))


def run(
    mode: Callable[[Step], Step], optimizer: Any, gradients: list[Any]
) -> tuple[list[float], list[list[float]]]:
    """Weights and slots of a column that starts at ones, after all the `gradients`."""
    w = tf.Variable(tf.ones((3, 1)))
    optimizer._create_all_weights([w])

    def step(gradient: Any) -> None:
        optimizer.apply_gradients([(gradient, w)])

    for gradient in gradients:
        mode(step)(gradient)
    assert int(optimizer.iterations) == len(gradients)
    slots = [optimizer.get_slot(w, name) for name in optimizer.get_slot_names()]
    return w.numpy()[:, 0].tolist(), [slot.numpy()[:, 0].tolist() for slot in slots]


def test_signum_dense_by_hand(mode: Callable[[Step], Step], device: str) -> None:
    from signum import Signum

    gradients = [dense(1.0, -2.0, 0.0), dense(-4.0, 1.0, 2.0)]
    w, [m] = run(mode, Signum(learning_rate=0.25, momentum=0.5), gradients)
    # m1 = g1 / 2 = 1/2, -1, 0             w1 = 1 - sign(m1) / 4 = 3/4, 5/4, 1
    # m2 = m1 / 2 + g2 / 2 = -7/4, 0, 1    w2 = w1 - sign(m2) / 4
    assert m == [1 / 4 - 2, -1 / 2 + 1 / 2, 0 + 1]
    assert w == [3 / 4 + 1 / 4, 5 / 4 + 0, 1 - 1 / 4]


def test_signum_sparse_by_hand(mode: Callable[[Step], Step], device: str) -> None:
    from signum import Signum

    gradients = [sparse([2, 0, 2], -4.0, 1.0, 2.0), sparse([0, 0], -1.0, -2.0)]
    w, [m] = run(mode, Signum(learning_rate=0.25, momentum=0.5), gradients)
    # step 1: row 0 has 1, row 2 has -4 + 2 = -2:  m = 1/2, 0, -1    w = 3/4, 1, 5/4
    # step 2: row 0 has -1 - 2 = -3:               m0 = 1/4 - 3/2    w0 = 3/4 + 1/4
    assert m == [1 / 4 - 3 / 2, 0, -1]
    assert w == [3 / 4 + 1 / 4, 1, 5 / 4]


def test_gradient_descent_by_hand(mode: Callable[[Step], Step], device: str) -> None:
    from gradient_descent import GradientDescent

    gradients = [dense(1.0, -2.0, 0.0), sparse([2, 0, 2], -4.0, 1.0, 2.0)]
    w, slots = run(mode, GradientDescent(learning_rate=0.5), gradients)
    assert w == [1 - 1 / 2 - 1 / 2, 1 + 1, 1 - (-4 + 2) / 2]
    assert slots == []


def test_untouched_rows_of_signum_keep_their_bits() -> None:
    from signum import Signum

    rng = np.random.default_rng(0)
    start = rng.standard_normal((3, 1)).astype(np.float32)
    w = tf.Variable(start)
    optimizer = Signum()
    optimizer.apply_gradients([(tf.constant(start), w)])
    before = w.numpy(), optimizer.get_slot(w, "m").numpy()
    optimizer.apply_gradients([(sparse([1, 1], 3.0, -1.0), w)])
    after = w.numpy(), optimizer.get_slot(w, "m").numpy()
    for old, new in zip(before, after, strict=True):
        assert old[[0, 2]].tobytes() == new[[0, 2]].tobytes()
        assert old[1] != new[1]


def test_signum_refuses_a_momentum_outside_its_domain() -> None:
    from signum import Signum

    for momentum in (-0.1, 1.0, float("nan")):
        with pytest.raises(ValueError, match=r"momentum must be in \[0, 1\), not"):
            Signum(momentum=momentum)
