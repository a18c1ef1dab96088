"""Is a class a good `OptimizerV2`? An examination that needs no rule.

from tf_impl.contract import contract

print(contract(MyAdam))
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from tf_impl.contract import hooks, hypers, persistence, training, updates
from tf_impl.contract.examine import DEFINITIONS, Subject
from tf_impl.contract.report import BROKEN, HELD, NOT_APPLICABLE, Contract, Line
from tf_impl.legacy_keras import OptimizerV2

__all__ = [
    "BROKEN",
    "HELD",
    "LINES",
    "NOT_APPLICABLE",
    "Contract",
    "Line",
    "Subject",
    "contract",
]

# Whether steps can be taken at all is among the updates, and asked before all else.
LINES = [
    definition
    for module in (hooks, updates, hypers, persistence, training)
    for definition in DEFINITIONS
    if definition.body.__module__ == module.__name__
]


def contract(
    target: Any,
    arguments: Mapping[str, Any] | None = None,
    progress: Callable[[int, int, str], None] | None = None,
    fatal: Mapping[str, str] | None = None,
) -> Contract:
    """Examine a subclass of `OptimizerV2`, on the CPU, in a few seconds.

    Args:
        target: the class, or `"package.module:Class"`, `"path/to/file.py:Class"`.
        arguments: of its constructor; `learning_rate` is 0.5 if it takes one and none
            is given.
        progress: called with the lines done, all lines, and the next one.
        fatal: what is known of lines that end the process, which are not run.

    Returns:
        The verdict on each line. Call `tf_impl.port.two_logical_cpus` before TensorFlow
        starts, or the lines on replicas do not apply.

    Raises:
        TypeError: the target is not a subclass.
        ValueError: it cannot be found, or does not take the arguments.
        RuntimeError: Python runs without assertions (`-O`).
    """
    from reference.conformance.check import load

    if not __debug__:
        raise RuntimeError("the contract is made of assertions, which -O leaves out")
    subject = Subject(load(target), arguments or {})
    lines: list[Line] = []
    for number, definition in enumerate(LINES):
        if progress:
            progress(number, len(LINES), definition.name)
        end = (fatal or {}).get(definition.name, "")
        lines.append(definition.examine(subject, end))
        subject.learn(lines[-1])
    if progress:
        progress(len(LINES), len(LINES), "")
    package = sys.modules[OptimizerV2.__module__.partition(".")[0]]
    versions = {
        "python": platform.python_version(),
        "tensorflow": tf.__version__,
        "keras": package.__version__,
    }
    return Contract(subject.cls.__name__, lines, versions)
