"""GradientAccumulation: the TensorFlow side of `reference/wrappers/accumulate.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import tensorflow as tf

from tf_impl.gradients import deduplicate, validated
from tf_impl.tensors import Tensor, after, cast, compiling, compute_dtype
from tf_impl.updates import update_rows, update_table
from tf_impl.wrapper import (
    ACCUMULATION,
    Wrapper,
    across_replicas,
    among,
    in_each_replica,
    only_if,
    update_each,
    whole,
)


def _add(total, g):
    return (total + g,)


def _held(grad: Any) -> Any:
    if isinstance(grad, tf.IndexedSlices):
        return tf.IndexedSlices(tf.identity(grad.values), tf.identity(grad.indices))
    return tf.identity(grad)


class GradientAccumulation(Wrapper):
    """One step of the inner optimizer for several calls of `apply_gradients`, with the
    mean of their gradients: the step of one large batch.

    In between nothing changes but the slots `accumulated_gradient` (the sum so far) and
    `accumulated_rows` (1 on rows that had a gradient, so that sparse gradients stay
    sparse), and the count `micro_steps`. The step count, schedules and averages inside
    see steps alone. Replicas' gradients are summed at each call.

    Args:
        optimizer: the inner optimizer, as in `tf_impl.wrapper.Wrapper`.
        gradient_accumulation_steps: calls that make a step, 2.
        name: as in `tf_impl.wrapper.Wrapper`.

    Raises:
        TypeError, ValueError: an argument outside its domain; in `apply_gradients`, a
            gradient does not fit its variable, or is missing where an earlier call had
            one.
    """

    _place = ACCUMULATION
    _needs_every_gradient = True
    _slots_made: ClassVar = {
        "accumulated_gradient": lambda var: tf.zeros(var.shape, var.dtype),
        "accumulated_rows": lambda var: tf.zeros(var.shape[:1], var.dtype),
    }

    def __init__(
        self,
        optimizer: Any,
        gradient_accumulation_steps: int = 2,
        name: str = "GradientAccumulation",
        **kwargs: Any,
    ) -> None:
        super().__init__(optimizer, name, **kwargs)
        self._steps = whole(
            "gradient_accumulation_steps", gradient_accumulation_steps, 1
        )
        self._micro_steps: Any = None

    @property
    def micro_steps(self) -> tf.Variable:
        """Calls since the last step."""
        if self._micro_steps is None:
            self._micro_steps = self._counter("micro_steps", 0, tf.int64)
        return self._micro_steps

    @tf.autograph.experimental.do_not_convert
    def apply_gradients(
        self,
        grads_and_vars: Any,
        name: str | None = None,
        experimental_aggregate_gradients: bool = True,
        **kwargs: Any,
    ) -> Any:
        """Add the gradients to those before; with the last of them, take a step.

        Args:
            grads_and_vars: as in Keras.
            name: of the operations.
            experimental_aggregate_gradients: as in Keras.
            **kwargs: for the inner optimizer's `apply_gradients`.
        """
        pairs = [(grad, var) for grad, var in grads_and_vars if grad is not None]
        variables = [var for _, var in pairs]
        with tf.init_scope():
            self._create_all_weights(variables)
        if not pairs:
            return self._optimizer.apply_gradients([], name=name, **kwargs)
        if experimental_aggregate_gradients:
            pairs = self._transform_unaggregated_gradients(pairs)
            pairs = self._aggregate_gradients(pairs)
        with tf.control_dependencies(self._check_missing(variables)):
            pairs = [(_held(grad), var) for grad, var in validated(pairs)]
        sparse = [isinstance(grad, tf.IndexedSlices) for grad, _ in pairs]

        def step() -> Any:
            means = [self._mean(*each) for each in zip(variables, sparse, strict=True)]
            return self._optimizer.apply_gradients(
                zip(means, variables, strict=True),
                name=name,
                experimental_aggregate_gradients=False,
                **kwargs,
            )

        return across_replicas(self._add_then, pairs, step)

    def _check_missing(self, variables: Sequence[tf.Variable]) -> list[Any]:
        """Refuse that a variable has no gradient now, but had one since the last step;
        under XLA, which sees no such moment, at any call before."""
        checks: list[Any] = []
        for var in self._seen:
            if among(variables, var):
                continue
            message = (
                f"{var.name} has no gradient now, but had one since the last step; "
                "what is accumulated for a variable needs a gradient at each call"
            )
            if compiling():
                raise ValueError(message)
            none_yet = tf.reduce_all(self._slots_of(var)[1] <= 0)
            if not tf.executing_eagerly():
                checks.append(tf.debugging.Assert(none_yet, [message]))
            elif not none_yet:
                raise ValueError(message)
        return checks

    def _add_then(self, strategy: Any, pairs: Any, step: Any) -> Any:
        variables = [var for _, var in pairs]
        added = update_each(strategy, variables, self._added, [g for g, _ in pairs])
        with after(added):
            count = self.micro_steps.assign_add(1)
        due = tf.convert_to_tensor(count) == self._steps

        def step_and_clear() -> Any:
            with after(in_each_replica(strategy, step)):
                cleared = update_each(strategy, variables, self._cleared)
                return tf.group(cleared, self.micro_steps.assign(0, read_value=False))

        return only_if(due, step_and_clear)

    def _added(self, var: tf.Variable, grad: Any) -> Any:
        total, rows = self._slots_of(var)
        if not isinstance(grad, tf.IndexedSlices):
            return tf.group(
                update_table(_add, [total], [True], grad, {}),
                rows.assign(tf.ones_like(rows), read_value=False),
            )
        values, indices = deduplicate(grad.values, grad.indices)
        if compiling():
            # XLA would add duplicates to the total one by one, and round each time,
            # were there nothing between their sum and the total.
            there = tf.reshape(indices >= 0, [-1] + [1] * (values.shape.rank - 1))
            values = tf.where(there, values, tf.zeros_like(values))
        ones = tf.ones(tf.shape(indices), rows.dtype)
        return tf.group(
            update_rows(_add, [total], [False], values, indices, {}),
            tf.raw_ops.ResourceScatterUpdate(
                resource=rows.handle, indices=indices, updates=ones
            ),
        )

    def _mean(self, var: tf.Variable, sparse: bool) -> Any:
        total, rows = self._slots_of(var)
        if not sparse:
            return self._divided(total.read_value())
        sums, indices = _touched(total.read_value(), rows.read_value() > 0)
        return tf.IndexedSlices(self._divided(sums), indices, tf.shape(total))

    def _divided(self, total: Any) -> Any:
        dtype = compute_dtype(total.dtype)
        return tf.cast(tf.cast(total, dtype) / cast(self._steps, dtype), total.dtype)

    def _cleared(self, var: tf.Variable) -> Any:
        return tf.group(
            *(
                slot.assign(tf.zeros_like(slot), read_value=False)
                for slot in self._slots_of(var)
            )
        )

    def _slots_of(self, var: tf.Variable) -> list[tf.Variable]:
        return [self.get_slot(var, name) for name in self._slots_made]

    def _create_all_weights(self, var_list: Sequence[tf.Variable]) -> None:
        super()._create_all_weights(var_list)
        _ = self.micro_steps

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "gradient_accumulation_steps": self._steps}


def _touched(total: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sums of the rows that had a gradient, and their numbers.

    XLA wants shapes that do not depend on them, and drops rows that do not exist: there
    all rows come, and those without a gradient, zero, are numbered beyond the last.
    """
    if compiling():
        return total, tf.where(rows, tf.range(tf.size(rows)), tf.size(rows))
    indices = tf.where(rows)[:, 0]
    return tf.gather(total, indices), indices
