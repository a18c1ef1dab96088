"""A broken line as a program that fails."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tf_impl.contract import words

GIVEN = {
    "keras": "from tf_impl.legacy_keras import keras",
    "base": "from tf_impl.legacy_keras import OptimizerV2 as base",
}
TWO_CPUS = "from tf_impl.port import two_logical_cpus\ntwo_logical_cpus()"


def program(
    body: Callable[..., Any],
    cls: type,
    arguments: Mapping[str, Any],
    assigned: Mapping[str, str],
    two_cpus: bool,
) -> str:
    """Return the source of a program that runs `body`.

    Args:
        body: a line of the contract.
        cls, arguments: the class that is examined, and how it is made.
        assigned: the other arguments of `body`, as expressions.
        two_cpus: whether it needs two logical CPUs.
    """
    wanted = list(inspect.signature(body).parameters)
    statements = _statements(body)
    settings = [f"{name} = {text}" for name, text in assigned.items() if name in wanted]
    if "make" in wanted:
        given = "".join(f"{name!r}: {_shown(x)}, " for name, x in arguments.items())
        make = f"make = lambda **changed: {cls.__name__}(**{{{given}**changed}})"
        settings.insert(0, make)
    if "cls" in wanted:
        settings.insert(0, f"cls = {cls.__name__}")
    used = {
        node.id
        for node in ast.walk(ast.parse("\n".join([*settings, statements])))
        if isinstance(node, ast.Name)
    }
    ours = sorted(used & set(vars(words)) - _modules(body).keys())
    return "\n".join(
        [
            *sorted({text for name, text in _modules(body).items() if name in used}),
            *([f"from {words.__name__} import {', '.join(ours)}"] if ours else []),
            *(text for name, text in GIVEN.items() if name in wanted),
            *_imported(cls),
            *(text for value in arguments.values() for text in _imported(type(value))),
            *([TWO_CPUS] if two_cpus else []),
            *settings,
            statements,
        ]
    )


def _statements(body: Callable[..., Any]) -> str:
    """Return the source of a function's body without the docstring."""
    source = textwrap.dedent(inspect.getsource(body))
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    first = function.body[1]
    decorated = getattr(first, "decorator_list", None) or [first]
    return textwrap.dedent("\n".join(source.splitlines()[decorated[0].lineno - 1 :]))


def _modules(body: Callable[..., Any]) -> dict[str, str]:
    """Return the imports at the top of the module of `body`, by name; not our own."""
    found: dict[str, str] = {}
    for statement in ast.parse(inspect.getsource(sys.modules[body.__module__])).body:
        if isinstance(statement, ast.Import) or (
            isinstance(statement, ast.ImportFrom)
            and not str(statement.module).startswith("tf_impl")
        ):
            text = ast.unparse(statement)
            found |= {alias.asname or alias.name: text for alias in statement.names}
    return found


def _imported(cls: type) -> Iterator[str]:
    if cls.__module__ == "builtins":
        return
    if cls.__module__.startswith("target_"):  # a file, given by its path
        path = Path(inspect.getfile(cls))
        yield "import sys"
        yield f"sys.path.append({str(path.parent)!r})"
        yield f"from {path.stem} import {cls.__name__}"
        return
    yield f"from {cls.__module__} import {cls.__name__}"


def _shown(value: Any) -> str:
    if hasattr(value, "get_config"):
        return f"{type(value).__name__}.from_config({value.get_config()!r})"
    return repr(value)
