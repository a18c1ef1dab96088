"""The contract of OptimizerV2, examined in a process of its own.

A class, or what XLA makes of it, can end the process that runs it, which is then an
answer too. This module has no framework; `tf_impl.contract` examines.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any


@dataclass(frozen=True)
class Examined:
    """What was found: whether all lines are held, as text, and as JSON."""

    held: bool
    text: str
    json: str


def examine(
    target: str,
    arguments: Mapping[str, Any],
    progress: Callable[[int, int, str], None] = lambda *_: None,
) -> Examined:
    """Examine a class. Where that ends the process, begin again without that line.

    Args:
        target: `"package.module:Class"` or `"path/to/file.py:Class"`.
        arguments: of its constructor.
        progress: called with the lines done, all lines, and the next one.

    Raises:
        ValueError: there is no such class, or it does not take the arguments.
    """
    fatal: dict[str, str] = {}
    while True:
        here, there = multiprocessing.Pipe(duplex=False)
        spawn = multiprocessing.get_context("spawn")
        process = spawn.Process(target=_examine, args=(there, target, arguments, fatal))
        process.start()
        there.close()
        line = ""
        try:
            while isinstance(message := here.recv(), tuple):
                progress(*message)
                line = message[2]
        except EOFError:
            process.join()
            if not line:
                raise ValueError(
                    f"{target} ended the process: {_end(process)}"
                ) from None
            fatal[line] = f"the process ended: {_end(process)}"
            continue
        process.join()
        if isinstance(message, Examined):
            return message
        raise ValueError(message)


def _end(process: Any) -> str:
    code = process.exitcode
    return signal.Signals(-code).name if code < 0 else f"exit status {code}"


def _examine(
    there: Connection,
    target: str,
    arguments: Mapping[str, Any],
    fatal: Mapping[str, str],
) -> None:
    try:
        from tf_impl.port import two_logical_cpus

        two_logical_cpus()
        from tf_impl.contract import contract

        found = contract(target, arguments, lambda *now: there.send(now), fatal)
        there.send(Examined(found.held, str(found), found.to_json()))
    except ImportError as error:
        there.send(
            f"the contract needs TensorFlow and tf-keras ({error}); "
            "install optimizer-oracle[tf]"
        )
    except (TypeError, ValueError) as error:
        there.send(str(error))
