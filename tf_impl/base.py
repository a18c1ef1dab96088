"""What every optimizer here shares: what OptimizerV2's protocol asks of a subclass.

A subclass says what is its own:

* the hyperparameters and slots (its constructor),
* the scalars of one step, as real numbers in float64 (`_coefficients`),
* the rule: a pure function `rule(w, g, *slots, **coefficients) -> (w, *slots)`, which
  acts element by element unless it says otherwise.

Here those are driven through the hooks that `OptimizerV2.apply_gradients` calls:
`_prepare`, `_prepare_local`, `_transform_gradients`, `_distributed_apply`,
`_resource_apply_dense`, `_resource_apply_sparse_duplicate_indices` and
`_resource_apply_sparse`. What they do is in `hypers`, `gradients` and `updates`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import tensorflow as tf

from tf_impl.gradients import (
    clipped,
    deduplicate,
    in_dtype_of_variables,
    validated,
)
from tf_impl.legacy_keras import keras
from tf_impl.tensors import FLOATS, Tensor, after, cast, compute_dtype
from tf_impl.updates import (
    Rule,
    has_kernels,
    takes_touched,
    touched_everywhere,
    update_rows,
    update_table,
    update_whole,
)
from tf_impl.weight_decay import (
    DECAY,
    EVERY_ROW,
    TOUCHED_ROWS,
    DecayingHypers,
    decaying,
)

Kernel = Callable[..., Any]
Shape = Callable[[tf.TensorShape], Sequence[int]]


@dataclass(frozen=True)
class Definition:
    """How variables are updated: what `Optimizer._defined` was given."""

    rule: Rule
    slots: Mapping[str, float]
    every_row: frozenset[str]
    kernel: Kernel | None = None
    in_turn: tuple[int, ...] = ()
    elementwise: bool = True
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    run: Callable[[Rule], Rule] = lambda rule: rule  # what becomes of a rule

    def decaying(self, decays_every_row: bool) -> Definition:
        """Return the definition with weight decay before its rule."""
        moves_every_row = "w" in self.every_row
        return replace(
            self,
            every_row=self.every_row | ({"w"} if decays_every_row else set()),
            kernel=None,
            run=lambda rule: decaying(rule, moves_every_row, decays_every_row),
        )


def _place(device: str, dtype: tf.DType, factor: float) -> tuple[Any, ...]:
    """Return where coefficients are, for variables with a factor on the rate."""
    return (device, dtype) if factor == 1.0 else (device, dtype, factor)


class Optimizer(DecayingHypers):
    """Base of the optimizers in this package.

    Args:
        name: prefix of the names of the optimizer's variables.
        sparse: on which rows a sparse gradient takes effect: `"every_row"` (as the
            dense rule with a zero gradient elsewhere), `"touched_rows"` (only where the
            gradient has rows), or `None`: as the Keras class of the same name does.
        **kwargs: `weight_decay` and what goes with it, `schedule_multiplier` and
            `learning_rate_multipliers`, as in `tf_impl.weight_decay.DecayingHypers`;
            `clipvalue`, `clipnorm`, `global_clipnorm`, `decay`, `lr`, and
            `gradient_aggregator`, `gradient_transformers`, as in Keras.

    Weights are float16, bfloat16, float32 or float64. The arithmetic is that of
    float64 for float64 weights and float32 for all others, rounded once to the weights'
    dtype. Slots have the dtype of the weights. Hyperparameters are float64.

    Raises:
        ValueError: `sparse` is none of the above; or, in `apply_gradients`, a gradient
            does not fit its variable.
    """

    _HAS_AGGREGATE_GRAD = True

    _definition: Definition

    def __init__(self, name: str, sparse: str | None = None, **kwargs: Any) -> None:
        if sparse not in (None, EVERY_ROW, TOUCHED_ROWS):
            raise ValueError(
                f"`sparse` must be None, {EVERY_ROW!r} or {TOUCHED_ROWS!r}, "
                f"not {sparse!r}"
            )
        super().__init__(name, **kwargs)
        self._sparse = sparse

    def _define(self, *args: Any, **kwargs: Any) -> None:
        """State the rule for all variables; arguments as of `_defined`."""
        self._definition = self._defined(*args, **kwargs)

    def _defined(
        self,
        rule: Rule,
        slots: Mapping[str, float],
        every_row: Sequence[str] = (),
        kernel: Kernel | None = None,
        in_turn: Sequence[str] = (),
        elementwise: bool = True,
        shapes: Mapping[str, Shape] | None = None,
    ) -> Definition:
        """Return a rule with its slots, and what a sparse gradient does with it.

        Args:
            rule: `rule(w, g, *slots, **coefficients) -> (w, *slots)`. If it has a
                parameter `touched`, it is told where the gradient has rows: `True`,
                `False` or a mask for `tf.where`.
            slots: slot names, in the rule's order, with their initial values.
            every_row: the tensors (`"w"` or slot names) that the home library changes
                on every row; the others it changes only on the gradient's rows.
            kernel: TensorFlow's own operation for the dense rule, where it has one that
                forms no coefficient itself: called as the rule, with the handles of the
                variables in place of their values; returns the operation.
            in_turn: for a rule whose results share a costly term, all tensors in an
                order in which none needs the old value of one before it. Compiled, each
                then works that term out anew, which is faster than to store it.
            elementwise: whether an element of the results depends on that element of
                the arguments alone. Otherwise the rule sees whole variables, sparse
                gradients scattered.
            shapes: for slots that are not of the variable's shape, their shape from it.
                A sparse gradient changes them as a whole.
        """
        policies: dict[str | None, Sequence[str]] = {
            None: every_row,
            EVERY_ROW: ("w", *slots),
            TOUCHED_ROWS: (),
        }
        if self._sparse == EVERY_ROW and takes_touched(rule):
            rule = touched_everywhere(rule)
        shapes = dict(shapes or {})
        return Definition(
            rule,
            dict(slots),
            frozenset((*policies[self._sparse], *shapes)),
            kernel,
            tuple(("w", *slots).index(name) for name in in_turn),
            elementwise,
            shapes,
        )

    def _definition_for(self, var: tf.Variable) -> Definition:
        """Return the definition for a variable, where its shape decides."""
        return self._definition

    # What a subclass provides.

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        """Return the keyword arguments of the rule for step `t`, as float64 scalars.

        Args:
            t: number of this step, from 1, float64.
            learning_rate: learning rate of this step, float64.
        """
        raise NotImplementedError("`_coefficients` must be implemented in subclasses")

    # The coefficients of a step: formed once in float64, then rounded for each dtype.

    def _prepare(self, var_list: Sequence[tf.Variable]) -> dict[Any, dict[str, Tensor]]:
        apply_state: dict[Any, dict[str, Tensor]] = {}
        for var in var_list:
            self._learning_rate_factor(var)  # refused, where it is not one
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
        learning_rate = self._annealed(self._real_learning_rate(dtype))
        for factor in {1.0, *map(float, self.learning_rate_multipliers.values())}:
            own = learning_rate if factor == 1.0 else factor * learning_rate
            coefficients = self._coefficients(t, own) | self._decay_coefficient(own)
            apply_state[_place(var_device, var_dtype, factor)] = {
                name: cast(value, dtype) for name, value in coefficients.items()
            }

    def _coefficients_for(
        self, var: tf.Variable, apply_state: dict[Any, Any] | None
    ) -> dict[str, Tensor]:
        device, dtype = var.device, var.dtype.base_dtype
        place = _place(device, dtype, self._learning_rate_factor(var))
        if not apply_state or place not in apply_state:
            # A hook of a subclass did not pass it on.
            apply_state = {}
            self._prepare_local(device, dtype, apply_state)
        return apply_state[place]

    # Gradients: refused, summed and clipped before anything is changed.

    def _valid_dtypes(self) -> set[tf.DType]:
        return set(FLOATS)

    def _transform_gradients(
        self, grads_and_vars: Sequence[tuple[Any, tf.Variable]]
    ) -> list[tuple[Any, tf.Variable]]:
        grads_and_vars = clipped(
            validated(grads_and_vars),
            self.clipvalue,
            self.clipnorm,
            self.global_clipnorm,
        )
        if self.gradient_transformers:
            grads_and_vars = in_dtype_of_variables(grads_and_vars)
            for transform in self.gradient_transformers:
                grads_and_vars = transform(grads_and_vars)
            grads_and_vars = validated(grads_and_vars)
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

    # The update of one variable.

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        definitions = [(var, self._definition_for(var)) for var in var_list]
        for slot in dict.fromkeys(s for _, d in definitions for s in d.slots):
            for var, definition in definitions:
                if slot in definition.slots:
                    self._add_slot(var, slot, definition)

    def _add_slot(self, var: tf.Variable, slot: str, definition: Definition) -> None:
        initial = definition.slots[slot]
        shape = definition.shapes.get(slot)
        self.add_slot(
            var,
            slot,
            keras.initializers.Constant(initial) if initial else "zeros",
            shape=shape(var.shape) if shape else None,
        )

    def _tensors(self, var: tf.Variable) -> dict[str, tf.Variable]:
        """Return the variables that the rule changes, by name, in its order."""
        slots = self._definition_for(var).slots
        return {"w": var, **{name: self.get_slot(var, name) for name in slots}}

    def _resource_apply_dense(
        self,
        grad: Tensor,
        var: tf.Variable,
        apply_state: dict[Any, dict[str, Tensor]] | None = None,
    ) -> Any:
        definition, coefficients = self._decaying(var, apply_state)
        tensors = self._tensors(var)
        if definition.kernel is not None and has_kernels(var):
            handles = [variable.handle for variable in tensors.values()]
            return definition.kernel(handles[0], grad, *handles[1:], **coefficients)

        def update(rule: Rule) -> Any:
            return update_table(
                definition.run(rule),
                list(tensors.values()),
                [True] * len(tensors),
                grad,
                coefficients,
                definition.in_turn,
            )

        return self._with_rule(definition.rule, coefficients, update)

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
        definition, coefficients = self._decaying(var, apply_state)
        tensors = self._tensors(var)
        every_row = [name in definition.every_row for name in tensors]
        apply = update_rows if definition.elementwise else update_whole

        def update(rule: Rule) -> Any:
            return apply(
                definition.run(rule),
                list(tensors.values()),
                every_row,
                grad,
                indices,
                coefficients,
            )

        return self._with_rule(definition.rule, coefficients, update)

    def _decaying(
        self, var: tf.Variable, apply_state: dict[Any, Any] | None
    ) -> tuple[Definition, dict[str, Tensor]]:
        """Return the definition for a variable, with decay where it decays, and the
        coefficients."""
        definition = self._definition_for(var)
        coefficients = self._coefficients_for(var, apply_state)
        if self._decays(var):
            every_row = EVERY_ROW in (self._decay_rows, self._sparse)
            return definition.decaying(every_row), coefficients
        return definition, {n: c for n, c in coefficients.items() if n != DECAY}

    def _with_rule(
        self,
        rule: Rule,
        coefficients: dict[str, Tensor],
        update: Callable[[Rule], Any],
    ) -> Any:
        """Call `update` with the rule for these coefficients."""
        return update(rule)

    # Configuration.

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
