"""What every optimizer here shares: the one place that speaks OptimizerV2's protocol.

A subclass says what is its own:

* the hyperparameters and slots (its constructor),
* the scalars of one step, as real numbers in float64 (`_coefficients`),
* the rule: a pure function `rule(w, g, *slots, **coefficients) -> (w, *slots)` that
  acts element by element.

Here those are driven through the hooks that `OptimizerV2.apply_gradients` calls:
`_prepare`, `_prepare_local`, `_transform_gradients`, `_distributed_apply`,
`_resource_apply_dense`, `_resource_apply_sparse_duplicate_indices` and
`_resource_apply_sparse`.
"""

from __future__ import annotations

import functools
import importlib
import numbers
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import control_flow_util


def _find_keras() -> Any:
    """Return the Keras whose `optimizers.legacy` this TensorFlow trains with.

    TensorFlow 2.11 to 2.15 has it as `tf.keras`; later ones have Keras 3 there, which
    lost `OptimizerV2`, and the package tf-keras goes on with it.
    """
    major, minor = (int(part) for part in tf.__version__.split(".")[:2])
    if (major, minor) < (2, 16):
        return tf.keras
    try:
        return importlib.import_module("tf_keras")
    except ImportError as error:
        raise ImportError(
            f"tf_impl needs the package tf-keras with TensorFlow {tf.__version__}"
        ) from error


keras = _find_keras()
OptimizerV2: Any = keras.optimizers.legacy.Optimizer
_keras_backend: Any = importlib.import_module(OptimizerV2.__module__).backend
LearningRateSchedule: Any = keras.optimizers.schedules.LearningRateSchedule

Tensor = Any  # tf.Tensor, or anything that TensorFlow's operators take as one
Rule = Callable[..., tuple[Tensor, ...]]
Kernel = Callable[..., Any]

_VARIABLE_VALUE = "VARIABLE_VALUE"

EVERY_ROW = "every_row"
TOUCHED_ROWS = "touched_rows"

_FLOATS = (tf.float16, tf.bfloat16, tf.float32, tf.float64)

# Compiling costs about 0.15 s for each shape: only larger variables earn that back.
COMPILE_FROM_ELEMENTS = 2**17


def compute_dtype(dtype: tf.DType) -> tf.DType:
    """Return the dtype of the arithmetic for weights of `dtype`: float32 at least."""
    return tf.float64 if dtype == tf.float64 else tf.float32


def real(value: Any) -> Any:
    """Return a number as a Python float; anything else (a tensor, a schedule) as is."""
    if isinstance(value, numbers.Real):
        return float(value)
    return value


def epsilon_or_default(epsilon: float | None) -> float:
    """Return epsilon, or Keras' default for `None`. Zero, unlike in Keras, is zero."""
    return keras.backend.epsilon() if epsilon is None else float(epsilon)


def after(*updates: Any) -> AbstractContextManager[Any]:
    """Return a context whose operations run after the updates. Eager ones do anyway.

    `tf.control_dependencies` in a function ignores what is not an operation or tensor;
    what an update returns may be a list of them.
    """
    if tf.executing_eagerly():
        return nullcontext()
    return tf.control_dependencies([tf.group(*updates)])


def cast(value: Any, dtype: tf.DType) -> Tensor:
    """Return a tensor of `dtype`. `tf.cast` takes Python numbers through float32."""
    if tf.is_tensor(value):
        return tf.cast(value, dtype)
    return tf.constant(value, dtype)


class Optimizer(OptimizerV2):
    """Base of the optimizers in this package.

    Args:
        name: prefix of the names of the optimizer's variables.
        sparse: on which rows a sparse gradient takes effect: `"every_row"` (as the
            dense rule with a zero gradient elsewhere), `"touched_rows"` (only where the
            gradient has rows), or `None`: as the Keras class of the same name does.
        **kwargs: `clipvalue`, `clipnorm`, `global_clipnorm`, `decay`, `lr`, and
            `gradient_aggregator`, `gradient_transformers`, as in Keras.

    Weights are float16, bfloat16, float32 or float64. The arithmetic is that of
    float64 for float64 weights and float32 for all others, rounded once to the weights'
    dtype. Slots have the dtype of the weights. Hyperparameters are float64.

    Raises:
        ValueError: `sparse` is none of the above; or, in `apply_gradients`, a gradient
            does not fit its variable.
    """

    _HAS_AGGREGATE_GRAD = True

    _hypers_created: bool
    _rule: Rule
    _kernel: Kernel | None
    _in_turn: tuple[int, ...]
    # Slot names in the order in which the rule takes them, with their initial values.
    _slot_initials: dict[str, float]
    # Tensors ("w" or a slot name) that a sparse gradient changes on every row.
    _every_row: frozenset[str]

    def __init__(self, name: str, sparse: str | None = None, **kwargs: Any) -> None:
        if sparse not in (None, EVERY_ROW, TOUCHED_ROWS):
            raise ValueError(
                f"`sparse` must be None, {EVERY_ROW!r} or {TOUCHED_ROWS!r}, "
                f"not {sparse!r}"
            )
        super().__init__(name, **kwargs)
        self._maybe_initialize_trackable()
        self._sparse = sparse
        self._hyper_variables: dict[str, tf.Variable] = {}

    def _define(
        self,
        rule: Rule,
        slots: dict[str, float],
        every_row: Sequence[str] = (),
        kernel: Kernel | None = None,
        in_turn: Sequence[str] = (),
    ) -> None:
        """State the rule, its slots, and what a sparse gradient changes on every row.

        Args:
            rule: `rule(w, g, *slots, **coefficients) -> (w, *slots)`.
            slots: slot names, in the rule's order, with their initial values.
            every_row: the tensors (`"w"` or slot names) that the home library changes
                on every row; the others it changes only on the gradient's rows.
            kernel: TensorFlow's own operation for the dense rule, where it has one that
                forms no coefficient itself: called as the rule, with the handles of the
                variables in place of their values; returns the operation.
            in_turn: for a rule whose results share a costly term, all tensors in an
                order in which none needs the old value of one before it. Compiled, each
                then works that term out anew, which is faster than to store it.
        """
        policies: dict[str | None, Sequence[str]] = {
            None: every_row,
            EVERY_ROW: ("w", *slots),
            TOUCHED_ROWS: (),
        }
        self._rule = rule
        self._kernel = kernel
        self._in_turn = tuple(("w", *slots).index(name) for name in in_turn)
        self._slot_initials = dict(slots)
        self._every_row = frozenset(policies[self._sparse])

    # What a subclass provides.

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        """Return the keyword arguments of the rule for step `t`, as float64 scalars.

        Args:
            t: number of this step, from 1, float64.
            learning_rate: learning rate of this step, float64.
        """
        raise NotImplementedError("`_coefficients` must be implemented in subclasses")

    # Hyperparameters: real numbers.

    def _set_hyper(self, name: str, value: Any) -> None:
        value = real(value)
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
                _keras_backend.set_value(variable, value)
            else:
                variable.assign(cast(value, tf.float64))
            self._use_hyper_variable(name)
        else:
            super()._set_hyper(name, value)
            self._hyper[name] = value

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
                _keras_backend.track_variable(self._hyper_variables[name])
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
        return cast(self._get_hyper(name), tf.float64)

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

    # The coefficients of a step: formed once in float64, then rounded for each dtype.

    def _prepare(self, var_list: Sequence[tf.Variable]) -> dict[Any, dict[str, Tensor]]:
        apply_state: dict[Any, dict[str, Tensor]] = {}
        for var in var_list:
            dtype = var.dtype.base_dtype
            if isinstance(var, tf.distribute.DistributedValues):
                devices = var._devices
            else:
                devices = [var.device]
            for device in devices:
                if (device, dtype) not in apply_state:
                    with tf.device(device):
                        self._prepare_local(device, dtype, apply_state)
        return apply_state

    def _prepare_local(
        self,
        var_device: str,
        var_dtype: tf.DType,
        apply_state: dict[Any, dict[str, Tensor]],
    ) -> None:
        dtype = compute_dtype(var_dtype)
        t = tf.cast(self.iterations + 1, tf.float64)
        coefficients = self._coefficients(t, self._real_learning_rate(dtype))
        apply_state[(var_device, var_dtype)] = {
            name: cast(value, dtype) for name, value in coefficients.items()
        }

    def _coefficients_for(
        self, var: tf.Variable, apply_state: dict[Any, Any] | None
    ) -> dict[str, Tensor]:
        key = (var.device, var.dtype.base_dtype)
        return (apply_state or {}).get(key) or self._fallback_apply_state(*key)

    # Gradients: refused, summed and clipped before anything is changed.

    def _valid_dtypes(self) -> set[tf.DType]:
        return set(_FLOATS)

    def _transform_gradients(
        self, grads_and_vars: Sequence[tuple[Any, tf.Variable]]
    ) -> list[tuple[Any, tf.Variable]]:
        grads_and_vars = _validated(grads_and_vars)
        if self.clipvalue is not None:
            grads_and_vars = [
                (_map_values(lambda g: _clip_by_value(g, self.clipvalue), g), v)
                for g, v in _deduplicated(grads_and_vars)
            ]
        if self.clipnorm is not None:
            grads_and_vars = [
                (_scaled(g, _clip_factor([g], self.clipnorm)), v)
                for g, v in _deduplicated(grads_and_vars)
            ]
        if self.global_clipnorm is not None:
            grads_and_vars = _deduplicated(grads_and_vars)
            factor = _clip_factor([g for g, _ in grads_and_vars], self.global_clipnorm)
            grads_and_vars = [(_scaled(g, factor), v) for g, v in grads_and_vars]
        if self.gradient_transformers:
            grads_and_vars = [
                (_map_values(functools.partial(tf.cast, dtype=v.dtype), g), v)
                for g, v in _deduplicated(grads_and_vars)
            ]
            for transform in self.gradient_transformers:
                grads_and_vars = transform(grads_and_vars)
            grads_and_vars = _validated(grads_and_vars)
        return grads_and_vars

    # The update of all variables.

    @tf.autograph.experimental.do_not_convert
    def _distributed_apply(
        self,
        distribution: tf.distribute.Strategy,
        grads_and_vars: Sequence[tuple[Any, tf.Variable]],
        apply_state: dict[Any, dict[str, Tensor]],
        name: str | None,
    ) -> Any:
        def wanted(arguments: Sequence[str]) -> dict[str, Any]:
            # Hooks of subclasses may do without, as in Keras.
            return {"apply_state": apply_state} if "apply_state" in arguments else {}

        dense, sparse = wanted(self._dense_apply_args), wanted(self._sparse_apply_args)

        def apply(var: tf.Variable, grad: Any) -> Any:
            if isinstance(var, tf.Tensor):
                raise NotImplementedError(f"a tensor cannot be updated: {var}")
            if isinstance(grad, tf.IndexedSlices):
                update = self._resource_apply_sparse_duplicate_indices(
                    grad.values, var, grad.indices, **sparse
                )
            else:
                update = self._resource_apply_dense(grad, var, **dense)
            if var.constraint is None:
                return update
            with after(update):
                return var.assign(var.constraint(var), read_value=False)

        updates: list[Any] = []
        with tf.name_scope(name or self._name):
            for grad, var in grads_and_vars:
                with distribution.extended.colocate_vars_with(var):
                    if not tf.distribute.has_strategy():
                        updates.append(apply(var, grad))
                        continue
                    update = distribution.extended.update(
                        var, apply, args=(grad,), group=False
                    )
                if tf.distribute.in_cross_replica_context():
                    updates.extend(update)
                else:
                    updates.append(update)
            return self._finish_step(updates, apply_state)

    def _finish_step(
        self, updates: Sequence[Any], apply_state: dict[Any, dict[str, Tensor]]
    ) -> Any:
        """Count the step, after all updates. Where a step has state, advance it too."""
        if tf.executing_eagerly():
            return self.iterations.assign_add(1)
        with after(*updates):
            return self.iterations.assign_add(1, read_value=False)

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        for slot, initial in self._slot_initials.items():
            for var in var_list:
                self._add_slot(var, slot, initial)

    def _add_slot(self, var: tf.Variable, slot: str, initial: float) -> None:
        self.add_slot(
            var, slot, keras.initializers.Constant(initial) if initial else "zeros"
        )

    def _tensors(self, var: tf.Variable) -> dict[str, tf.Variable]:
        """Return the variables that the rule changes, by name, in its order."""
        slots = {name: self.get_slot(var, name) for name in self._slot_initials}
        return {"w": var, **slots}

    def _resource_apply_dense(
        self,
        grad: Tensor,
        var: tf.Variable,
        apply_state: dict[Any, dict[str, Tensor]] | None = None,
    ) -> Any:
        coefficients = self._coefficients_for(var, apply_state)
        tensors = self._tensors(var)
        if self._kernel is not None and _has_kernels(var):
            handles = [variable.handle for variable in tensors.values()]
            return self._kernel(handles[0], grad, *handles[1:], **coefficients)

        def update(rule: Rule) -> Any:
            return _update_table(
                rule,
                list(tensors.values()),
                [True] * len(tensors),
                grad,
                coefficients,
                self._in_turn,
            )

        return self._with_rule(coefficients, update)

    def _resource_apply_sparse_duplicate_indices(
        self,
        grad: Tensor,
        var: tf.Variable,
        indices: Tensor,
        **kwargs: Any,
    ) -> Any:
        grad, indices = deduplicate(grad, indices)
        return self._resource_apply_sparse(grad, var, indices, **kwargs)

    def _resource_apply_sparse(
        self,
        grad: Tensor,
        var: tf.Variable,
        indices: Tensor,
        apply_state: dict[Any, dict[str, Tensor]] | None = None,
    ) -> Any:
        coefficients = self._coefficients_for(var, apply_state)
        tensors = self._tensors(var)
        every_row = [name in self._every_row for name in tensors]

        def update(rule: Rule) -> Any:
            return _update_rows(
                rule, list(tensors.values()), every_row, grad, indices, coefficients
            )

        return self._with_rule(coefficients, update)

    def _with_rule(
        self, coefficients: dict[str, Tensor], update: Callable[[Rule], Any]
    ) -> Any:
        """Call `update` with the rule for these coefficients."""
        return update(self._rule)

    # Configuration.

    def _hyper_config(self, *names: str) -> dict[str, Any]:
        return {name: self._serialize_hyperparameter(name) for name in names}

    def _serialize_hyperparameter(self, hyperparameter_name: str) -> Any:
        value = super()._serialize_hyperparameter(hyperparameter_name)
        if isinstance(value, tf.Variable | tf.Tensor):
            value = keras.backend.get_value(value)
        return value if isinstance(value, dict) else float(value)

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Any:
        """Return the optimizer that `get_config` describes; `config` is left alone."""
        return super().from_config(dict(config), custom_objects=custom_objects)

    def set_weights(self, weights: list[Any]) -> None:
        """Set the state from arrays, as `get_weights` gives them.

        A list without iterations, as optimizers of the first Keras wrote, starts at 0.
        """
        if len(weights) + 1 == len(self.weights):
            weights = [np.array(0), *weights]
        super().set_weights(weights)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor, as plain Python values."""
        config = super().get_config()
        if self._sparse is not None:
            config["sparse"] = self._sparse
        return config


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


# The rule, on variables.


def _apply_rule(
    rule: Rule,
    tensors: Sequence[Tensor],
    grad: Tensor,
    coefficients: dict[str, Tensor],
) -> list[Tensor]:
    """Return the rule's results, computed in at least float32, rounded once."""
    dtype = compute_dtype(tensors[0].dtype)
    results = rule(
        tf.cast(tensors[0], dtype),
        tf.cast(grad, dtype),
        *(tf.cast(slot, dtype) for slot in tensors[1:]),
        **coefficients,
    )
    return [
        tf.cast(result, tensor.dtype)
        for result, tensor in zip(results, tensors, strict=True)
    ]


def _update_table(
    rule: Rule,
    variables: Sequence[tf.Variable],
    changes: Sequence[bool],
    grad: Tensor | None,
    coefficients: dict[str, Tensor],
    in_turn: tuple[int, ...] = (),
) -> Any:
    """Apply the rule to whole variables; assign those that `changes` selects.

    Args:
        grad: dense gradient, or `None` for a gradient that is zero everywhere.
        in_turn: as in `Optimizer._define`, by number.
    """
    dtype = variables[0].dtype.base_dtype
    handles = [variable.handle for variable in variables]
    gradient = [] if grad is None else [grad]
    if variables[0].shape.num_elements() < COMPILE_FROM_ELEMENTS or _compiling():
        run = _as_one_operation(_table)
        return run((rule, dtype, tuple(changes)), handles, gradient, coefficients)
    nowhere = tf.constant(-1, tf.int64)
    static = (rule, dtype, tuple(changes), in_turn)
    return _table_compiled(static, handles, gradient, coefficients, nowhere)


def _update_rows(
    rule: Rule,
    variables: Sequence[tf.Variable],
    every_row: Sequence[bool],
    grad: Tensor,
    indices: Tensor,
    coefficients: dict[str, Tensor],
) -> Any:
    """Apply the rule to the rows of a gradient, each of which comes once.

    Rules act element by element, so what a gradient does to its rows can be worked out
    on these rows alone. Then all other rows see a zero gradient, in the variables that
    `every_row` selects; then the new rows are written.
    """
    dtype = variables[0].dtype.base_dtype
    handles = [variable.handle for variable in variables]
    rows = _as_one_operation(_rows)(
        (rule, dtype), handles, [grad, indices], coefficients
    )
    others = []
    if any(every_row):
        with after(*rows):
            others.append(_update_table(rule, variables, every_row, None, coefficients))
    with after(*others):
        return tf.group(
            *(
                tf.raw_ops.ResourceScatterUpdate(
                    resource=handle, indices=indices, updates=row
                )
                for handle, row in zip(handles, rows, strict=True)
            )
        )


# What follows works on handles, not variables: a function that was traced with
# variables refuses to serve others once those are gone.
Body = Callable[[tuple[Any, ...], list[Tensor], list[Any], dict[str, Tensor]], Any]


def _table(
    static: tuple[Rule, tf.DType, tuple[bool, ...]],
    handles: list[Tensor],
    gradient: list[Tensor],
    coefficients: dict[str, Tensor],
) -> Any:
    rule, dtype, changes = static
    values = [tf.raw_ops.ReadVariableOp(resource=h, dtype=dtype) for h in handles]
    (grad,) = gradient or [tf.zeros_like(values[0])]
    results = _apply_rule(rule, values, grad, coefficients)
    return _assign(handles, results, changes)


def _assign(
    handles: list[Tensor], results: list[Tensor], changes: tuple[bool, ...]
) -> Any:
    return tf.group(
        *(
            tf.raw_ops.AssignVariableOp(resource=handle, value=result)
            for handle, result, change in zip(handles, results, changes, strict=True)
            if change
        )
    )


def _rows(
    static: tuple[Rule, tf.DType],
    handles: list[Tensor],
    gradient: list[Tensor],
    coefficients: dict[str, Tensor],
) -> list[Tensor]:
    rule, dtype = static
    grad, indices = gradient
    rows = [
        tf.raw_ops.ResourceGather(resource=handle, indices=indices, dtype=dtype)
        for handle in handles
    ]
    return _apply_rule(rule, rows, grad, coefficients)


@functools.partial(tf.function, jit_compile=True, autograph=False)
def _table_compiled(
    static: tuple[Rule, tf.DType, tuple[bool, ...], tuple[int, ...]],
    handles: list[Tensor],
    gradient: list[Tensor],
    coefficients: dict[str, Tensor],
    nowhere: Tensor,
) -> Tensor:
    """Do as `_table` in few passes over memory, in place and on all cores.

    Args:
        nowhere: -1, int64: what XLA does not know it cannot reason from.
    """
    rule, dtype, changes, in_turn = static
    values = [tf.raw_ops.ReadVariableOp(resource=h, dtype=dtype) for h in handles]
    (grad,) = gradient or [_hidden_zeros(values[0], nowhere)]
    results = _apply_rule(rule, values, grad, coefficients)
    for place in in_turn:
        results[place] = _apply_rule(rule, values, grad, coefficients)[place]
        # The same values, but not before that result: it may then overwrite its own.
        first = tf.reshape(results[place], [-1])[0]
        values = [tf.where(nowhere < 0, value, first) for value in values]
    _assign(handles, results, changes)
    return tf.constant(0)  # for others to depend on


def _hidden_zeros(like: Tensor, nowhere: Tensor) -> Tensor:
    """Return zeros that XLA does not know to be zeros.

    Were it to know, it would work out the new slots twice, the second time within the
    weights' own pass, from copies of the old slots: three times the time.
    """
    position = tf.reshape(tf.range(tf.size(like, tf.int64)), tf.shape(like))
    return tf.cast(tf.equal(position, nowhere), like.dtype)


def _as_one_operation(body: Body) -> Body:
    """Return `body`, run as one operation that is traced once for all shapes.

    Hundreds of small variables then cost one operation each, to build and to run, and
    eager execution and graphs round alike, because both run the same graph.
    """
    if _compiling() or not tf.compat.v1.executing_eagerly_outside_functions():
        return body

    def run(
        static: tuple[Any, ...],
        handles: list[Tensor],
        gradient: list[Any],
        coefficients: dict[str, Tensor],
    ) -> Any:
        names = tuple(coefficients)
        arguments = [*handles, *gradient, *coefficients.values()]
        dtypes = tuple(argument.dtype for argument in arguments)
        function = _traced(body, static, len(handles), len(gradient), names, dtypes)
        return tf.raw_ops.StatefulPartitionedCall(
            args=arguments,
            Tout=[output.dtype for output in function.outputs],
            f=function,
            executor_type="SINGLE_THREADED_EXECUTOR",
        )

    return run


@functools.cache
def _traced(
    body: Body,
    static: tuple[Any, ...],
    handles: int,
    gradients: int,
    names: tuple[str, ...],
    dtypes: tuple[tf.DType, ...],
) -> Any:
    def function(*arguments: Tensor) -> Any:
        coefficients = dict(zip(names, arguments[handles + gradients :], strict=True))
        gradient = arguments[handles : handles + gradients]
        result = body(static, list(arguments[:handles]), list(gradient), coefficients)
        return None if isinstance(result, tf.Operation) else result

    shapes: list[Any] = [[]] * handles + [None] * gradients + [[]] * len(names)
    specs = [
        tf.TensorSpec(shape, dtype) for shape, dtype in zip(shapes, dtypes, strict=True)
    ]
    with tf.init_scope(), tf.device(None):
        return tf.function(
            function, autograph=False, experimental_attributes={"_noinline": True}
        ).get_concrete_function(*specs)


# Gradients.


def deduplicate(values: Tensor, indices: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums of the rows that share an index, and the indices, each once.

    Args:
        values: rows, shape `(n, ...)`, any float dtype.
        indices: row numbers, shape `(n,)`, int32 or int64.

    Returns:
        Sums in float32, or float64 for float64 values, and indices, in some order.
    """
    values = tf.cast(values, compute_dtype(values.dtype))
    if not _compiling():
        unique, position = tf.unique(indices)
        return tf.math.unsorted_segment_sum(values, position, tf.size(unique)), unique
    # XLA wants shapes that do not depend on the indices, and drops rows that do not
    # exist: there all results have `n` rows, the last ones zero with the largest index.
    order = tf.argsort(indices)
    indices = tf.gather(indices, order)
    is_new = tf.cast(indices[1:] != indices[:-1], tf.int32)
    position = tf.concat([tf.zeros_like(indices[:1], tf.int32), tf.cumsum(is_new)], 0)
    count = tf.size(indices)
    return (
        tf.math.unsorted_segment_sum(tf.gather(values, order), position, count),
        tf.math.unsorted_segment_min(indices, position, count),
    )


def _has_kernels(var: tf.Variable) -> bool:
    """Return whether TensorFlow's own kernels round as the rules here are to."""
    on_cpu = tf.DeviceSpec.from_string(var.device).device_type in (None, "CPU")
    return on_cpu and var.dtype in (tf.float32, tf.float64) and not _compiling()


def _compiling() -> bool:
    """Return whether XLA is to compile what is being traced."""
    graph = tf.compat.v1.get_default_graph()
    return control_flow_util.GraphOrParentsInXlaContext(graph)


def _deduplicated(
    grads_and_vars: Sequence[tuple[Any, tf.Variable]],
) -> list[tuple[Any, tf.Variable]]:
    def summed(grad: Any) -> Any:
        if not isinstance(grad, tf.IndexedSlices):
            return grad
        values, indices = deduplicate(grad.values, grad.indices)
        return tf.IndexedSlices(values, indices, grad.dense_shape)

    return [(summed(grad), var) for grad, var in grads_and_vars]


def _map_values(function: Callable[[Tensor], Tensor], grad: Any) -> Any:
    if isinstance(grad, tf.IndexedSlices):
        values = function(grad.values)
        return tf.IndexedSlices(values, grad.indices, grad.dense_shape)
    return function(grad)


def _values(grad: Any) -> Tensor:
    values = grad.values if isinstance(grad, tf.IndexedSlices) else grad
    return tf.cast(values, compute_dtype(values.dtype))


def _clip_by_value(values: Tensor, limit: float) -> Tensor:
    limit = cast(limit, values.dtype)
    return tf.clip_by_value(values, -limit, limit)


def _clip_factor(grads: Sequence[Any], limit: float) -> Tensor:
    """Return min(1, limit / norm of all gradients together), a float64 scalar.

    Each gradient is divided by its largest magnitude before squaring, so that no
    finite gradient has an infinite or a vanishing norm.
    """
    squares, scales = [], []
    for grad in grads:
        values = _values(grad)
        largest = tf.reduce_max(tf.abs(values))
        # Neither zero nor infinity can divide; the maximum of no values is below zero.
        can_divide = (largest > 0) & (largest < np.inf)
        scale = tf.where(can_divide, largest, tf.ones_like(largest))
        squares.append(tf.cast(tf.reduce_sum(tf.square(values / scale)), tf.float64))
        scales.append(tf.cast(scale, tf.float64))
    top = tf.reduce_max(tf.stack(scales))
    total = tf.add_n(
        [
            square * tf.square(scale / top)
            for square, scale in zip(squares, scales, strict=True)
        ]
    )
    norm = top * tf.sqrt(total)
    limit = cast(limit, tf.float64)
    return limit / tf.maximum(norm, limit)


def _scaled(grad: Any, factor: Tensor) -> Any:
    def scale(values: Tensor) -> Tensor:
        dtype = compute_dtype(values.dtype)
        return tf.cast(values, dtype) * tf.cast(factor, dtype)

    return _map_values(scale, grad)


# Refusing what does not fit.


def _validated(
    grads_and_vars: Sequence[tuple[Any, tf.Variable]],
) -> list[tuple[Any, tf.Variable]]:
    """Return the gradients, none of which can be had unless all fit their variables.

    Raises:
        ValueError: what is known now does not fit. What only a running graph can see
            raises `InvalidArgumentError` there, before any variable is changed.
    """
    grads_and_vars = [(_as_tensors(grad), var) for grad, var in grads_and_vars]
    checks: list[Any] = []
    for grad, var in grads_and_vars:
        if var.dtype.base_dtype not in _FLOATS:
            raise ValueError(
                f"variable {var.name} must be one of "
                f"{', '.join(d.name for d in _FLOATS)}, not {var.dtype.name}"
            )
        if isinstance(grad, tf.IndexedSlices):
            checks += _check_sparse(grad, var)
        else:
            checks += _check_shape("gradient", grad, var.shape, var)
        dtype = _values_dtype(grad)
        if dtype != var.dtype.base_dtype:
            raise ValueError(
                f"gradient of {var.name} must be {var.dtype.name} as the variable "
                f"is, not {dtype.name}"
            )
    if not checks:
        return list(grads_and_vars)
    with tf.control_dependencies(checks):
        return [(_map_values(tf.identity, grad), var) for grad, var in grads_and_vars]


def _as_tensors(grad: Any) -> Any:
    if not isinstance(grad, tf.IndexedSlices):
        return tf.convert_to_tensor(grad)
    values, indices = (tf.convert_to_tensor(x) for x in (grad.values, grad.indices))
    return tf.IndexedSlices(values, indices, grad.dense_shape)


def _values_dtype(grad: Any) -> tf.DType:
    values = grad.values if isinstance(grad, tf.IndexedSlices) else grad
    return values.dtype


def _check_sparse(grad: tf.IndexedSlices, var: tf.Variable) -> list[Any]:
    values, indices = grad.values, grad.indices
    if var.shape.rank == 0:
        raise ValueError(
            f"{var.name} is a scalar: it has no rows for a sparse gradient"
        )
    if indices.dtype not in (tf.int32, tf.int64):
        raise ValueError(
            f"indices for {var.name} must be int32 or int64, not {indices.dtype.name}"
        )
    if indices.shape.rank not in (None, 1):
        raise ValueError(
            f"indices for {var.name} must have one dimension, "
            f"not the shape {tuple(indices.shape)}"
        )
    expected = tf.TensorShape([indices.shape[0] if indices.shape.rank else None])
    expected = expected.concatenate(var.shape[1:])
    checks = _check_shape("values of the sparse gradient", values, expected, var)
    if tf.executing_eagerly():
        return checks + _check_rows(values, indices, var.shape[0], var.name)
    return [*checks, _rows_checked(values, indices, var.shape[0], var.name)]


def _check_rows(values: Tensor, indices: Tensor, rows: int, name: str) -> list[Any]:
    checks = _check(
        tf.equal(tf.shape(values)[0], tf.size(indices)),
        f"sparse gradient of {name} must have a row of values for each index",
        [tf.shape(values), tf.shape(indices)],
    )
    return checks + _check(
        tf.reduce_all((indices >= 0) & (indices < rows)),
        f"indices for {name} must be in 0 ... {rows - 1}",
        [indices],
    )


@functools.partial(tf.function, autograph=False)
def _rows_checked(values: Tensor, indices: Tensor, rows: int, name: str) -> Tensor:
    """In a graph: its own function, whose constants do not crowd the caller's graph."""
    with tf.control_dependencies(_check_rows(values, indices, rows, name)):
        return tf.constant(0)


def _check_shape(
    what: str, tensor: Tensor, expected: tf.TensorShape, var: tf.Variable
) -> list[Any]:
    if not tensor.shape.is_compatible_with(expected):
        raise ValueError(
            f"{what} of {var.name} must have the shape {tuple(expected)}, "
            f"not {tuple(tensor.shape)}"
        )
    if tensor.shape.is_fully_defined():
        return []
    return [tf.ensure_shape(tensor, expected)]


def _check(condition: Tensor, message: str, data: Sequence[Tensor]) -> list[Any]:
    if not tf.executing_eagerly():
        return [tf.debugging.Assert(condition, [message, "not", *data])]
    if not condition:
        shown = (np.array2string(part.numpy(), threshold=20) for part in data)
        raise ValueError(f"{message}, not {' and '.join(shown)}")
    return []
