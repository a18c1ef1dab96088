"""The wrappers, a file each; a file that is put here is found by itself."""

from __future__ import annotations

import importlib
import pkgutil

from tf_impl.legacy_keras import OptimizerV2


def found() -> dict[str, type]:
    """Return every wrapper that a module of this package defines, by name."""
    return {
        name: cls
        for module in pkgutil.iter_modules(__path__, f"{__name__}.")
        for name, cls in vars(importlib.import_module(module.name)).items()
        if isinstance(cls, type)
        and issubclass(cls, OptimizerV2)
        and cls.__module__ == module.name
    }
