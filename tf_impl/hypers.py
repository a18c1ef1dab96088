"""Hyperparameters as real numbers, and how they are kept in checkpoints."""

from __future__ import annotations

import numbers
from typing import Any

import tensorflow as tf

from tf_impl.legacy_keras import LearningRateSchedule, OptimizerV2, backend, keras
from tf_impl.tensors import Tensor, cast, compute_dtype

_VARIABLE_VALUE = "VARIABLE_VALUE"  # a variable's key in a checkpoint


def epsilon_or_default(epsilon: float | None) -> float:
    """Return epsilon, or Keras' default for `None`. Zero, unlike in Keras, is zero."""
    return backend.epsilon() if epsilon is None else float(epsilon)


def with_schedule(config: dict[str, Any], name: str) -> dict[str, Any]:
    """Return `config` with a schedule where it describes one called `name`."""
    if not isinstance(config.get(name), dict):
        return config
    schedule = keras.optimizers.schedules.deserialize(config[name])
    return {**config, name: schedule}


class RealHypers(OptimizerV2):
    """OptimizerV2 whose hyperparameters are real numbers: kept in float64.

    Numbers live in variables, so that a traced function sees a change; callables,
    tensors and schedules are asked when a step needs their value, as in Keras.
    """

    _hypers_created: bool

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, **kwargs)
        self._maybe_initialize_trackable()
        self._hyper_variables: dict[str, tf.Variable] = {}

    def _set_hyper(self, name: str, value: Any) -> None:
        if isinstance(value, numbers.Real):
            value = float(value)
        if not self._hypers_created:
            super()._set_hyper(name, value)
            return
        variable = self._hyper_variables[name]
        is_number = isinstance(value, float)
        if self._hyper[name] is variable:
            is_number = is_number or tf.is_tensor(value)
        if is_number:
            # Functions that were traced before go on reading this variable.
            if isinstance(value, float):
                # Also in a v1 graph, where `assign` would only make an operation.
                backend.set_value(variable, value)
            else:
                variable.assign(cast(value, tf.float64))
            self._use_hyper_variable(name)
        else:
            self._hyper[name] = (
                value  # Keras would assign it to a variable that is there
            )
            super()._set_hyper(name, value)

    def _create_hypers(self) -> None:
        if self._hypers_created:
            return
        with self._distribution_strategy_scope():
            for name, value in sorted(self._hyper.items()):
                is_number = isinstance(value, float)
                self._hyper_variables[name] = tf.Variable(
                    self._deferred_hyper(name, value) if is_number else 0.0,
                    trainable=False,
                    name=name,
                    dtype=tf.float64,
                    aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
                )
                backend.track_variable(self._hyper_variables[name])
                if is_number:
                    self._use_hyper_variable(name)
        self._hypers_created = True

    def _use_hyper_variable(self, name: str) -> None:
        variable = self._hyper_variables[name]
        if self._hyper[name] is not variable:
            self._hyper[name] = variable
            restored = self._deferred_dependencies.get(name, ())
            stored = _StoredHyper(
                variable,
                max((position.restore_uid for position in restored), default=-1),
            )
            self._track_trackable(stored, name, overwrite=True)

    def _deferred_hyper(self, name: str, value: float) -> Any:
        """Return what a checkpoint that was read earlier makes of `value`."""
        if tf.executing_eagerly():
            positions = self._deferred_dependencies.get(name, ())
            for position in sorted(positions, key=lambda each: each.restore_uid):
                stored = position.value_tensors()[_VARIABLE_VALUE]
                value = _restored_hyper(stored, tf.constant(value, tf.float64)).numpy()
        return value

    def _trackable_children(
        self, save_type: str = "checkpoint", **kwargs: Any
    ) -> dict[str, Any]:
        children = super()._trackable_children(save_type, **kwargs)
        if save_type == "savedmodel":  # it must own the variables that functions read
            for name, child in children.items():
                if isinstance(child, _StoredHyper):
                    children[name] = child.variable
        return children

    def _real_hyper(self, name: str) -> Tensor:
        """Return the present value of a hyperparameter as a float64 scalar."""
        value = self._get_hyper(name)
        if isinstance(value, LearningRateSchedule):
            value = value(tf.cast(self.iterations, tf.float64))
        return cast(value, tf.float64)

    def _decayed_lr(self, var_dtype: tf.DType) -> Tensor:
        """Return the learning rate of this step, as a tensor of dtype `var_dtype`."""
        return tf.cast(self._real_learning_rate(compute_dtype(var_dtype)), var_dtype)

    def _real_learning_rate(self, step_dtype: tf.DType) -> Tensor:
        """Return the learning rate of this step as a float64 scalar.

        Args:
            step_dtype: dtype in which a schedule is told the iteration.
        """
        value = self._get_hyper("learning_rate")
        if isinstance(value, LearningRateSchedule):
            value = value(tf.cast(self.iterations, step_dtype))
        value = cast(value, tf.float64)
        if self._initial_decay > 0.0:
            iterations = tf.cast(self.iterations, tf.float64)
            value = value / (1.0 + self._initial_decay * iterations)
        return value

    def _hyper_config(self, *names: str) -> dict[str, Any]:
        return {name: self._serialize_hyperparameter(name) for name in names}

    def _serialize_hyperparameter(self, hyperparameter_name: str) -> Any:
        value = super()._serialize_hyperparameter(hyperparameter_name)
        if isinstance(value, tf.Variable | tf.Tensor):
            value = backend.get_value(value)
        return value if isinstance(value, dict) else float(value)


class _StoredHyper(tf.__internal__.tracking.Trackable):
    """How a float64 hyperparameter is kept in checkpoints: in float32, as Keras does.

    Reading one, a number that is what the present value rounds to leaves that value;
    any other float32 number stands for the shortest decimal that rounds to it, as 0.1.
    """

    def __init__(self, variable: tf.Variable, update_uid: int) -> None:
        self._maybe_initialize_trackable()
        self._update_uid = update_uid  # of the last checkpoint that is in the variable
        self.variable = variable

    def _serialize_to_tensors(self) -> dict[str, Tensor]:
        return {_VARIABLE_VALUE: tf.cast(self.variable.read_value(), tf.float32)}

    def _restore_from_tensors(self, restored_tensors: dict[str, Tensor]) -> Any:
        stored = restored_tensors[_VARIABLE_VALUE]
        return self.variable.assign(_restored_hyper(stored, self.variable.read_value()))


def _restored_hyper(stored: Tensor, present: Tensor) -> Tensor:
    """Return the float64 value for a stored number of any dtype, given the present."""
    if stored.dtype != tf.float32:
        return tf.cast(stored, tf.float64)
    if tf.executing_eagerly():
        value = tf.constant(float(str(stored.numpy())), tf.float64)
    else:
        value = tf.cast(stored, tf.float64)
    return tf.where(tf.cast(present, tf.float32) == stored, present, value)
