"""Adafactor: its memory."""

from __future__ import annotations

import pytest

import tf_impl

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


def test_slots_take_the_memory_that_the_paper_promises():
    """Keras 3 keeps a third slot, of the variable's own shape."""
    adafactor = tf_impl.Adafactor()
    shapes = [(100, 50), (7,), (), (3, 2, 5, 4)]
    adafactor._create_all_weights([tf.Variable(tf.ones(shape)) for shape in shapes])
    slots = [tuple(slot.shape) for slot in adafactor.variables()[1:]]
    due = [(100,), (50,), (7,), (), (3, 2, 5), (3, 2, 4)]
    assert sorted(slots) == sorted(due)
