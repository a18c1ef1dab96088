"""The contract of OptimizerV2: ours hold it, and each way to break it is seen."""

import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import tf_impl
from reference.cli import CONFORMS, DIFFERS, MISUSE, main
from tests.tf_impl import broken
from tests.tf_impl.cases import keras_class
from tf_impl.contract import BROKEN, HELD, LINES, NOT_APPLICABLE, Subject, contract
from tf_impl.contract.examine import constructor_defaults
from tf_impl.contract.reproduce import program
from tf_impl.contract.words import START, dense, sparse, trained
from tf_impl.wrappers import found as wrappers

PAGE = Path(__file__).resolve().parents[2] / "docs" / "contract.md"

# What each class breaks, and no more. Where it is several lines, one cannot be broken
# alone: a hook that cannot be called is a step that cannot be taken.
BREAKS = {
    "NoUnderscore": {"hooks have their names"},
    "NeedsAnotherName": {
        "signatures take what is passed",
        "apply_state has this very name",
        "takes steps",
    },
    "AnotherName": {"apply_state has this very name"},
    "AnotherArgument": {"signatures take what is passed", "takes sparse steps"},
    "NoAggregation": {
        "signatures take what is passed",
        "a loss scale changes nothing",
        "a step that the loss scale skips changes nothing",
    },
    "NotCounted": {
        "iterations counts the steps",
        "a sparse gradient without rows",
        "a schedule advances",
    },
    "NoSparseRule": set(),
    "SparseFails": {"takes sparse steps"},
    "Minimizes": {"minimize is apply_gradients of the gradient"},
    "Matrices": {"weights of any rank"},
    "Stuck": {"half-precision weights"},
    "Float32Slots": {"float64 weights"},
    "OneDtype": {"weights of several dtypes in one optimizer"},
    "NoneIsZero": {"a gradient of None leaves weight and slots alone"},
    "SlotsOnce": {"a variable that comes late"},
    "VariablesEachStep": {"slots are made once"},
    "SharedSlot": {
        "every variable has its own slots",
        "a gradient of None leaves weight and slots alone",
    },
    "FirstDuplicate": {
        "splitting a row changes nothing",
        "two replicas are one with the summed gradient",
    },
    "MeanOfRows": {"a sparse gradient without rows"},
    "LaterRefusal": {"bad indices are refused, the state untouched"},
    "FrozenNumbers": {"it does in a function that is already traced"},
    "KeptMomentum": {
        "a number set between steps takes effect",
        "it does in a function that is already traced",
    },
    "AskedOnce": {"a callable is asked in every step"},
    "EarlySchedule": {"a schedule advances"},
    "ForgetsEpsilon": {
        "get_config names every argument",
        "from_config trains the same",
    },
    "ForgetsMomentum": {
        "get_config names every argument",
        "from_config trains the same",
    },
    "NotJson": {
        "the config is JSON, before and after training",
        "a schedule comes back from the config",
    },
    "ScheduleIsDict": {"a schedule comes back from the config"},
    "Secret": {
        "the weights list continues the training",
        "a checkpoint continues the training",
    },
    "PythonCounter": {
        "a function agrees with eager steps",
        "the weights list continues the training",
        "a checkpoint continues the training",
        "two replicas are one with the summed gradient",
    },
    "TracesEachStep": {"nothing is traced after the first step"},
    "OtherwiseCompiled": {"XLA agrees"},
    "OtherwiseCompiledRows": {"XLA agrees on sparse steps"},
    "ReplicasPart": {"two replicas are one with the summed gradient"},
    "FirstReplica": {"two replicas are one with the summed gradient"},
    "DecaysEarly": {
        "a step that the loss scale skips changes nothing",
        "bad indices are refused, the state untouched",
    },
    "NoConstraint": {
        "a constraint holds after a step",
        "a constraint holds after a sparse step",
    },
}
# What `tf_keras.optimizers.legacy.SGD` breaks: its base class does.
OF_THE_BASE = {
    "bad indices are refused, the state untouched",
    "an integer learning rate is a number",
    "a schedule or callable takes the place of a number",
    "the config is JSON, before and after training",
}
FIRST = ("takes steps", "takes sparse steps")  # they decide what else applies


def examined(cls, names):
    subject, lines = Subject(cls, {}), []
    for definition in LINES:
        if definition.name in {*FIRST, *names}:
            lines.append(definition.examine(subject))
            subject.learn(lines[-1])
    return lines


def run(source):
    exec(compile(source, "reproduction", "exec"), {"__name__": "reproduction"})


# Ours


@pytest.mark.parametrize("name", ["SGD", "Adam", "Ftrl"])
def test_ours_hold(name):
    found = contract(tf_impl.OPTIMIZERS[name])
    assert found.held, str(found)
    assert not any(line.verdict == NOT_APPLICABLE for line in found.lines)


@pytest.mark.slow
@pytest.mark.parametrize("name", tf_impl.OPTIMIZERS)
def test_all_of_ours_hold(name):
    found = contract(tf_impl.OPTIMIZERS[name])
    assert found.held, str(found)


# One that accumulates takes no step in most calls, which is what it is for.
WRAPPERS = [
    name
    for name, cls in wrappers().items()
    if "optimizer" in constructor_defaults(cls) and name != "GradientAccumulation"
]


@pytest.mark.slow
@pytest.mark.parametrize("name", WRAPPERS)
def test_all_of_our_wrappers_hold(name):
    found = contract(wrappers()[name], {"optimizer": tf_impl.SGD(0.5, 0.5)})
    assert found.held, str(found)


# Others


def test_every_line_is_broken_by_some_class():
    informs = {"the step is counted"}
    seen = set().union(*BREAKS.values(), OF_THE_BASE)
    assert {definition.name for definition in LINES} - informs - seen == set()


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_line_is_seen_and_its_program_fails(name):
    lines = examined(getattr(broken, name), BREAKS[name])
    assert {line.name for line in lines if line.verdict == BROKEN} == BREAKS[name]
    for line in lines:
        assert line.why
        if line.verdict == BROKEN:
            assert line.found
            with pytest.raises(Exception):  # noqa: B017
                run(line.reproduction)


@pytest.mark.slow
@pytest.mark.parametrize("name", BREAKS)
def test_a_class_breaks_no_other_line(name):
    found = contract(getattr(broken, name))
    assert {line.name for line in found.broken} == BREAKS[name], str(found)


def test_programs_run_where_the_line_is_held():
    subject = Subject(broken.SGD, {})
    for definition in LINES:
        for case in definition.cases(subject):
            if "mode" not in case and not definition.refusals:  # as examples
                assigned = dict(case)
                if "allowed" in definition.body.__code__.co_varnames:
                    assigned["allowed"] = repr(subject.allowed(case["gradients"]))
                if "return " not in (
                    source := program(definition.body, broken.SGD, {}, assigned, False)
                ):
                    run(source)


def test_what_the_base_class_of_keras_breaks():
    found = contract(keras_class("SGD"))
    assert {line.name for line in found.broken} == OF_THE_BASE, str(found)
    for line in found.broken:
        with pytest.raises(Exception):  # noqa: B017
            run(line.reproduction)
    refused = {x.name for x in found.lines if x.verdict == NOT_APPLICABLE}
    assert refused == {"a constraint holds after a sparse step"}


# Verdicts that are not of the kind held or broken


def verdict(cls, name):
    return next(line for line in examined(cls, [name]) if line.name == name)


def test_a_class_without_a_sparse_rule_is_not_asked_for_one():
    for name in ("takes sparse steps", "splitting a row changes nothing"):
        line = verdict(broken.NoSparseRule, name)
        assert line.verdict == NOT_APPLICABLE
        assert line.found == "it has no rule for sparse gradients"


def test_what_xla_cannot_compile_is_not_broken():
    line = verdict(broken.PythonCode, "XLA agrees")
    assert line.verdict == NOT_APPLICABLE
    assert line.found == "XLA has no kernel for PyFunc"


@pytest.mark.parametrize(
    "cls, text",
    [
        (tf_impl.Adam, "globally: a first step depends on iterations"),
        (broken.SGD, "not by the rule: a first step does not depend on iterations"),
        (broken.OwnCount, "for each variable: slot steps"),
    ],
)
def test_how_the_step_is_counted(cls, text):
    line = verdict(cls, "the step is counted")
    assert (line.verdict, line.found) == (HELD, text)


def test_an_error_where_none_is_expected_does_not_end_the_examination():
    class NoConfig(broken.SGD):
        def get_config(self):
            raise OSError("no config today")

    lines = examined(NoConfig, ["get_config names every argument"])
    assert [line.verdict for line in lines] == [HELD, HELD, BROKEN]
    assert lines[-1].found == "OSError: no config today"


# The page


def test_every_python_block_of_the_page_runs():
    page, namespace = PAGE.read_text("utf-8"), {"__name__": "contract"}
    for block in re.finditer(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        code = "\n" * page.count("\n", 0, block.start(1)) + block[1]
        exec(compile(code, PAGE, "exec", dont_inherit=True), namespace)


def test_the_page_lists_every_line_and_why():
    page = PAGE.read_text("utf-8")
    for definition in LINES:
        assert f"* **{definition.name}**: {definition.why}\n" in page


# How far two correct runs may be apart


@pytest.mark.parametrize("name", ["SGD", "Adam", "Ftrl"])
@pytest.mark.parametrize("gradients", [dense, sparse])
def test_what_is_allowed_is_above_rounding_and_below_a_fault(name, gradients):
    """Steps in float64 are those in float32 without most of the rounding; half of the
    digits of float32 are more than rounding can take from gradients of one sign."""
    cls = tf_impl.OPTIMIZERS[name]
    low, high = (
        trained(cls(0.5), tf.Variable(START, dtype=dtype), gradients())
        for dtype in (tf.float32, tf.float64)
    )
    allowed = Subject(cls, {}).allowed(f"{gradients.__name__}()")
    for a, b, most in zip(low, high, allowed, strict=True):
        assert np.abs(np.float64(a) - b).max() <= most
        assert most <= max(1, np.abs(b).max()) * np.finfo(np.float32).eps ** 0.5


# The command


def test_the_command_shows_what_is_broken(capsys, tmp_path):
    path = tmp_path / "contract.json"
    target = f"{broken.__name__}:AnotherName"
    arguments = ["--set", "momentum=0.25", "--json", str(path)]
    assert main(["contract", target, *arguments]) == DIFFERS
    out = capsys.readouterr().out
    assert "BROKEN apply_state has this very name" in out
    assert "nothing is ever passed as state" in out
    assert f"from {broken.__name__} import AnotherName" in out
    assert "AnotherName: 39 held, 1 broken, 0 not applicable" in out
    written = json.loads(path.read_text())
    assert written["held"] is False
    assert len(written["lines"]) == len(LINES)
    assert set(written["versions"]) == {"python", "tensorflow", "keras"}


@pytest.mark.slow
def test_the_command_exits_with_0_and_2(capsys):
    assert main(["contract", "tf_impl:SGD"]) == CONFORMS
    assert "SGD: 40 held, 0 broken, 0 not applicable" in capsys.readouterr().out
    for wrong in (
        ["contract", "builtins:dict"],
        ["contract", "tf_impl:Adamm"],
        ["contract", "tf_impl:Adam", "--set", "zeta=1"],
    ):
        assert main(wrong) == MISUSE
        assert "optimizer-oracle: " in capsys.readouterr().err


def test_what_cannot_be_examined_is_refused():
    with pytest.raises(TypeError, match="expected a subclass of"):
        contract(dict)
    with pytest.raises(ValueError, match="tf_impl has no Adamm"):
        contract("tf_impl:Adamm")
    with pytest.raises(ValueError, match=r"cannot make Adam: .*zeta"):
        contract(tf_impl.Adam, {"zeta": 1})


@pytest.mark.slow
def test_a_line_that_ends_the_process_is_broken(capsys):
    assert main(["contract", f"{broken.__name__}:Fatal", "--json", "-"]) == DIFFERS
    lines = json.loads(capsys.readouterr().out)["lines"]
    assert [x["name"] for x in lines] == [definition.name for definition in LINES]
    (line,) = (x for x in lines if x["verdict"] == BROKEN)
    assert (line["name"], line["found"]) == ("XLA agrees", "the process ended: SIGABRT")
    assert "allowed = [" in line["reproduction"]


def test_a_class_in_a_file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(
        "import tf_impl\n"
        "class Mine(tf_impl.SGD):\n"
        "    def create_slots(self, var_list): pass\n"
    )
    (line,) = contract(f"{path}:Mine").broken
    assert line.name == "hooks have their names"
    sys.modules.pop("mine", None)
    with pytest.raises(AssertionError, match="create_slots"):
        run(line.reproduction)


def test_an_optimizer_may_be_made_with_another(capsys):
    class Wrapper(broken.SGD):
        def __init__(self, inner, name="Wrapper", **kwargs):
            assert inner not in made
            made.append(inner)
            super().__init__(**{**kwargs, "name": name})

    made = []
    subject = Subject(Wrapper, {"inner": tf_impl.SGD(0.25)})
    subject.make(), subject.make()
    assert len(made) == 3
    assert all(inner.learning_rate == 0.25 for inner in made)
