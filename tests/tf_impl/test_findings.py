"""Surprises in TensorFlow, pinned so that their mending is noticed."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

EMPTY_ALL_REDUCE = """
import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

@tf.function
def total(count):
    def replica(count):
        gradient = tf.IndexedSlices(tf.ones([count, 2]), tf.range(count))
        context = tf.distribute.get_replica_context()
        return context.all_reduce(tf.distribute.ReduceOp.SUM, gradient).values
    return strategy.run(replica, args=(count,))

total(tf.constant(3))
print("three rows: done", flush=True)
total(tf.constant(0))
print("no rows: done", flush=True)
"""


def test_an_all_reduce_of_no_rows_ends_the_process():
    """The reason why mirrored runs of the check have no empty sparse gradients."""
    run = subprocess.run(
        [sys.executable, "-c", EMPTY_ALL_REDUCE],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.stdout == "three rows: done\n"
    assert run.returncode == -signal.SIGSEGV


def test_compiled_running_sums_of_what_was_found_are_empty():
    """XLA forgets how long a tensor is whose size depends on numbers."""
    tf = pytest.importorskip("tensorflow")

    def running_sums(x):
        return tf.cumsum(tf.where(x > 0)[:, 0])

    x = tf.constant([0.0, 1.0, 1.0, 1.0])
    assert running_sums(x).numpy().tolist() == [1, 3, 6]
    compiled = tf.function(running_sums, jit_compile=True)
    assert compiled(x).numpy().tolist() == []


def test_compiled_duplicates_are_added_one_by_one_to_what_their_sum_is_added_to():
    """XLA sees no sum of its own in `x + sum`: each of six ones is lost beside 1e8.

    Seen in TensorFlow 2.21, not yet in 2.15.
    """
    tf = pytest.importorskip("tensorflow")
    x = tf.constant([1e8])

    def add(ones):
        rows = tf.zeros_like(ones, tf.int32)
        return x + tf.math.unsorted_segment_sum(ones, rows, 1)

    # 1e8 + 6, between the float32 numbers 1e8 and 1e8 + 8.
    assert add(tf.ones([6])).numpy().tolist() == [1e8 + 8]
    compiled = tf.function(add, jit_compile=True)
    expected = [1e8 + 8] if tf.__version__.startswith("2.15.") else [1e8]
    assert compiled(tf.ones([6])).numpy().tolist() == expected


SORTED_IN_A_CONDITION = """
import tensorflow as tf

@tf.function(jit_compile=True)
def changes(x, wanted):
    def found():
        rows = tf.sort(tf.where(x > 0)[:, 0])
        return tf.reduce_sum(tf.cumsum(tf.cast(rows[1:] != rows[:-1], tf.int32)))
    return tf.cond(wanted, found, lambda: 0)

print("begun", flush=True)
changes(tf.constant([1.0, 0.0, 2.0]), tf.constant(True))
print("done", flush=True)
"""


def test_what_was_found_in_a_compiled_condition_ends_the_process():
    """The reason why accumulated sparse gradients have all rows under XLA.

    Seen in TensorFlow 2.21; 2.15 still compiled it rightly.
    """
    tf = pytest.importorskip("tensorflow")
    run = subprocess.run(
        [sys.executable, "-c", SORTED_IN_A_CONDITION],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if tf.__version__.startswith("2.15."):
        assert (run.stdout, run.returncode) == ("begun\ndone\n", 0)
    else:
        assert (run.stdout, run.returncode) == ("begun\n", -signal.SIGABRT)


def test_a_function_multiplies_by_the_reciprocal_of_a_constant():
    """The reason why no rule here divides by a hyperparameter that is a constant."""
    tf = pytest.importorskip("tensorflow")
    x, third = tf.constant([5.0]), tf.constant(1.0) / 3.0
    divided = tf.function(lambda x: x / 3.0)
    assert divided(x) == x * third
    assert divided(x) != x / 3.0
