"""Every example in a docstring of ``reference`` runs and gives what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import numpy as np
import pytest

import reference

MODULES = [
    "reference",
    *(m.name for m in pkgutil.walk_packages(reference.__path__, "reference.")),
]


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs={"np": np, "reference": reference})
    assert result.failed == 0, f"{result.failed} examples of {name}; see the output"


@pytest.mark.parametrize("name", reference.OPTIMIZERS)
def test_every_optimizer_has_an_example(name):
    cls = reference.OPTIMIZERS[name]
    assert doctest.DocTestParser().get_examples(cls.__doc__)
