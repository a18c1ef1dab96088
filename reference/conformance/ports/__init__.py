"""Ports: how the check drives the optimizers of each framework.

A port imports its framework; this module imports none, and a port only when a target
asks for it.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

from ...dialects import DIALECTS, LIBRARIES, Dialect
from ..port import Port
from .base import NamedPort
from .function import ARGUMENTS, FunctionPort

KINDS = (
    "a subclass of OptimizerV2 (tf_keras.optimizers.legacy.Optimizer), of "
    "keras.optimizers.Optimizer or of torch.optim.Optimizer, an optax function, or "
    "step(weights, grads, state) on NumPy arrays"
)


class NotInstalled(ValueError):
    """A library that a target needs is not there."""


def port_for(target: Any, dialect: Dialect | None = None) -> Port:
    """The port that can drive ``target``, chosen from what it is.

    Args:
        target: a class, a function, or a port, which is its own.
        dialect: the names and arguments in which the target is special.

    Raises:
        ValueError: no framework's port knows such a thing.
    """
    if hasattr(target, "start") and hasattr(target, "modes"):
        return target
    if isinstance(target, type):
        bases = {f"{cls.__module__}.{cls.__name__}" for cls in target.__mro__}
        if "torch.optim.optimizer.Optimizer" in bases:
            return _port("torch", "TorchPort", target, dialect)
        if any(name.endswith("optimizer_v2.OptimizerV2") for name in bases):
            from tf_impl.port import OptimizerV2Port

            return OptimizerV2Port(target, dialect)
        if bases & {
            "keras.src.optimizers.base_optimizer.BaseOptimizer",
            "tf_keras.src.optimizers.optimizer.Optimizer",
            "keras.src.optimizers.optimizer.Optimizer",
        }:
            return _port("keras", "KerasPort", target, dialect)
    elif callable(target):
        if tuple(inspect.signature(target).parameters)[:3] == ARGUMENTS:
            return FunctionPort(target, dialect)
        return _port("optax", "OptaxPort", target, dialect)
    raise ValueError(f"a target is {KINDS}, got {target!r}")


def port_of(line: Dialect) -> NamedPort:
    """The port for a line of the map.

    Raises:
        NotInstalled: the library is not.
    """
    port = port_for(load(line.target), line)
    assert isinstance(port, NamedPort)
    return port


def _port(module: str, name: str, target: Any, dialect: Dialect | None) -> Port:
    ports = importlib.import_module(f"{__name__}.{module}")
    return getattr(ports, name)(target, dialect)


def dialects_of(target: Any) -> list[Dialect]:
    """The lines of the map for a target, by its text or by what it is."""
    if isinstance(target, str):
        return [line for line in DIALECTS if line.target == target]
    name = getattr(target, "__name__", None)
    return [
        line
        for line in DIALECTS
        if line.name == name
        and any(
            getattr(sys.modules.get(module), line.name, None) is target
            for module in LIBRARIES[line.library]
        )
    ]


def load(target: Any) -> Any:
    """What ``"torch:Adam"``, ``"package.module:Class"`` or ``"file.py:Class"`` names.

    Raises:
        NotInstalled: the library is not.
        ValueError: the text has not this form, or nothing is there.
    """
    if not isinstance(target, str):
        return target
    place, colon, name = target.rpartition(":")
    if not colon or not name:
        raise ValueError(
            f"a target is package.module:Class or path/to/file.py:Class, or for one of "
            f"{', '.join(LIBRARIES)} as torch:Adam; got {target!r}"
        )
    if place.endswith(".py") and not Path(place).is_file():
        raise ValueError(f"there is no file {place}")
    modules = LIBRARIES.get(place, (place,))
    for module in modules:
        try:
            found = _imported(module)
        except ModuleNotFoundError as error:
            package = module.partition(".")[0]
            if place in LIBRARIES and error.name == package:
                raise NotInstalled(f"{package} is not installed") from error
            raise _not_importable(module, error) from error
        except Exception as error:
            raise _not_importable(module, error) from error
        if hasattr(found, name):
            return getattr(found, name)
    raise ValueError(f"{' and '.join(modules)} has no {name}")


def _not_importable(place: str, error: Exception) -> ValueError:
    return ValueError(f"cannot import {place}: {type(error).__name__}: {error}")


def _imported(place: str) -> Any:
    """The file, the module, or the attribute of a module that ``place`` names."""
    if place.endswith(".py"):
        path = Path(place).resolve()
        sys.path.append(str(path.parent))
        spec = importlib.util.spec_from_file_location(f"target_{path.stem}", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module
        spec.loader.exec_module(module)
        return module
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError:
        parent, dot, last = place.rpartition(".")
        if not dot:
            raise
        outer = _imported(parent)
        if not hasattr(outer, last):
            raise
        return getattr(outer, last)
