"""Decoupled weight decay, and learning rates for single variables.

Loshchilov and Hutter, 2017, "Decoupled weight decay regularization", arXiv:1711.05101:
the weights lose a part of themselves before the step, and no slot sees it.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from tf_impl.hypers import RealHypers, with_schedule
from tf_impl.names import named_in
from tf_impl.tensors import Tensor, container
from tf_impl.updates import Rule, takes_touched

EVERY_ROW = "every_row"
TOUCHED_ROWS = "touched_rows"
DECAY = "decoupled_weight_decay"  # the coefficient


class DecayingHypers(RealHypers):
    """OptimizerV2 that knows which variables decay by how much, and learn how fast.

    Args:
        name: as in Keras.
        weight_decay: the part of the weights that each step takes away before the rule:
            number, schedule or callable; `None`: no decay.
        decay_rows: the rows that a sparse gradient decays, `"touched_rows"` (as in
            TensorFlow Addons) or `"every_row"` (as in Keras 3, torch, optax);
            `None`: as in the class's home, which is Addons if not stated. All rows if
            `sparse` is `"every_row"`.
        decay_times_learning_rate: whether the learning rate multiplies the decay, as in
            Keras 3, torch and optax, not in Addons; `None`: as in the class's home.
        schedule_multiplier: number, schedule or callable that multiplies the learning
            rate and the decay (once): the paper's eta, to anneal both together.
        exclude_from_weight_decay: variables that do not decay: a list of variables, and
            of regular expressions to find in their names, with or without the `:0`.
        learning_rate_multipliers: for regular expressions to find in the names of
            variables, factors on their learning rate. At most one may be found.
        **kwargs: as in Keras.

    Raises:
        TypeError, ValueError: an argument is not one of these; or, before anything is
            updated, several expressions give one variable different factors.
    """

    _DECAY_ROWS = TOUCHED_ROWS
    _DECAY_TIMES_LEARNING_RATE = False

    def __init__(
        self,
        name: str,
        *,
        weight_decay: Any = None,
        decay_rows: str | None = None,
        decay_times_learning_rate: bool | None = None,
        schedule_multiplier: Any = None,
        exclude_from_weight_decay: Sequence[Any] | None = None,
        learning_rate_multipliers: Mapping[str, float] | None = None,
        **kwargs: Any,
    ) -> None:
        if decay_rows not in (None, EVERY_ROW, TOUCHED_ROWS):
            raise ValueError(
                f"`decay_rows` must be None, {EVERY_ROW!r} or {TOUCHED_ROWS!r}, "
                f"not {decay_rows!r}"
            )
        if isinstance(exclude_from_weight_decay, str):
            raise TypeError(
                "`exclude_from_weight_decay` must be a list of variables or regular "
                f"expressions, not {exclude_from_weight_decay!r}"
            )
        super().__init__(name, **kwargs)
        self._weight_decays = weight_decay is not None
        self._is_annealed = schedule_multiplier is not None
        for hyper, value in (
            ("weight_decay", weight_decay),
            ("schedule_multiplier", schedule_multiplier),
        ):
            if isinstance(value, int | float) and not value >= 0:
                raise ValueError(f"`{hyper}` must be at least 0, not {value!r}")
            if value is not None:
                self._set_hyper(hyper, value)
        self._decay_rows = decay_rows or self._DECAY_ROWS
        self._decay_times_learning_rate = (
            self._DECAY_TIMES_LEARNING_RATE
            if decay_times_learning_rate is None
            else decay_times_learning_rate
        )
        self.exclude_from_weight_decay = exclude_from_weight_decay
        self.learning_rate_multipliers = dict(learning_rate_multipliers or {})
        for pattern, factor in self.learning_rate_multipliers.items():
            if not factor >= 0:
                raise ValueError(
                    f"a multiplier must be at least 0, not {factor!r} for {pattern!r}"
                )
        self._decay_list: set[Any] | None = None  # of the call that is under way

    # Which variables.

    def minimize(
        self,
        loss: Any,
        var_list: Any,
        grad_loss: Any = None,
        name: str | None = None,
        tape: Any = None,
        decay_var_list: Sequence[tf.Variable] | None = None,
    ) -> Any:
        """As in Keras; `decay_var_list` as in `apply_gradients`."""
        grads_and_vars = self._compute_gradients(
            loss, var_list=var_list, grad_loss=grad_loss, tape=tape
        )
        given: dict[str, Any] = {"name": name}
        if decay_var_list is not None:  # a subclass may not know the argument
            given["decay_var_list"] = decay_var_list
        return self.apply_gradients(grads_and_vars, **given)

    def apply_gradients(
        self,
        grads_and_vars: Any,
        name: str | None = None,
        experimental_aggregate_gradients: bool = True,
        decay_var_list: Sequence[tf.Variable] | None = None,
    ) -> Any:
        """As in Keras.

        Args:
            grads_and_vars, name, experimental_aggregate_gradients: as in Keras.
            decay_var_list: the variables that decay in this step, whatever is excluded;
                an empty list: none. `None`: all that are not excluded.

        Raises:
            ValueError: a `decay_var_list` without `weight_decay`.
        """
        if decay_var_list is not None and not self._weight_decays:
            raise ValueError("`decay_var_list` needs an optimizer with `weight_decay`")
        if decay_var_list is not None:
            self._decay_list = {container(var)._unique_id for var in decay_var_list}
        try:
            return super().apply_gradients(
                grads_and_vars, name, experimental_aggregate_gradients
            )
        finally:
            self._decay_list = None

    def _decays(self, var: tf.Variable) -> bool:
        """Return whether a variable, or the one of which it is a replica's, decays."""
        if not self._weight_decays:
            return False
        var = container(var)
        if self._decay_list is not None:
            return var._unique_id in self._decay_list
        return not any(
            named_in(var, [entry])
            if isinstance(entry, str)
            else container(entry)._unique_id == var._unique_id
            for entry in self.exclude_from_weight_decay or ()
        )

    def _learning_rate_factor(self, var: tf.Variable) -> float:
        """Return the factor on the learning rate of a variable."""
        if not self.learning_rate_multipliers:
            return 1.0
        var = container(var)
        found = {
            pattern: float(factor)
            for pattern, factor in self.learning_rate_multipliers.items()
            if named_in(var, [pattern])
        }
        if len(set(found.values())) > 1:
            raise ValueError(
                f"`learning_rate_multipliers` has several factors for {var.name}: "
                f"{found}; let one expression alone be found in it, as by ^ and $"
            )
        return next(iter(found.values()), 1.0)

    # How much.

    def _annealed(self, learning_rate: Tensor) -> Tensor:
        if not self._is_annealed:
            return learning_rate
        return self._real_hyper("schedule_multiplier") * learning_rate

    def _decay_coefficient(self, learning_rate: Tensor) -> dict[str, Tensor]:
        """Return the part that a step takes away, by name, where there is decay.

        Args:
            learning_rate: annealed, float64.
        """
        if not self._weight_decays:
            return {}
        decay = self._real_hyper("weight_decay")
        if self._decay_times_learning_rate:
            return {DECAY: decay * learning_rate}
        return {DECAY: self._annealed(decay)}

    # Configuration.

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Any:
        """Return the optimizer that `get_config` describes; `config` is left alone."""
        for name in ("weight_decay", "schedule_multiplier"):
            config = with_schedule(config, name)
        return super().from_config(dict(config), custom_objects=custom_objects)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor, as plain Python values.

        An excluded variable is written as an expression for its name.
        """
        config = super().get_config()
        if self._weight_decays:
            excluded = self.exclude_from_weight_decay
            config |= self._hyper_config("weight_decay")
            config["exclude_from_weight_decay"] = excluded and [
                entry
                if isinstance(entry, str)
                else f"^{re.escape(container(entry).name)}$"
                for entry in excluded
            ]
        if self._decay_rows != self._DECAY_ROWS:
            config["decay_rows"] = self._decay_rows
        if self._decay_times_learning_rate != self._DECAY_TIMES_LEARNING_RATE:
            config["decay_times_learning_rate"] = self._decay_times_learning_rate
        if self._is_annealed:
            config |= self._hyper_config("schedule_multiplier")
        if self.learning_rate_multipliers:
            config["learning_rate_multipliers"] = dict(self.learning_rate_multipliers)
        return config


@functools.cache
def decaying(rule: Rule, moves_every_row: bool, decays_every_row: bool) -> Rule:
    """Return the rule with decay before it, always the same function for the same rule.

    Args:
        rule: as in `Optimizer._defined`.
        moves_every_row: whether the rule's result for the weights is kept on every row.
        decays_every_row: whether all rows decay, or only those that are touched.
    """

    def with_decay(w, g, *slots, touched, decoupled_weight_decay, **coefficients):
        decayed = w - decoupled_weight_decay * w
        if moves_every_row and not decays_every_row:
            decayed = tf.where(touched, decayed, w)
        told = {"touched": touched} if takes_touched(rule) else {}
        w, *others = rule(decayed, g, *slots, **told, **coefficients)
        if decays_every_row and not moves_every_row:
            w = tf.where(touched, w, decayed)
        return (w, *others)

    return with_decay


class DecoupledWeightDecayExtension:
    """Puts the weight decay of any optimizer of `tf_impl` first among its arguments.

    To be named before the optimizer, as in TensorFlow Addons:

    >>> import tf_impl
    >>> class MomentumW(DecoupledWeightDecayExtension, tf_impl.SGD): ...
    >>> MomentumW(0.01, momentum=0.9).get_config()["weight_decay"]
    0.01

    Args:
        weight_decay: number, schedule or callable.
        exclude_from_weight_decay: as in `DecayingHypers`.
        **kwargs: those of the optimizer.

    Raises:
        TypeError: the optimizer is not of `tf_impl`, or has a weight decay of its own.
    """

    def __init__(
        self,
        weight_decay: Any,
        exclude_from_weight_decay: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if weight_decay is None:
            raise TypeError("`weight_decay` must be a number, schedule or callable")
        super().__init__(  # type: ignore[call-arg]
            weight_decay=weight_decay,
            exclude_from_weight_decay=exclude_from_weight_decay,
            **kwargs,
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not issubclass(cls, DecayingHypers):
            others = [base.__name__ for base in cls.__mro__[2:-1]]
            raise TypeError(
                f"{cls.__name__} must extend an optimizer of tf_impl, not {others}"
            )
        for base in cls.__mro__[cls.__mro__.index(DecoupledWeightDecayExtension) + 1 :]:
            if base is DecayingHypers:
                break
            own = vars(base).get("__init__")
            if own and "weight_decay" in inspect.signature(own).parameters:
                raise TypeError(
                    f"{base.__name__} has a weight decay of its own: it would decay "
                    "twice"
                )


def extend_with_decoupled_weight_decay(base_optimizer: Any) -> Any:
    """Return a subclass whose first argument is the weight decay, as Addons does.

    Args:
        base_optimizer: a class of `tf_impl`.

    Raises:
        TypeError: it is not of `tf_impl`, or has a weight decay of its own.

    >>> import tf_impl
    >>> extend_with_decoupled_weight_decay(tf_impl.Adadelta)(0.01).get_config()["name"]
    'Adadelta'
    """

    class OptimizerWithDecoupledWeightDecay(
        DecoupledWeightDecayExtension, base_optimizer
    ):
        """As the base, with weight decay as the first argument."""

    return OptimizerWithDecoupledWeightDecay


def normalized_weight_decay(
    norm: float, batch_size: int, samples: int, epochs: int
) -> float:
    """Return the decay of a step, `norm * sqrt(batch_size / (samples * epochs))`
    (Loshchilov and Hutter, 2017, appendix B.1).

    Args:
        norm: the normalised decay, at least 0; 0.025 to 0.05 in the paper.
        batch_size, samples, epochs: examples of a step, of an epoch, and the epochs
            until the end or the next restart; each positive.

    Raises:
        ValueError: an argument is outside its domain.
    """
    if not norm >= 0 or not all(n > 0 for n in (batch_size, samples, epochs)):
        raise ValueError(
            "`norm` must be at least 0 and the sizes positive, not "
            f"{(norm, batch_size, samples, epochs)}"
        )
    steps = samples * epochs / batch_size
    return norm / math.sqrt(steps)
