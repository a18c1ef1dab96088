"""An optimizer that is not complete is refused, with what is missing."""

from __future__ import annotations

from dataclasses import fields

import pytest

import reference

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")
import tf_impl  # noqa: E402
from tf_impl.port import OptimizerV2Port  # noqa: E402

NAMES = sorted({*reference.OPTIMIZERS, *tf_impl.OPTIMIZERS})
BOTH = [n for n in NAMES if n in reference.OPTIMIZERS and n in tf_impl.OPTIMIZERS]


def missing(name):
    """What the optimizer lacks, as sentences."""
    specified, built = reference.OPTIMIZERS.get(name), tf_impl.OPTIMIZERS.get(name)
    if specified is None:
        yield f"no rule: reference/optimizers has no {name}"
    if built is None:
        yield f"no OptimizerV2: tf_impl/optimizers has no {name}"
    if specified is None or built is None:
        return
    families = [cls.__module__.rpartition(".")[2] for cls in (specified, built)]
    if families[0] != families[1]:
        yield f"its files have two names: {families[0]}.py and {families[1]}.py"
    for attribute in ("home", "paper"):
        if not getattr(specified, attribute):
            yield f"reference.{name}.{attribute} is empty"
    if specified.rule is not reference.Optimizer.rule:
        yield f"reference.{name} defines `rule`; what it selects is called `selected`"
    own = {f.name for f in fields(specified)} - {
        f.name for f in fields(base(specified))
    }
    text = vars(specified).get("__doc__") or ""
    for words, what in (
        (["Args:"] if own else [""], "what its arguments mean"),
        ([">>>"], "an example that can be worked by hand"),
        (["sparse", " row"], "what a sparse gradient does"),
    ):
        if not any(word in text for word in words):
            yield f"the docstring of reference.{name} does not give {what}"
    accepted = OptimizerV2Port(built).accepts()
    for options in specified.examples:
        optimizer = specified(**options)
        for argument in {*optimizer.hyperparameters(), *options} - accepted:
            yield f"tf_impl.{name} does not take {argument}"
    own = {f.name for f in fields(specified)} - {
        f.name for f in fields(base(specified))
    }
    for argument in sorted(own - accepted):
        yield f"tf_impl.{name} does not take {argument}"


def base(cls):
    return cls.__mro__[1]


@pytest.mark.parametrize("name", NAMES)
def test_every_optimizer_is_complete(name):
    assert list(missing(name)) == []


@pytest.mark.parametrize("name", BOTH)
def test_slots_have_the_same_names(name):
    for options in reference.OPTIMIZERS[name].examples:
        w = tf.Variable(tf.ones((3, 2)))
        specified = reference.OPTIMIZERS[name](**options)
        built = tf_impl.OPTIMIZERS[name](**options)
        built._create_all_weights([w])
        assert set(built.get_slot_names()) == set(specified.init(w.numpy()).slots[0]), (
            options
        )


def test_what_is_missing_is_said(monkeypatch):
    monkeypatch.delitem(tf_impl.OPTIMIZERS, "Adam")
    assert list(missing("Adam")) == ["no OptimizerV2: tf_impl/optimizers has no Adam"]
    monkeypatch.undo()
    monkeypatch.setattr(reference.Adam, "paper", "")
    monkeypatch.setattr(reference.Adam, "__doc__", "Adam.")
    monkeypatch.setitem(tf_impl.OPTIMIZERS, "Adam", tf_impl.SGD)
    said = "; ".join(missing("Adam"))
    for words in (
        "two names: adam.py and sgd.py",
        "paper is empty",
        "arguments mean",
        "worked by hand",
        "sparse gradient does",
        "does not take beta_1",
        "does not take amsgrad",
    ):
        assert words in said
