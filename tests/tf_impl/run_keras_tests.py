"""Run tf-keras' own tests of its legacy optimizers with the classes of `tf_impl`.

    python tests/tf_impl/run_keras_tests.py CHECKOUT [--original] [NAME ...]

CHECKOUT is a checkout of the repository keras-team/tf-keras: no published package has
these tests (not the wheels nor the source archives of tf-keras, and of keras not the
wheels of 2.6, 2.12 and 2.15), so they cannot be a part of the test-suite.  NAME picks
some of `adam`, `adadelta`, ... `optimizer_v2`; without it all run.  `--original` leaves
Keras' classes in place, to tell what a failure is due to.

What is done to each `tf_keras/optimizers/legacy/NAME_test.py`: imports are turned to
the installed package (`tf_keras.src`, or `keras.src` on TensorFlow 2.15), the classes
of the eight modules are replaced by ours, and complex dtypes are taken off the lists of
dtypes, as `tf_impl` refuses complex weights.  No test may fail: none of them asserts
one of the faults that `tf_impl` does not share with Keras.

The exit status is 0 if all pass, 1 if not, 2 if CHECKOUT has no such tests.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import re
import sys
import types
import unittest
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import tf_impl
from tf_impl.legacy_keras import keras

PACKAGE = keras.optimizers.legacy.SGD.__module__.partition(".")[0]
MODULES = {
    "adadelta": "Adadelta",
    "adagrad": "Adagrad",
    "adam": "Adam",
    "adamax": "Adamax",
    "ftrl": "Ftrl",
    "gradient_descent": "SGD",
    "nadam": "Nadam",
    "rmsprop": "RMSprop",
}
FILES = (*MODULES, "optimizer_v2")

# Test classes that are about something else than the eight classes.
NOT_OURS = {"NonFusedAdamOptimizerTest"}


def load(checkout: Path, name: str) -> types.ModuleType:
    """Import one test file of the checkout, as a module called `name`_test."""
    file = checkout / "tf_keras" / "optimizers" / "legacy" / f"{name}_test.py"
    text = file.read_text(encoding="utf-8")
    text = re.sub(r"(?m)^from tf_keras\b", f"from {PACKAGE}.src", text)
    text = re.sub(r"(?m)^import tf_keras\b", f"import {PACKAGE}", text)
    module = types.ModuleType(f"{name}_test")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    exec(compile(text, str(file), "exec"), vars(module))
    dtypes = vars(module).get("_DATA_TYPES", [])
    dtypes[:] = [dtype for dtype in dtypes if not dtype.is_complex]
    cases = vars(module).get("_TESTPARAMS", [])
    cases[:] = [case for case in cases if not case[0].is_complex]
    return module


@contextlib.contextmanager
def classes_replaced() -> Iterator[None]:
    """Put our classes where Keras' own modules have theirs."""
    with contextlib.ExitStack() as stack:
        for name, cls in MODULES.items():
            module = importlib.import_module(f"{PACKAGE}.src.optimizers.legacy.{name}")
            stack.enter_context(mock.patch.object(module, cls, getattr(tf_impl, cls)))
        yield


def tests_of(module: types.ModuleType) -> list[unittest.TestCase]:
    def flat(suite: unittest.TestSuite) -> Iterator[unittest.TestCase]:
        for item in suite:
            if isinstance(item, unittest.TestSuite):
                yield from flat(item)
            elif (
                type(item).__name__ not in NOT_OURS and "test_session" not in item.id()
            ):
                yield item

    return list(flat(unittest.defaultTestLoader.loadTestsFromModule(module)))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, metavar="CHECKOUT")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(FILES))
    parser.add_argument("--original", action="store_true", help="keep Keras' classes")
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - set(FILES):
        parser.error(f"NAME is one of {', '.join(FILES)}, not {min(unknown)!r}")
    legacy = arguments.checkout / "tf_keras" / "optimizers" / "legacy"
    names = [name for name in FILES if name in (arguments.names or FILES)]
    if missing := [n for n in names if not (legacy / f"{n}_test.py").is_file()]:
        print(f"there is no {missing[0]}_test.py in {legacy}", file=sys.stderr)
        return 2

    rows: list[tuple[str, int, int, int]] = []
    reports: list[str] = []
    replaced = contextlib.nullcontext() if arguments.original else classes_replaced()
    with replaced:
        for name in names:
            passed = skipped = failed = 0
            for test in tests_of(load(arguments.checkout, name)):
                label = f"{name}.{type(test).__name__}.{test.id().rpartition('.')[2]}"
                print(f"\r{label:.78}".ljust(80), end="", file=sys.stderr, flush=True)
                result = unittest.TestResult()
                with contextlib.redirect_stdout(io.StringIO()):
                    test.run(result)
                failures = [text for _, text in result.failures + result.errors]
                if failures:
                    failed += 1
                    reports.append(f"FAILED {label}\n{failures[0]}")
                elif result.skipped:
                    skipped += 1
                else:
                    passed += 1
            rows.append((name, passed, skipped, failed))
    print("\r".ljust(80), file=sys.stderr)
    print("\n".join(reports))
    totals = [sum(column) for column in zip(*(row[1:] for row in rows), strict=True)]
    print(f"{'file':18}{'passed':>8}{'skipped':>9}{'failed':>8}")
    for name, *counts in (*rows, ("all", *totals)):
        print("{:18}{:8}{:9}{:8}".format(name, *counts))
    return 1 if totals[-1] else 0


if __name__ == "__main__":
    sys.exit(main())
