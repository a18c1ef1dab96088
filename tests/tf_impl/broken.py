"""Optimizers that break the contract of OptimizerV2, each in one way.

Every class is otherwise that of `tf_impl`, which holds all lines.
"""

from __future__ import annotations

import os

import numpy as np
import tensorflow as tf

import tf_impl
from tf_impl.legacy_keras import LearningRateSchedule
from tf_impl.tensors import compiling


class SGD(tf_impl.SGD):
    """With momentum, so that there is a slot."""

    def __init__(self, learning_rate=0.01, momentum=0.5, name="SGD", **kwargs):
        super().__init__(learning_rate, momentum, name=name, **kwargs)


class NoUnderscore(SGD):
    def resource_apply_dense(self, grad, var, apply_state):
        return var.assign_sub(grad)


class NeedsAnotherName(SGD):
    def _resource_apply_dense(self, grad, var, state):
        return super()._resource_apply_dense(grad, var, state)


class AnotherName(SGD):
    def _resource_apply_dense(self, grad, var, state=None):
        return super()._resource_apply_dense(grad, var, state)


class AnotherArgument(SGD):
    """`_resource_apply_sparse` asks for `apply_state`; this one cannot take it."""

    def _resource_apply_sparse_duplicate_indices(self, grad, var, indices):
        return super()._resource_apply_sparse_duplicate_indices(grad, var, indices)


class NoAggregation(SGD):
    """`_HAS_AGGREGATE_GRAD` says that there is one more argument."""

    def apply_gradients(self, grads_and_vars, name=None):
        return super().apply_gradients(grads_and_vars, name)


class NotCounted(SGD):
    def _finish_step(self, updates, apply_state):
        return tf.group(*updates)


class NoSparseRule(SGD):
    def _resource_apply_sparse_duplicate_indices(self, grad, var, indices, **kwargs):
        raise NotImplementedError


class SparseFails(SGD):
    def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
        raise KeyError(var.name)


class Minimizes(SGD):
    def _compute_gradients(self, *args, **kwargs):
        pairs = super()._compute_gradients(*args, **kwargs)
        return [(grad / 2, var) for grad, var in pairs]


class Matrices(SGD):
    def _resource_apply_dense(self, grad, var, apply_state=None):
        grad = tf.linalg.matrix_transpose(tf.linalg.matrix_transpose(grad))
        return super()._resource_apply_dense(grad, var, apply_state)


class Stuck(SGD):
    """0.999 is 1 in bfloat16, and the step is nothing."""

    def _resource_apply_dense(self, grad, var, apply_state=None):
        grad = grad * (1000 * (1 - tf.cast(0.999, grad.dtype)))
        return super()._resource_apply_dense(grad, var, apply_state)


class Float32Slots(SGD):
    """The slot that counts is float32, whatever the weight is."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.low = {}

    def get_slot(self, var, slot_name):
        slot = super().get_slot(var, slot_name)
        if slot.dtype != tf.float64:
            return slot
        if var.ref() not in self.low:
            self.low[var.ref()] = tf.Variable(tf.zeros(var.shape))
        return self.low[var.ref()]

    def _resource_apply_dense(self, grad, var, apply_state=None):
        if var.dtype != tf.float64:
            return super()._resource_apply_dense(grad, var, apply_state)
        slot, rate = self.get_slot(var, "momentum"), float(self.learning_rate)
        slot.assign(float(self.momentum) * slot - rate * tf.cast(grad, tf.float32))
        return var.assign_add(tf.cast(slot, tf.float64))


class OneDtype(SGD):
    """Coefficients in the dtype of the first variable serve all."""

    def _prepare(self, var_list):
        self.first = var_list[0]
        return super()._prepare(var_list)

    def _coefficients_for(self, var, apply_state):
        return super()._coefficients_for(self.first, apply_state)


class NoneIsZero(SGD):
    def apply_gradients(self, grads_and_vars, *args, **kwargs):
        filled = [(tf.zeros_like(v) if g is None else g, v) for g, v in grads_and_vars]
        return super().apply_gradients(filled, *args, **kwargs)


class SlotsOnce(SGD):
    """Slots for the first variables alone."""

    def _create_slots(self, var_list):
        if not self.get_slot_names():
            super()._create_slots(var_list)


class VariablesEachStep(SGD):
    def _prepare(self, var_list):
        if tf.executing_eagerly():
            self.more = tf.Variable(0.0)
        return super()._prepare(var_list)


class SharedSlot(SGD):
    def get_slot(self, var, slot_name):
        self.first = getattr(self, "first", {})
        first = self.first.setdefault((var.shape, var.dtype, var.device), var)
        return super().get_slot(first, slot_name)


class FirstDuplicate(SGD):
    def _resource_apply_sparse_duplicate_indices(self, grad, var, indices, **kwargs):
        order = tf.argsort(indices, stable=True)
        indices, grad = tf.gather(indices, order), tf.gather(grad, order)
        new = tf.concat([[True], indices[1:] != indices[:-1]], 0)[: tf.size(indices)]
        grad = tf.where(new[:, None], grad, tf.zeros_like(grad))
        return super()._resource_apply_sparse_duplicate_indices(
            grad, var, indices, **kwargs
        )


class MeanOfRows(SGD):
    def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
        var.assign_sub(tf.zeros_like(var) * tf.reduce_mean(grad))
        return super()._resource_apply_sparse(grad, var, indices, apply_state)


class LaterRefusal(SGD):
    """Indices are looked at after the step is counted."""

    def _transform_gradients(self, grads_and_vars):
        try:
            return super()._transform_gradients(grads_and_vars)
        except ValueError:
            self.iterations.assign_add(1)
            raise


class FrozenNumbers(SGD):
    """Numbers stay Python's: a function reads them while it is traced."""

    def _create_hypers(self):
        pass


class KeptMomentum(SGD):
    """What was given at first is used for ever."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.kept = self.get_config()["momentum"]

    def _coefficients(self, t, learning_rate):
        kept = tf.constant(self.kept, tf.float64)
        return {**super()._coefficients(t, learning_rate), "momentum": kept}


class AskedOnce(SGD):
    def _set_hyper(self, name, value):
        schedule = isinstance(value, LearningRateSchedule)
        super()._set_hyper(
            name, float(value()) if callable(value) and not schedule else value
        )


class EarlySchedule(SGD):
    def _real_learning_rate(self, step_dtype):
        self.iterations.assign_add(1)
        rate = super()._real_learning_rate(step_dtype)
        self.iterations.assign_sub(1)
        return rate


class ForgetsEpsilon(tf_impl.Adam):
    def get_config(self):
        config = super().get_config()
        del config["epsilon"]
        return config


class ForgetsMomentum(SGD):
    def get_config(self):
        config = super().get_config()
        del config["momentum"]
        return config


class NotJson(SGD):
    def get_config(self):
        return {**super().get_config(), "momentum": np.float32(self.momentum)}


class ScheduleIsDict(SGD):
    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


class Secret(SGD):
    """State that neither the weights list nor a checkpoint knows."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.secret = tf.Variable(1.0, trainable=False)

    def _coefficients(self, t, learning_rate):
        secret = tf.cast(self.secret, learning_rate.dtype)
        return super()._coefficients(t, learning_rate * secret)

    def _prepare(self, var_list):
        self.secret.assign(self.secret / 2)
        return super()._prepare(var_list)


class PythonCounter(SGD):
    steps = 0

    def _prepare(self, var_list):
        self.steps += 1
        return super()._prepare(var_list)

    def _coefficients(self, t, learning_rate):
        return super()._coefficients(t, learning_rate / self.steps)


class TracesEachStep(SGD):
    def _resource_apply_dense(self, grad, var, apply_state=None):
        grad = tf.function(lambda x: x * 1)(grad)
        return super()._resource_apply_dense(grad, var, apply_state)


class OtherwiseCompiled(SGD):
    def _resource_apply_dense(self, grad, var, apply_state=None):
        return super()._resource_apply_dense(
            grad / 2 if compiling() else grad, var, apply_state
        )


class OtherwiseCompiledRows(SGD):
    def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
        return super()._resource_apply_sparse(
            grad / 2 if compiling() else grad, var, indices, apply_state
        )


class PythonCode(SGD):
    """XLA cannot compile Python."""

    def _resource_apply_dense(self, grad, var, apply_state=None):
        grad = tf.ensure_shape(
            tf.numpy_function(lambda x: x, [grad], grad.dtype), grad.shape
        )
        return super()._resource_apply_dense(grad, var, apply_state)


class Fatal(SGD):
    """Ends the process while it is compiled."""

    def _resource_apply_dense(self, grad, var, apply_state=None):
        if compiling():
            os.abort()
        return super()._resource_apply_dense(grad, var, apply_state)


class ReplicasPart(SGD):
    def _resource_apply_dense(self, grad, var, apply_state=None):
        return super()._resource_apply_dense(
            grad / 2 if "CPU:1" in var.device else grad, var, apply_state
        )


class FirstReplica(SGD):
    def _aggregate_gradients(self, grads_and_vars):
        return [(grad, var) for grad, var in grads_and_vars]


class DecaysEarly(SGD):
    """Weights decay in a hook that is called for a skipped step too."""

    def _transform_unaggregated_gradients(self, grads_and_vars):
        for _, var in grads_and_vars:
            var.assign(var / 2)
        return super()._transform_unaggregated_gradients(grads_and_vars)


class NoConstraint(SGD):
    def _distributed_apply(self, distribution, grads_and_vars, apply_state, name):
        for _, var in grads_and_vars:
            var._constraint = None
        return super()._distributed_apply(
            distribution, grads_and_vars, apply_state, name
        )


class OwnCount(tf_impl.SGD):
    """Counts the steps of each variable in a slot."""

    def _create_slots(self, var_list):
        super()._create_slots(var_list)
        for var in var_list:
            self.add_slot(var, "steps")

    def _resource_apply_dense(self, grad, var, apply_state=None):
        steps = self.get_slot(var, "steps")
        steps.assign_add(tf.ones(var.shape, var.dtype))
        return super()._resource_apply_dense(grad / steps, var, apply_state)
