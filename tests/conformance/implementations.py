"""Small optimizers to judge: one that is right, and the same with one fault each.

Written by hand in composed TensorFlow operations, with every coefficient formed in
float64; none calls ``reference`` or ``tf_impl``'s rules.
"""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from reference.conformance import Report, check
from tf_impl.legacy_keras import OptimizerV2, keras


class RightAdam(OptimizerV2):
    """Adam on every row, as legacy Keras."""

    coefficient_dtype = tf.float64
    slots = ("m", "v")

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: float = 0.9,
        beta_2: float = 0.999,
        epsilon: float = 1e-7,
        name: str = "RightAdam",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", learning_rate)
        self.beta_1, self.beta_2, self.epsilon = beta_1, beta_2, epsilon

    def _create_slots(self, var_list):
        for slot in self.slots:
            for var in var_list:
                self.add_slot(var, slot)

    def rate(self):
        rate = self._get_hyper("learning_rate")
        if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
            rate = rate(self.iterations)
        return rate

    def number(self):
        return tf.cast(self.iterations + 1, self.coefficient_dtype)

    def scalars(self, dtype):
        def real(x):
            return tf.cast(tf.convert_to_tensor(x, tf.float64), self.coefficient_dtype)

        beta_1, beta_2, t = real(self.beta_1), real(self.beta_2), self.number()
        rate = tf.cast(self.rate(), self.coefficient_dtype)
        step_size = rate * tf.sqrt(1 - beta_2**t) / (1 - beta_1**t)
        scalars = (
            step_size,
            beta_1,
            1 - beta_1,
            beta_2,
            1 - beta_2,
            real(self.epsilon),
        )
        return [tf.cast(x, dtype) for x in scalars]

    def moments(self, g, m, v, scalars):
        _, beta_1, rest_1, beta_2, rest_2, _ = scalars
        return beta_1 * m + rest_1 * g, beta_2 * v + rest_2 * g * g

    def denominator(self, v, epsilon):
        return tf.sqrt(v) + epsilon

    def step(self, step_size, m, denominator):
        return step_size * m / denominator

    def _resource_apply_dense(self, grad, var, apply_state=None):
        scalars = self.scalars(var.dtype)
        m, v = (self.get_slot(var, slot) for slot in self.slots)
        new_m, new_v = self.moments(grad, m, v, scalars)
        step = self.step(scalars[0], new_m, self.denominator(new_v, scalars[5]))
        return tf.group(
            m.assign(new_m), v.assign(new_v), var.assign_sub(step, use_locking=True)
        )

    def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
        rows = tf.cast(indices, tf.int64)[:, None]
        dense = tf.tensor_scatter_nd_add(tf.zeros_like(var), rows, grad)
        return self._resource_apply_dense(dense, var, apply_state)

    def get_config(self):
        return {
            **super().get_config(),
            "learning_rate": self._serialize_hyperparameter("learning_rate"),
            "beta_1": self.beta_1,
            "beta_2": self.beta_2,
            "epsilon": self.epsilon,
        }


class SinglePrecisionCoefficients(RightAdam):
    """``1 - beta`` and ``beta**t`` in float32: another convention, not a fault."""

    coefficient_dtype = tf.float32


class OtherNames(RightAdam):
    """Right, with slots under names that the rule does not know, and no signature."""

    slots = ("first", "second")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


class EpsilonUnderRoot(RightAdam):
    def denominator(self, v, epsilon):
        return tf.sqrt(v + epsilon)


class NoEpsilon(RightAdam):
    def denominator(self, v, epsilon):
        return tf.sqrt(v)


class StepsFromZero(RightAdam):
    def number(self):
        return tf.cast(self.iterations + 2, self.coefficient_dtype)


class StepInHalfPrecision(RightAdam):
    def number(self):
        return tf.cast(tf.cast(self.iterations + 1, tf.bfloat16), tf.float64)


class StepsPerWeight(RightAdam):
    """Counts the gradients that a weight had."""

    def _resource_apply_dense(self, grad, var, apply_state=None):
        seen = self.__dict__.setdefault("seen", {})
        seen[var.ref()] = self.count = seen.get(var.ref(), 0) + 1
        return super()._resource_apply_dense(grad, var, apply_state)

    def number(self):
        return tf.cast(self.count, tf.float64)


class NoBiasCorrection(RightAdam):
    def scalars(self, dtype):
        scalars = super().scalars(dtype)
        return [tf.cast(self.rate(), dtype), *scalars[1:]]


class SwappedBetas(RightAdam):
    def moments(self, g, m, v, scalars):
        a, b, c, d, e, f = scalars
        return super().moments(g, m, v, (a, d, e, b, c, f))


class SignOfSecondMomentLost(RightAdam):
    def moments(self, g, m, v, scalars):
        new_m, new_v = super().moments(g, m, v, scalars)
        return new_m, tf.maximum(new_v, v)


class OldMomentInStep(RightAdam):
    def _resource_apply_dense(self, grad, var, apply_state=None):
        scalars = self.scalars(var.dtype)
        m, v = (self.get_slot(var, slot) for slot in self.slots)
        old_m = tf.identity(m)
        new_m, new_v = self.moments(grad, m, v, scalars)
        step = self.step(scalars[0], old_m, self.denominator(new_v, scalars[5]))
        return tf.group(m.assign(new_m), v.assign(new_v), var.assign_sub(step))


class MomentNotKept(RightAdam):
    def _resource_apply_dense(self, grad, var, apply_state=None):
        scalars = self.scalars(var.dtype)
        m, v = (self.get_slot(var, slot) for slot in self.slots)
        new_m, new_v = self.moments(grad, m, v, scalars)
        step = self.step(scalars[0], new_m, self.denominator(new_v, scalars[5]))
        return tf.group(m.assign(new_m), var.assign_sub(step))


class LearningRateFrozen(RightAdam):
    def rate(self):
        if not hasattr(self, "frozen"):
            self.frozen = float(tf.convert_to_tensor(super().rate()))
        return tf.constant(self.frozen, tf.float64)


class ScheduleAhead(RightAdam):
    def rate(self):
        rate = self._get_hyper("learning_rate")
        if isinstance(rate, keras.optimizers.schedules.LearningRateSchedule):
            return rate(self.iterations + 1)
        return rate


class LostOnResume(RightAdam):
    def get_config(self):
        config = super().get_config()
        return {**config, "beta_1": 0.5}


class LazyRows(RightAdam):
    def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
        scalars = self.scalars(var.dtype)
        slots = [self.get_slot(var, name) for name in ("m", "v")]
        rows = [tf.gather(slot, indices) for slot in slots]
        new_m, new_v = self.moments(grad, *rows, scalars)
        step = self.step(scalars[0], new_m, self.denominator(new_v, scalars[5]))
        at = tf.cast(indices, tf.int64)
        return tf.group(
            slots[0].scatter_update(tf.IndexedSlices(new_m, at)),
            slots[1].scatter_update(tf.IndexedSlices(new_v, at)),
            var.scatter_sub(tf.IndexedSlices(step, at)),
        )


class LastDuplicateKept(RightAdam):
    def _resource_apply_sparse_duplicate_indices(self, grad, var, indices, **kwargs):
        rows = tf.cast(indices, tf.int64)[:, None]
        dense = tf.tensor_scatter_nd_update(tf.zeros_like(var), rows, grad)
        return self._resource_apply_dense(dense, var)


class DuplicatesSquaredOneByOne(RightAdam):
    def _resource_apply_sparse_duplicate_indices(self, grad, var, indices, **kwargs):
        rows = tf.cast(indices, tf.int64)[:, None]
        zeros = tf.zeros_like(var)
        self.squares = tf.tensor_scatter_nd_add(zeros, rows, grad * grad)
        dense = tf.tensor_scatter_nd_add(zeros, rows, grad)
        result = self._resource_apply_dense(dense, var)
        self.squares = None
        return result

    def moments(self, g, m, v, scalars):
        new_m, new_v = super().moments(g, m, v, scalars)
        if getattr(self, "squares", None) is not None:
            new_v = scalars[3] * v + scalars[4] * self.squares
        return new_m, new_v


class RowsShiftedByOne(RightAdam):
    def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
        indices = (indices + 1) % var.shape[0]
        return super()._resource_apply_sparse(grad, var, indices, apply_state)


class EmptyGradientSkipped(RightAdam):
    def _resource_apply_sparse(self, grad, var, indices, apply_state=None):
        if indices.shape[0] == 0:
            return tf.no_op()
        return super()._resource_apply_sparse(grad, var, indices, apply_state)


FAULTS = [
    cls
    for cls in RightAdam.__subclasses__()
    if cls not in (SinglePrecisionCoefficients, OtherNames)
]

EAGER = {"modes": ["eager"], "dtypes": ["float32"], "strategies": ["none"]}


@functools.cache
def judged(name: str) -> Report:
    """The report on one of these classes, eagerly in float32."""
    return check(globals()[name], "Adam", **EAGER)
