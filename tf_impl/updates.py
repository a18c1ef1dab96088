"""How a rule updates variables: whole tables, or rows of them.

Small variables cost one operation each; large ones are compiled by XLA, to pass over
memory as few times as can be.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tf_impl.tensors import Tensor, after, compiling, compute_dtype

Rule = Callable[..., tuple[Tensor, ...]]

# Compiling costs about 0.15 s for each shape: only larger variables earn that back.
COMPILE_FROM_ELEMENTS = 2**17


def has_kernels(var: tf.Variable) -> bool:
    """Return whether TensorFlow's kernels for `var` round as the rules here do."""
    on_cpu = tf.DeviceSpec.from_string(var.device).device_type in (None, "CPU")
    return on_cpu and var.dtype in (tf.float32, tf.float64) and not compiling()


def update_table(
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
    if variables[0].shape.num_elements() < COMPILE_FROM_ELEMENTS or compiling():
        run = _as_one_operation(_table)
        return run((rule, dtype, tuple(changes)), handles, gradient, coefficients)
    nowhere = tf.constant(-1, tf.int64)
    # A handle does not tell a function the shape of what it holds.
    shape = tuple(variables[0].shape)
    static = (rule, dtype, tuple(changes), in_turn, shape)
    return _table_compiled(static, handles, gradient, coefficients, nowhere)


def update_rows(
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
            others.append(update_table(rule, variables, every_row, None, coefficients))
    with after(*others):
        return tf.group(
            *(
                tf.raw_ops.ResourceScatterUpdate(
                    resource=handle, indices=indices, updates=row
                )
                for handle, row in zip(handles, rows, strict=True)
            )
        )


def update_whole(
    rule: Rule,
    variables: Sequence[tf.Variable],
    every_row: Sequence[bool],
    grad: Tensor,
    indices: Tensor,
    coefficients: dict[str, Tensor],
) -> Any:
    """Apply a rule that sees whole variables to a gradient of rows, each of which comes
    once; keep its results on every row where `every_row` says so, else on these."""
    handles = [variable.handle for variable in variables]
    static = (rule, variables[0].dtype.base_dtype, tuple(every_row))
    return _as_one_operation(_whole)(static, handles, [grad, indices], coefficients)


def _apply_rule(
    rule: Rule,
    tensors: Sequence[Tensor],
    grad: Tensor,
    coefficients: dict[str, Tensor],
    touched: Any,
) -> list[Tensor]:
    """Return the rule's results, computed in at least float32, rounded once."""
    dtype = compute_dtype(tensors[0].dtype)
    if takes_touched(rule):
        coefficients = {**coefficients, "touched": touched}
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


@functools.cache
def takes_touched(rule: Rule) -> bool:
    """Return whether a rule asks where the gradient has rows."""
    return "touched" in inspect.signature(rule).parameters


@functools.cache
def touched_everywhere(rule: Rule) -> Rule:
    """Return a rule that acts on each row as on one that the gradient has."""

    def everywhere(*args: Tensor, **coefficients: Tensor) -> tuple[Tensor, ...]:
        return rule(*args, **coefficients, touched=True)

    return everywhere


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
    results = _apply_rule(rule, values, grad, coefficients, bool(gradient))
    return _assign(handles, results, changes)


def _whole(
    static: tuple[Rule, tf.DType, tuple[bool, ...]],
    handles: list[Tensor],
    gradient: list[Tensor],
    coefficients: dict[str, Tensor],
) -> Any:
    rule, dtype, every_row = static
    grad, indices = gradient
    values = [tf.raw_ops.ReadVariableOp(resource=h, dtype=dtype) for h in handles]
    positions, shape = indices[:, tf.newaxis], tf.shape(values[0], indices.dtype)
    table = tf.scatter_nd(positions, grad, shape)
    hits = tf.scatter_nd(positions, tf.ones_like(indices), shape[:1]) != 0
    column = tf.concat([shape[:1], tf.ones_like(shape[1:])], axis=0)
    touched = tf.reshape(hits, column)
    results = _apply_rule(rule, values, table, coefficients, touched)
    scattered = [
        tf.raw_ops.ResourceScatterUpdate(
            resource=handle, indices=indices, updates=tf.gather(result, indices)
        )
        for handle, result, every in zip(handles, results, every_row, strict=True)
        if not every
    ]
    return tf.group(_assign(handles, results, every_row), *scattered)


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
    return _apply_rule(rule, rows, grad, coefficients, True)


@functools.partial(tf.function, jit_compile=True, autograph=False)
def _table_compiled(
    static: tuple[Rule, tf.DType, tuple[bool, ...], tuple[int, ...], tuple[int, ...]],
    handles: list[Tensor],
    gradient: list[Tensor],
    coefficients: dict[str, Tensor],
    nowhere: Tensor,
) -> Tensor:
    """Do as `_table` in few passes over memory, in place and on all cores.

    Args:
        nowhere: -1, int64: what XLA does not know it cannot reason from.
    """
    rule, dtype, changes, in_turn, _ = static
    values = [tf.raw_ops.ReadVariableOp(resource=h, dtype=dtype) for h in handles]
    (grad,) = gradient or [_hidden_zeros(values[0], nowhere)]
    touched = bool(gradient)
    results = _apply_rule(rule, values, grad, coefficients, touched)
    for place in in_turn:
        again = _apply_rule(rule, values, grad, coefficients, touched)
        results[place] = again[place]
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


def _as_one_operation(body: Body) -> Body:
    """Return `body`, run as one operation that is traced once for all shapes.

    Hundreds of small variables then cost one operation each, to build and to run, and
    eager execution and graphs round alike, because both run the same graph.
    """
    if compiling() or not tf.compat.v1.executing_eagerly_outside_functions():
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
