"""What acts around the steps of another optimizer, the inner one.

Here, and only here, `apply_gradients` is overridden: the inner optimizer takes its
whole step by its own `apply_gradients`, so that whatever it does there, in its hooks,
or to gradients and constraints, it goes on doing. The wrapper acts afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import tensorflow as tf

import tf_impl
from tf_impl.hypers import RealHypers
from tf_impl.legacy_keras import OptimizerV2, keras
from tf_impl.tensors import FLOATS, Tensor, after, cast, compute_dtype, container
from tf_impl.updates import update_table

# Places in the one order that counts and averages each step once, from the inside.
LOOKAHEAD, AVERAGE, ACCUMULATION, LOSS_SCALE = 1, 2, 3, 4

ORDER = "LossScaleOptimizer(GradientAccumulation(average(Lookahead(optimizer))))"


def _inners(name: str) -> property:
    """Return an attribute that is the inner optimizer's. Keras' constructor reads and
    sets defaults before there is one."""

    def get(wrapper: Any) -> Any:
        inner = vars(wrapper).get("_optimizer")
        return None if inner is None else getattr(inner, name)

    def set_(wrapper: Any, value: Any) -> None:
        if "_optimizer" in vars(wrapper):
            setattr(wrapper._optimizer, name, value)

    return property(get, set_)


class Wrapper(RealHypers):
    """Base of the wrappers in this package.

    Args:
        optimizer: the inner optimizer: any `OptimizerV2` (of here, of Keras, yours),
            the name of one of here, or a wrapper that may be inside this one:
            `LossScaleOptimizer(GradientAccumulation(average(Lookahead(optimizer))))` is
            the one order, of which any part may be left out.
        name: prefix of the names of the wrapper's variables.

    Hyperparameters that the wrapper has not (`learning_rate`, `lr`, `momentum`) and
    what concerns gradients (`clipnorm`, `gradient_transformers`) are the inner
    optimizer's, to get and to set. There is one step count, the inner one's. `weights`,
    `variables()` and checkpoints hold the state of both.

    Raises:
        TypeError: `optimizer` is none; or what belongs to it was given to the wrapper.
        ValueError: a wrapper that must not be inside this one.
    """

    _HAS_AGGREGATE_GRAD = True

    _place: int
    _slots_made: ClassVar[dict[str, Callable[[tf.Variable], Tensor]]] = {}
    _checkpoint_name = "optimizer"

    clipvalue = _inners("clipvalue")
    clipnorm = _inners("clipnorm")
    global_clipnorm = _inners("global_clipnorm")
    gradient_aggregator = _inners("gradient_aggregator")
    gradient_transformers = _inners("gradient_transformers")
    iterations = _inners("iterations")

    def __init__(self, optimizer: Any, name: str, **kwargs: Any) -> None:
        if kwargs:
            raise TypeError(
                f"{type(self).__name__} does not take {', '.join(sorted(kwargs))}; "
                "the learning rate and what concerns gradients are for the inner "
                "optimizer"
            )
        super().__init__(name)
        self._seen: list[tf.Variable] = []  # the variables with slots
        self._optimizer = inner_optimizer(optimizer, type(self).__name__, self._place)
        self._track_trackable(self._optimizer, self._checkpoint_name)

    # What is the inner optimizer's.

    def __getattr__(self, name: str) -> Any:
        if self._is_inner_hyper(name):
            return getattr(self._optimizer, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if self._is_inner_hyper(name):
            setattr(self._optimizer, name, value)
        else:
            super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_hypers(self._optimizer)})

    def _is_inner_hyper(self, name: str) -> bool:
        if "_optimizer" not in vars(self):
            return False
        return ("learning_rate" if name == "lr" else name) in _hypers(self._optimizer)

    def _valid_dtypes(self) -> set[tf.DType]:
        return set(FLOATS)

    def _transform_unaggregated_gradients(self, grads_and_vars: Any) -> Any:
        return self._optimizer._transform_unaggregated_gradients(grads_and_vars)

    def _compute_gradients(self, *args: Any, **kwargs: Any) -> Any:
        return self._optimizer._compute_gradients(*args, **kwargs)

    def get_gradients(self, loss: Any, params: Any) -> Any:
        return self._optimizer.get_gradients(loss, params)

    def minimize(
        self,
        loss: Any,
        var_list: Any,
        grad_loss: Any = None,
        name: str | None = None,
        tape: Any = None,
        **kwargs: Any,
    ) -> Any:
        """As in Keras; what else is given goes on to `apply_gradients`."""
        grads_and_vars = self._compute_gradients(
            loss, var_list=var_list, grad_loss=grad_loss, tape=tape
        )
        return self.apply_gradients(grads_and_vars, name=name, **kwargs)

    # The step.

    @tf.autograph.experimental.do_not_convert
    def apply_gradients(
        self, grads_and_vars: Any, name: str | None = None, **kwargs: Any
    ) -> Any:
        """Take a step of the inner optimizer, then act on the variables it changed.

        Args:
            grads_and_vars: as in Keras.
            name: of the operations.
            **kwargs: for the inner optimizer's `apply_gradients`.
        """
        grads_and_vars = list(grads_and_vars)
        variables = [var for grad, var in grads_and_vars if grad is not None]
        with tf.init_scope():
            self._create_all_weights(variables)
        step = self._optimizer.apply_gradients(grads_and_vars, name=name, **kwargs)
        if not variables:
            return step
        with after(step):
            return across_replicas(self._follow, variables)

    def _follow(self, strategy: Any, variables: Sequence[tf.Variable]) -> Any:
        """Act on the variables of all replicas after a step."""
        raise NotImplementedError(f"{type(self).__name__} must implement `_follow`")

    def _apply_to_each(
        self,
        strategy: Any,
        variables: Sequence[tf.Variable],
        rule: Callable[..., Any],
        changes: Sequence[bool],
        coefficients: Mapping[str, Tensor],
    ) -> Any:
        """Apply a rule to each variable and the wrapper's slots.

        Args:
            rule: as in `tf_impl.base`; there is no gradient.
            changes: whether the variable, and each slot, takes the result.
            coefficients: float64 scalars.
        """

        def update(var: tf.Variable) -> Any:
            rounded = {
                name: cast(value, compute_dtype(var.dtype))
                for name, value in coefficients.items()
            }
            slots = [self.get_slot(var, name) for name in self._slots_made]
            return update_table(rule, [var, *slots], changes, None, rounded)

        return update_each(strategy, variables, update)

    # State.

    def _create_all_weights(self, var_list: Sequence[tf.Variable]) -> None:
        self._optimizer._create_all_weights(var_list)
        self._create_hypers()
        self._create_slots(var_list)

    def add_slot(self, var: tf.Variable, *args: Any, **kwargs: Any) -> tf.Variable:
        """As in Keras; that `var` has slots is remembered."""
        slot = super().add_slot(var, *args, **kwargs)
        if not among(self._seen, var):
            self._seen.append(container(var))
        return slot

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        for slot, start in self._slots_made.items():
            for var in var_list:
                self.add_slot(var, slot, start(var))

    def _counter(self, name: str, start: Any, dtype: tf.DType) -> tf.Variable:
        """Return a new scalar of the wrapper's state."""
        with self._distribution_strategy_scope():
            counter = self.add_weight(
                name,
                shape=[],
                dtype=dtype,
                initializer=keras.initializers.Constant(start),
                trainable=False,
                aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
            )
        self._weights.append(counter)
        return counter

    def get_slot(self, var: tf.Variable, slot_name: str) -> tf.Variable:
        """Return a slot of the wrapper, or else of the inner optimizer."""
        if slot_name in self._slots_made:
            return super().get_slot(var, slot_name)
        return self._optimizer.get_slot(var, slot_name)

    @property
    def weights(self) -> list[tf.Variable]:
        """The step count, the wrapper's state, and the inner optimizer's."""
        inner = [w for w in self._optimizer.weights if w is not self.iterations]
        return [self.iterations, *self._weights, *inner]

    def variables(self) -> list[tf.Variable]:
        return self.weights

    # Configuration.

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor, the inner optimizer serialised."""
        return {"name": self._name, "optimizer": serialized(self._optimizer)}

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Any:
        """Return the optimizer that `get_config` describes; `config` is left alone."""
        inner = deserialized(config["optimizer"], custom_objects)
        return cls(**{**config, "optimizer": inner})


class AveragingWrapper(Wrapper):
    """Base of the wrappers that keep an average of the weights.

    Slot `average`: starts at the variable, when it is first seen; follows what the
    variable is after a step and its constraint.
    """

    _place = AVERAGE
    _slots_made: ClassVar = {"average": lambda var: var.read_value()}
    _checkpoint_name = "awg_optimizer"

    def shadow_copy(self, model_weights: Sequence[tf.Variable]) -> None:
        """Begin the averages of variables, at what these are now."""
        with tf.init_scope():
            self._create_all_weights(list(model_weights))

    @property
    def has_shadow_copy(self) -> bool:
        """Whether there are averages."""
        return bool(self._seen)

    def assign_average_vars(self, var_list: Sequence[tf.Variable]) -> None:
        """Overwrite variables with their averages; others are left alone."""

        def assign(var: tf.Variable) -> Any:
            return var.assign(self.get_slot(var, "average"), read_value=False)

        averaged = [var for var in var_list if among(self._seen, var)]
        across_replicas(update_each, averaged, assign)

    def swap_weights(self) -> None:
        """Exchange the averages with the variables, exactly; again, and all is back."""

        def swap(var: tf.Variable) -> Any:
            average = self.get_slot(var, "average")
            weights, averages = var.read_value(), average.read_value()
            return tf.group(
                var.assign(averages, read_value=False),
                average.assign(weights, read_value=False),
            )

        across_replicas(update_each, self._seen, swap)


def inner_optimizer(optimizer: Any, wrapper: str, place: int) -> Any:
    """Return the inner optimizer for a wrapper at `place`.

    Raises:
        TypeError: it is no `OptimizerV2`.
        ValueError: it has no such name; or it must be further out.
    """
    if isinstance(optimizer, str):
        by_name: dict[str, Any] = {
            name.lower(): cls for name, cls in tf_impl.OPTIMIZERS.items()
        }
        if optimizer.lower() not in by_name:
            raise ValueError(
                f"no optimizer is called {optimizer!r}; there are "
                f"{', '.join(tf_impl.OPTIMIZERS)}"
            )
        return by_name[optimizer.lower()]()
    if not isinstance(optimizer, OptimizerV2):
        raise TypeError(
            f"{wrapper} needs an instance of {OptimizerV2.__module__}.Optimizer "
            f"(OptimizerV2), not {optimizer!r}"
        )
    if isinstance(optimizer, keras.mixed_precision.LossScaleOptimizer):
        inner = LOSS_SCALE
    else:
        inner = getattr(optimizer, "_place", 0)
    if inner >= place:
        raise ValueError(
            f"{wrapper} cannot go around {type(optimizer).__name__}; the order is "
            f"{ORDER}, each at most once: what is skipped is not averaged, and what is "
            "averaged is what the optimizer goes on from"
        )
    return optimizer


def _hypers(optimizer: Any) -> set[str]:
    names = set(optimizer._hyper)
    inner = vars(optimizer).get("_optimizer")
    return names | _hypers(inner) if isinstance(inner, OptimizerV2) else names


# Arguments of wrappers.


def whole(name: str, value: Any, least: int) -> int:
    """Return a whole number from `least`.

    Raises:
        TypeError, ValueError: `value` is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"`{name}` must be an integer, not {value!r}")
    if value < least:
        raise ValueError(f"`{name}` must be at least {least}, not {value}")
    return int(value)


def part(name: str, value: Any) -> Any:
    """Return a number from 0 to 1, or what gives one later: a callable or a tensor.

    Raises:
        TypeError, ValueError: `value` is neither.
    """
    if callable(value) or tf.is_tensor(value):
        return value
    if isinstance(value, bool) or not isinstance(value, float | int | np.number):
        raise TypeError(f"`{name}` must be a number from 0 to 1, not {value!r}")
    if not 0 <= value <= 1:
        raise ValueError(f"`{name}` must be a number from 0 to 1, not {value}")
    return value


# Where the variables of all replicas are seen.


def only_if(condition: Tensor, act: Callable[[], Any]) -> Any:
    """Call `act` where the condition holds, when the graph runs."""
    return tf.cond(condition, act, tf.no_op)


def across_replicas(act: Callable[..., Any], values: Any, *args: Any) -> Any:
    """Call `act(strategy, values, *args)` where it may update all replicas.

    Args:
        act: what to call.
        values: variables and tensors, in lists; those of all replicas come together.
        *args: anything else, passed on.
    """
    strategy = tf.distribute.get_strategy()
    if tf.distribute.in_cross_replica_context():
        return act(strategy, values, *args)
    return tf.__internal__.distribute.interim.maybe_merge_call(
        lambda strategy, values: act(strategy, values, *args), strategy, values
    )


def in_each_replica(strategy: Any, act: Callable[..., Any], *values: Any) -> Any:
    """Call `act(*values)` in the context of each replica, with what is its own."""
    if not tf.distribute.in_cross_replica_context():
        return act(*values)
    return strategy.extended.call_for_each_replica(act, args=values)


def update_each(
    strategy: Any,
    variables: Sequence[tf.Variable],
    update: Callable[..., Any],
    *others: Sequence[Any],
) -> Any:
    """Call `update` with each variable, and what goes with it, on each replica."""
    updates: list[Any] = []
    for var, *args in zip(variables, *others, strict=True):
        if not tf.distribute.has_strategy():
            updates.append(update(var, *args))
            continue
        updated = strategy.extended.update(var, update, args=tuple(args), group=False)
        if tf.distribute.in_cross_replica_context():
            updates.extend(updated)
        else:
            updates.append(updated)
    return tf.group(*updates)


def among(variables: Sequence[tf.Variable], var: tf.Variable) -> bool:
    """Return whether `var`, or that of which it is one replica's, is one of these."""
    return any(container(var) is container(other) for other in variables)


# The inner optimizer in a config.


def serialized(optimizer: Any) -> dict[str, Any]:
    """Return a description of an optimizer, for JSON."""
    cls = type(optimizer)
    if cls.__module__.startswith("tf_impl."):
        return {
            "module": cls.__module__,
            "class_name": cls.__name__,
            "config": optimizer.get_config(),
        }
    return keras.optimizers.serialize(optimizer)


def deserialized(
    config: dict[str, Any], custom_objects: dict[str, Any] | None = None
) -> Any:
    """Return the optimizer that a description is of: one of here where it says so, or
    where it says no more than a name that is known here."""
    name, module = config["class_name"], config.get("module")
    here: dict[str, Any] = {**tf_impl.OPTIMIZERS, **tf_impl.WRAPPERS}
    ours = module is None or module.startswith("tf_impl.")
    if name in here and ours and name not in (custom_objects or {}):
        return here[name].from_config(config["config"], custom_objects=custom_objects)
    return keras.optimizers.deserialize(
        config, custom_objects=custom_objects, use_legacy_optimizer=True
    )
