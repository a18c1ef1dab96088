"""The command line of the benchmarks, and what makes the updates fast, without a clock.

Times are for `python -m benchmarks`; here is what can be counted: operations in a
graph, and copies of whole tables in compiled code.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
import tensorflow as tf

import tf_impl
from benchmarks import __main__ as command_line
from benchmarks import numpy_side, tensorflow_side, timing
from benchmarks.cases import Case, Measurement, all_cases
from tests.tf_impl.cases import KERAS, KERAS_CASES
from tf_impl import updates

ROWS, COLUMNS = 70_000, 2  # large enough to be compiled


def stub(name: str, ratio: float, target: float | None = 1.1) -> Case:
    measurement = Measurement(ratio * 2.0, 2.0, ratio)
    return Case(name, "a rival", target, lambda seconds: measurement)


@pytest.fixture
def cases(monkeypatch):
    def use(*stubs: Case) -> None:
        monkeypatch.setattr(command_line, "all_cases", lambda: iter(stubs))

    return use


def test_status_is_0_when_all_targets_are_met(cases, capsys):
    cases(stub("dense/A", 1.1), stub("small/A/eager", 9.0, target=None))
    assert command_line.main([]) == 0
    header, first, second = capsys.readouterr().out.splitlines()
    assert first.endswith("met")
    assert first.index("a rival") == second.index("a rival") == header.index("rival")


def test_status_is_1_when_a_target_is_missed(cases, capsys):
    cases(stub("dense/A", 1.0), stub("dense/B", 1.2))
    assert command_line.main([]) == 1
    assert capsys.readouterr().out.splitlines()[-1].endswith("MISSED")


def test_unknown_name_is_misuse(cases, capsys):
    cases(stub("dense/A", 1.0))
    assert command_line.main(["dense/Z"]) == 2
    assert "'dense/Z'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["dense"], ["dense/A", "dense/B"]),
        (["dense/A"], ["dense/A"]),
        (["*/A/first"], ["small/A/first"]),
        ([], ["dense/A", "dense/B", "small/A/first"]),
    ],
)
def test_names_choose(cases, tmp_path, names, chosen):
    cases(*(stub(name, 1.0) for name in ("dense/A", "dense/B", "small/A/first")))
    command_line.main([*names, "--json", str(tmp_path / "out.json")])
    records = json.loads((tmp_path / "out.json").read_text())
    assert [record["name"] for record in records] == chosen


def test_json_has_both_times_and_their_ratio(cases, tmp_path):
    cases(stub("dense/A", 1.5))
    command_line.main(["--json", str(tmp_path / "out.json")])
    assert json.loads((tmp_path / "out.json").read_text()) == [
        {
            "name": "dense/A",
            "rival": "a rival",
            "ours_ms": 3.0,
            "rival_ms": 2.0,
            "ratio": 1.5,
            "target": 1.1,
            "met": False,
        }
    ]


def test_every_optimizer_is_measured():
    names = {case.name for case in all_cases()}
    assert len(names) == len(list(all_cases()))
    for optimizer in KERAS:
        assert f"dense/{optimizer}" in names
        assert f"sparse/{optimizer}/1M" in names
        assert f"small/{optimizer}/first" in names


def test_turns_alternate_and_the_lower_quartile_counts():
    calls = []
    times = iter([8.0, 5.0, 1.0, 6.0, 9.0])

    def ours() -> float:
        calls.append("ours")
        return next(times)

    def rival() -> float:
        calls.append("rival")
        return 2.0

    # Of 1, 5, 6, 8, 9, a quarter of the way from first to last is 5.
    assert timing.alternate(ours, rival, seconds=0.0, at_least=5) == (5.0, 2.0)
    assert calls[:4] == ["rival", "ours", "ours", "rival"]


def test_cases_run(monkeypatch):
    monkeypatch.setattr(tensorflow_side, "DENSE_ELEMENTS", 10)
    monkeypatch.setattr(tensorflow_side, "TABLE_ROWS", 2_000)
    monkeypatch.setattr(tensorflow_side, "SMALL_TABLE_ROWS", 1_800)
    monkeypatch.setattr(tensorflow_side, "SMALL_VARIABLES", 2)
    monkeypatch.setattr(numpy_side, "ELEMENTS", 20_000)
    for measured in (
        tensorflow_side.dense("SGD", 0.0),
        tensorflow_side.sparse("SGD", "SGD-momentum", 0.0),
        tensorflow_side.sparse_growth("SGD", 0.0),
        tensorflow_side.small("SGD", "first", 0.0),
        tensorflow_side.small("SGD", "later", 0.0),
        tensorflow_side.small("SGD", "eager", 0.0),
        numpy_side.adam_time(0.0),
    ):
        assert measured.ratio == measured.ours_ms / measured.rival_ms > 0
    assert numpy_side.adam_memory(0.0).ratio > 0


@pytest.mark.parametrize(("name", "options"), KERAS_CASES)
def test_a_small_variable_costs_few_operations(name, options):
    def operations(count: int) -> int:
        variables = [tf.Variable(tf.ones([n + 1])) for n in range(count)]
        grads = [tf.ones_like(variable) for variable in variables]
        optimizer = getattr(tf_impl, name)(**options)

        @tf.function
        def step(*grads):
            optimizer.apply_gradients(zip(grads, variables, strict=True))

        graph = step.get_concrete_function(*grads).graph
        return sum(op.type != "Placeholder" for op in graph.get_operations())

    # The gradient, summed over replicas, and the update. Ftrl makes weights NaN where z
    # is: by a read of it and a step, of a size that is a zero.
    allowed = 5 if name == "Ftrl" else 2
    assert operations(3) - operations(2) <= allowed


def tables_written(name: str, grad: bool) -> tuple[int, int]:
    """Return how many tables the compiled update writes, and how many it changes."""
    table = tf.Variable(tf.ones([ROWS, COLUMNS]))
    optimizer = getattr(tf_impl, name)()
    optimizer.apply_gradients([(tf.zeros_like(table), table)])
    handles = [tensor.handle for tensor in optimizer._tensors(table).values()]
    changes = (True,) * len(handles)
    shape = tuple(table.shape)
    rule, in_turn = optimizer._definition.rule, optimizer._definition.in_turn
    static = (rule, table.dtype, changes, in_turn, shape)
    text = updates._table_compiled.experimental_get_compiler_ir(
        static,
        handles,
        [tf.zeros_like(table)] if grad else [],
        optimizer._coefficients_for(table, None),
        tf.constant(-1, tf.int64),
    )(stage="optimized_hlo")
    main = text[text.index("ENTRY") :]
    results = [line.split(" = ")[1] for line in main.splitlines() if " = " in line]
    tables = [r for r in results if r.startswith(f"f32[{ROWS},{COLUMNS}]")]
    return sum(" parameter(" not in table for table in tables), len(handles)


@pytest.mark.parametrize(
    ("name", "grad"),
    [
        ("Adam", True),
        ("Nadam", True),
        ("RMSprop", True),
        ("Adamax", True),
        ("Adadelta", True),
        ("Adam", False),
        ("Nadam", False),
        ("RMSprop", False),
    ],
)
def test_compiled_updates_write_no_table_but_what_they_change(name, grad):
    written, changed = tables_written(name, grad)
    assert written == changed


def test_reference_step_holds_little_but_inputs_and_outputs():
    assert numpy_side.adam_memory(0.0).ratio <= 1.05


def test_small_shapes_differ_and_are_small():
    shapes = tensorflow_side._small_shapes()
    assert len(set(shapes)) == len(shapes) == 100
    assert max(np.prod(shape) for shape in shapes) <= 10_000
