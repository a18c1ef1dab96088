"""MultiOptimizer: the TensorFlow side of `reference/wrappers/multi.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf_impl.hypers import RealHypers
from tf_impl.tensors import FLOATS, after, container
from tf_impl.wrapper import (
    ACCUMULATION,
    across_replicas,
    deserialized,
    inner_optimizer,
    serialized,
)

EVERYTHING_ELSE = "everything else"


class MultiOptimizer(RealHypers):
    """Several optimizers, each for the variables of some layers (discriminative layer
    training: Howard, Ruder, 2018, arXiv:1801.06146, section 3.2).

    Each takes its own steps, with its own learning rate, clipping and count; a step at
    which none of its variables has a gradient is none. `iterations` counts all calls.

    Args:
        optimizers_and_layers: pairs of an optimizer, as in `tf_impl.wrapper.Wrapper`,
            and what it is for: a layer, a model, a variable, or a list of these; `...`
            stands for every variable that no other pair is for. What a layer has is
            asked at each call of `apply_gradients`: it need not be built yet. A
            variable is known by identity.
        optimizer_specs: of a config: there, variables are known by their names.
        name: prefix of the names of the optimizer's variables.

    Raises:
        TypeError, ValueError: an argument outside its domain; an optimizer that comes
            twice; in `apply_gradients`, a variable that no pair or more than one is
            for.
    """

    _HAS_AGGREGATE_GRAD = True

    def __init__(
        self,
        optimizers_and_layers: Sequence[tuple[Any, Any]] | None = None,
        optimizer_specs: Sequence[dict[str, Any]] | None = None,
        name: str = "MultiOptimizer",
        **kwargs: Any,
    ) -> None:
        if kwargs:
            raise TypeError(
                f"MultiOptimizer does not take {', '.join(sorted(kwargs))}; the "
                "learning rate and what concerns gradients are for its optimizers"
            )
        if (optimizers_and_layers is None) == (optimizer_specs is None):
            raise ValueError(
                "MultiOptimizer needs `optimizers_and_layers`, or else "
                "`optimizer_specs` of a config"
            )
        super().__init__(name)
        pairs = optimizers_and_layers
        if pairs is None:
            pairs = [(s["optimizer"], s["weights"]) for s in optimizer_specs or ()]
        if not pairs:
            raise ValueError("MultiOptimizer needs at least one optimizer")
        self.optimizers = [
            inner_optimizer(optimizer, "MultiOptimizer", ACCUMULATION)
            for optimizer, _ in pairs
        ]
        self._members = [members for _, members in pairs]
        self._seen: list[tuple[tf.Variable, int]] = []
        if len({id(optimizer) for optimizer in self.optimizers}) < len(pairs):
            raise ValueError(
                "an optimizer comes twice: list all its layers in one pair, or else it "
                "would count each step twice"
            )
        if sum(_is_rest(members) for members in self._members) > 1:
            raise ValueError("`...` can be for one optimizer only")
        for number, optimizer in enumerate(self.optimizers):
            self._track_trackable(optimizer, f"optimizer_{number}")

    @property
    def _place(self) -> int:
        return max(getattr(optimizer, "_place", 0) for optimizer in self.optimizers)

    @property
    def learning_rate(self) -> Any:
        """There is none: each optimizer has its own."""
        raise AttributeError(
            "MultiOptimizer has no learning_rate: get and set that of each of its "
            "`optimizers`"
        )

    @learning_rate.setter
    def learning_rate(self, _: Any) -> None:
        _ = self.learning_rate

    def _valid_dtypes(self) -> set[tf.DType]:
        return set(FLOATS)

    # Which optimizer a variable belongs to.

    def _number_of(self, var: tf.Variable) -> int:
        """Return which optimizer `var` is for.

        Raises:
            ValueError: none, or more than one.
        """
        var = container(var)
        for known, number in self._seen:
            if known is var:
                return number
        named = [
            number
            for number, members in enumerate(self._members)
            if any(_is(var, member) for member in _flat(members))
        ]
        if not named:
            named = [n for n, members in enumerate(self._members) if _is_rest(members)]
        if len(named) != 1:
            which = "more than one optimizer is" if named else "no optimizer is"
            raise ValueError(
                f"{which} for the variable {var.name}: list its layer in one pair, or "
                "give one optimizer `...`, every variable that no other is for"
            )
        same = [known for known, _ in self._seen if known.name == var.name]
        by_name = any(isinstance(m, str) for m in _flat(self._members[named[0]]))
        if by_name and same:
            raise ValueError(
                f"two variables are called {var.name}: a config, which knows only "
                "names, cannot tell them apart; make a new MultiOptimizer of the layers"
            )
        self._seen.append((var, named[0]))
        return named[0]

    def _routed(self, variables: Sequence[tf.Variable]) -> list[list[int]]:
        """Return for each optimizer the positions of its variables among these."""
        numbers = [self._number_of(var) for var in variables]
        return [
            [position for position, n in enumerate(numbers) if n == number]
            for number in range(len(self.optimizers))
        ]

    # The step.

    @tf.autograph.experimental.do_not_convert
    def apply_gradients(
        self, grads_and_vars: Any, name: str | None = None, **kwargs: Any
    ) -> Any:
        """Take a step of each optimizer that has a gradient.

        Args:
            grads_and_vars: as in Keras.
            name: of the operations.
            **kwargs: for the `apply_gradients` of each.
        """
        grads_and_vars = list(grads_and_vars)
        pairs = [(grad, var) for grad, var in grads_and_vars if grad is not None]
        variables = [var for _, var in pairs]
        with tf.init_scope():
            self._create_all_weights(variables)
        if not pairs:
            return self.optimizers[0].apply_gradients(grads_and_vars, name=name)
        steps = [
            optimizer.apply_gradients(
                [pairs[position] for position in positions], name=name, **kwargs
            )
            for optimizer, positions in zip(
                self.optimizers, self._routed(variables), strict=True
            )
            if positions
        ]
        with after(*steps):
            return across_replicas(self._count, [])

    def _count(self, strategy: Any, _: Any) -> Any:
        return self.iterations.assign_add(1, read_value=False)

    # State.

    def _create_all_weights(self, var_list: Sequence[tf.Variable]) -> None:
        _ = self.iterations
        self._create_hypers()
        positions_of = self._routed(var_list)
        for optimizer, positions in zip(self.optimizers, positions_of, strict=True):
            optimizer._create_all_weights([var_list[i] for i in positions])

    def get_slot(self, var: tf.Variable, slot_name: str) -> tf.Variable:
        """Return a slot of the optimizer that `var` is for."""
        return self.optimizers[self._number_of(var)].get_slot(var, slot_name)

    @property
    def weights(self) -> list[tf.Variable]:
        """The count of all steps, and the state of each optimizer."""
        inner = (weight for each in self.optimizers for weight in each.weights)
        return [*self._weights, *inner]

    def variables(self) -> list[tf.Variable]:
        return self.weights

    # Configuration.

    def get_config(self) -> dict[str, Any]:
        """Return the optimizers serialised, and the names of their variables."""
        specs = [
            {"optimizer": serialized(optimizer), "weights": self._names(number)}
            for number, optimizer in enumerate(self.optimizers)
        ]
        return {"name": self._name, "optimizer_specs": specs}

    def _names(self, number: int) -> str | list[str]:
        members = self._members[number]
        if _is_rest(members):
            return EVERYTHING_ELSE
        flat = _flat(members)
        return [member if isinstance(member, str) else member.name for member in flat]

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Any:
        """Return the optimizer that `get_config` describes; `config` is left alone."""
        specs = [
            {**spec, "optimizer": deserialized(spec["optimizer"], custom_objects)}
            for spec in config["optimizer_specs"]
        ]
        return cls(**{**config, "optimizer_specs": specs})


def _is_rest(members: Any) -> bool:
    return members is ... or (isinstance(members, str) and members == EVERYTHING_ELSE)


def _flat(members: Any) -> list[Any]:
    """Return the variables, or names of variables, of layers in lists."""
    if _is_rest(members):
        return []
    if isinstance(members, list | tuple):
        return [one for member in members for one in _flat(member)]
    if isinstance(members, str) or _is_variable(members):
        return [members]
    if not hasattr(members, "weights"):
        raise TypeError(
            "an optimizer can be for a layer, a model, a variable or a list of these, "
            f"not for {members!r}"
        )
    return list(members.weights)


def _is_variable(member: Any) -> bool:
    return isinstance(member, tf.Variable | tf.distribute.DistributedValues)


def _is(var: tf.Variable, member: Any) -> bool:
    return var.name == member if isinstance(member, str) else var is container(member)
