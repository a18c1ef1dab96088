#!/usr/bin/env python
"""Print the calls that one `minimize` of an `OptimizerV2` really makes.

The tree is recorded by `sys.setprofile` while `docs/examples/signum.py` takes its first
step on two variables: `bias` has a dense gradient, `table` an `IndexedSlices` in which
row 2 occurs twice.  Shown are the calls into the base class and into the optimizer;
TensorFlow's own functions in between are left out.  The columns are

    from        the line that made the call (the nearest one in a file listed on top)
    iterations  the value of `optimizer.iterations` at that moment, or -
    call        the call with its arguments; -> is what it returned

An `apply_state` that is passed on is shown by its keys.  All numbers are exact in
binary, so that the output is the same on every machine.
"""

from __future__ import annotations

import argparse
import inspect
import os
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "examples"))

# Helpers of the base class that are called everywhere and decide nothing.
FOLDED = {
    "_assert_valid_dtypes",
    "_call_if_callable",
    "_coefficients",
    "_create_slots_for_sharded_variables",
    "_decayed_lr",
    "_deduplicate_indexed_slices",
    "_distribution_strategy_scope",
    "_get_hyper",
    "_restore_slot_variable",
    "_valid_dtypes",
    "_var_key",
    "add_weight",
    "clipnorm",
    "clipvalue",
    "get_slot",
    "get_slot_names",
    "global_clipnorm",
    "iterations",
    "name_scope_only_in_function_or_graph",
}
WIDTH = 100


def shown_path(file: str) -> str:
    """`file` from the package that it belongs to, or the name of one of our own."""
    _, installed, inside = file.rpartition("site-packages/")
    return inside if installed else Path(file).name


class Formatter:
    """One short, exact text for each kind of argument that an optimizer is given."""

    def __init__(self, tf: Any, optimizer: Any, variables: dict[str, Any]) -> None:
        self.tf = tf
        self.optimizer = optimizer
        self.variables = variables

    def __call__(self, value: Any, passed_on: bool = False) -> str:
        tf = self.tf
        if isinstance(value, tf.IndexedSlices):
            return f"IndexedSlices({self(value.values)} at {self(value.indices)})"
        if isinstance(value, tf.Variable):
            return self.variable(value)
        if isinstance(value, tf.distribute.DistributedValues):
            return " | ".join(map(self, value.values))
        if isinstance(value, tf.Tensor):
            return self(value.numpy().tolist()).replace(", ", ",")
        if isinstance(value, dict):
            return self.mapping(value, passed_on)
        if isinstance(value, (list, tuple)):
            inside = ", ".join(map(self, value))
            return f"[{inside}]" if isinstance(value, list) else f"({inside})"
        if isinstance(value, tf.DType):
            return value.name
        if isinstance(value, str):
            return value.rpartition("/device:")[2]
        if isinstance(value, float):
            return f"{value:g}"
        if isinstance(value, (bool, int, type(None))):
            return repr(value)
        return getattr(value, "__name__", type(value).__name__)

    def mapping(self, value: dict[Any, Any], passed_on: bool) -> str:
        if passed_on and all(isinstance(key, str) for key in value):
            return "{" + ", ".join(sorted(value)) + "}"
        items = sorted(value.items(), key=lambda item: str(item[0]))
        inside = (f"{self(key)}: {self(item, passed_on)}" for key, item in items)
        return "{" + ", ".join(inside) + "}"

    def variable(self, value: Any) -> str:
        """The name it has in `trace`, and under a strategy the devices it is on."""
        known = {**self.variables, "iterations": self.optimizer._iterations}
        for name, variable in known.items():
            if value is variable:
                return name
        for name, variable in known.items():
            spread = isinstance(variable, self.tf.distribute.DistributedValues)
            for part in variable.values if spread else [variable]:
                if self.same(value, part):
                    return f"{name} on {self(part.device)}" if spread else name
        return value.name.partition(":")[0]

    def same(self, value: Any, part: Any) -> bool:
        """An assignment returns another object that has the same handle."""
        spread = isinstance(value, self.tf.distribute.DistributedValues)
        return part is not None and not spread and value.handle is part.handle


class Tracer:
    """Records the calls that concern the optimizer, as lines of text."""

    def __init__(self, tf: Any, optimizer: Any, variables: dict[str, Any]) -> None:
        base = type(optimizer).__mro__[1]
        self.tf = tf
        self.optimizer = optimizer
        self.format = Formatter(tf, optimizer, variables)
        modules = (base.__module__, type(optimizer).__module__)
        self.files = [str(sys.modules[name].__file__) for name in modules]
        self.lines: list[str] = []
        self.local = threading.local()

    def wants(self, frame: FrameType) -> bool:
        code = frame.f_code
        return (
            code.co_filename in self.files
            and code.co_name not in FOLDED
            and not code.co_name.startswith(("<", "__"))
        )

    def caller(self, frame: FrameType) -> str:
        """The nearest line outside of TensorFlow's own functions."""
        back = frame.f_back
        while back and (
            back.f_code.co_filename not in (*self.files, __file__)
            or back.f_code.co_name.startswith("__")
        ):
            back = back.f_back
        assert back is not None
        return f"{Path(back.f_code.co_filename).name}:{back.f_lineno}"

    def who(self) -> str:
        replica = self.tf.distribute.get_replica_context()
        if self.tf.distribute.get_strategy().num_replicas_in_sync == 1:
            return ""
        if replica is None:
            return "all       "
        return f"replica {int(replica.replica_id_in_sync_group)} "

    def write(self, depth: int, text: str, place: str) -> None:
        made = self.optimizer._iterations
        count = "-" if made is None else str(int(made.numpy()))
        margin = f"{place:22}{count:>4}  {self.who()}"
        wrapped = textwrap.wrap(
            text,
            WIDTH - len(margin) - 2 * depth,
            subsequent_indent="    ",
            break_on_hyphens=False,
            break_long_words=False,
        )
        for line in wrapped:
            self.lines.append((margin + "  " * depth + line).rstrip())
            margin = " " * len(margin)

    def arguments(self, frame: FrameType) -> str:
        code = frame.f_code
        names = code.co_varnames[: code.co_argcount]
        given = {name: frame.f_locals[name] for name in names}
        if code.co_flags & inspect.CO_VARKEYWORDS:
            given.update(frame.f_locals[code.co_varnames[code.co_argcount]])
        shown = (
            f"{name}={self.format(value, passed_on=True)}"
            for name, value in given.items()
            if name != "self" and value is not None
        )
        return f"{code.co_name}({', '.join(shown)})"

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        if event not in ("call", "return") or not self.wants(frame):
            return
        open_calls: list[int] = vars(self.local).setdefault("open_calls", [])
        if event == "call":
            depth = len(open_calls)
            self.write(depth, self.arguments(frame), self.caller(frame))
            open_calls.append(len(self.lines))
        else:
            lines_then = open_calls.pop()
            if value is not None or len(self.lines) > lines_then:
                self.write(len(open_calls), f"-> {self.format(value)}", "")


@contextmanager
def recording(tracer: Tracer) -> Iterator[None]:
    """Profile this thread and those started meanwhile (one for each replica)."""
    threading.setprofile(tracer)
    sys.setprofile(tracer)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def trace(distributed: bool) -> list[str]:
    """Take one step and return the lines that describe it.

    Args:
        distributed: under `MirroredStrategy` on two logical CPUs, in which the replicas
            read rows (0, 2) and (2, 1) of the table; else alone, reading (2, 0, 2).
    """
    import tensorflow as tf

    cpu = tf.config.list_physical_devices("CPU")[0]
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two if distributed else two[:1])
    tf.config.set_visible_devices([cpu])

    from signum import Signum

    if distributed:
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        rows = [[0, 2], [2, 1]]
    else:
        strategy = tf.distribute.get_strategy()
        rows = [[2, 0, 2]]

    with strategy.scope():
        table = tf.Variable(tf.ones((3, 1)), name="table")
        bias = tf.Variable(tf.ones(2), name="bias")
        optimizer = Signum(learning_rate=0.25, momentum=0.5)

    def step() -> None:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group

        def loss() -> tf.Tensor:
            picked = tf.gather(table, rows[int(replica)])
            return tf.reduce_sum(picked) + tf.reduce_sum(2.0 * bias)

        optimizer.minimize(loss, [table, bias])

    variables = {"table": table, "bias": bias}
    tracer = Tracer(tf, optimizer, variables)
    with recording(tracer):
        strategy.run(step)
    package = sys.modules[type(optimizer).__mro__[1].__module__.partition(".")[0]]
    after = {**variables, "iterations": optimizer.iterations}
    for name, variable in variables.items():
        after[f"slot m of {name}"] = optimizer.get_slot(variable, "m")
    return [
        f"TensorFlow {tf.__version__}, {package.__name__} {package.__version__}",
        *map(shown_path, tracer.files),
        "",
        "from            iterations  call",
        *tracer.lines,
        "",
        *(
            f"{name} = {tracer.format(tf.convert_to_tensor(variable))}"
            for name, variable in after.items()
        ),
    ]


def fix_order_of_sets() -> None:
    """Start again, with another seed of `hash`, until CPU:0 comes before CPU:1.

    The base class walks a set of pairs (device, dtype), so the order of its calls is
    that of their hashes, which is another in every run.
    """
    seed = os.environ.get("PYTHONHASHSEED", "random")
    device, float32 = "/job:localhost/replica:0/task:0/device:CPU:", 1
    pairs = [(f"{device}{number}", float32) for number in (0, 1)]
    if seed == "random" or list(set(pairs)) != pairs:
        os.environ["PYTHONHASHSEED"] = "0" if seed == "random" else str(int(seed) + 1)
        os.execv(sys.executable, [sys.executable, *sys.argv])


def paste(file: Path, text: str, distributed: bool) -> None:
    """Put `text` between the markers for it in the Markdown `file`.

    Raises:
        ValueError: the markers are not there, or not once.
    """
    name = "trace --distributed" if distributed else "trace"
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    page = file.read_text(encoding="utf-8")
    if page.count(begin) != 1 or page.count(end) != 1:
        raise ValueError(f"{file} must have the lines {begin.strip()} and {end} once")
    before, _, rest = page.partition(begin)
    _, _, after = rest.partition(end)
    block = f"```text\n{text}\n```\n"
    file.write_text(before + begin + block + end + after, encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example:  python docs/trace_minimize.py --distributed",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--distributed",
        action="store_true",
        help="under MirroredStrategy, on two logical CPUs",
    )
    parser.add_argument(
        "--paste",
        metavar="FILE",
        type=Path,
        help="write the trace between its markers in this Markdown file instead",
    )
    arguments = parser.parse_args()
    fix_order_of_sets()
    text = "\n".join(trace(arguments.distributed))
    if arguments.paste is None:
        print(text)
    else:
        paste(arguments.paste, text, arguments.distributed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
