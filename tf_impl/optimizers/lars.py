"""LARS: the TensorFlow side of `reference/optimizers/lars.py`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf_impl.base import Definition, Optimizer
from tf_impl.names import named_in
from tf_impl.optimizers.lamb import trust_ratio
from tf_impl.tensors import Tensor
from tf_impl.updates import Rule


@functools.cache
def _lars(classic: bool, nesterov: bool, decays: bool, adapts: bool) -> Rule:
    def lars(w, g, v, learning_rate, momentum, weight_decay_rate, eeta):
        def scaled(u):
            if not adapts:
                return learning_rate * u
            return learning_rate * trust_ratio(w, u, eeta) * u

        if decays:
            g = g + weight_decay_rate * w
        if classic:
            step = scaled(g)
            v = momentum * v + step
            return w - (momentum * v + step if nesterov else v), v
        v = momentum * v + g
        return w - scaled(momentum * v + g if nesterov else v), v

    return lars


class LARS(Optimizer):
    """LARS (You, Gitman, Ginsburg, 2017, arXiv:1708.03888, algorithm 1).

    Replaces official.modeling.optimization.lars.LARS of tensorflow/models.

    Slot: `momentum`.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.01.
        momentum: 0 to 1, default 0.9.
        weight_decay_rate: 0 or more, default 0: added to the gradient, times the
            weights.
        eeta: trust coefficient, 0.001.
        nesterov: whether to look one momentum step ahead.
        classic_momentum: whether the momentum collects scaled gradients, learning rate
            included; otherwise it collects gradients, and what it holds is scaled.
        exclude_from_weight_decay: regular expressions; a variable in whose name one is
            found does not decay.
        exclude_from_layer_adaptation: the same for variables whose steps are not
            scaled; `None`: those that do not decay.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        momentum: Any = 0.9,
        weight_decay_rate: Any = 0.0,
        eeta: Any = 0.001,
        nesterov: bool = False,
        classic_momentum: bool = True,
        exclude_from_weight_decay: Sequence[str] | None = None,
        exclude_from_layer_adaptation: Sequence[str] | None = None,
        name: str = "LARS",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("momentum", momentum)
        self._set_hyper("weight_decay_rate", weight_decay_rate)
        self._set_hyper("eeta", eeta)
        self.nesterov = nesterov
        self.classic_momentum = classic_momentum
        self.exclude_from_weight_decay = exclude_from_weight_decay
        self.exclude_from_layer_adaptation = exclude_from_layer_adaptation
        self._definitions = {
            (decays, adapts): self._defined(
                _lars(classic_momentum, nesterov, decays, adapts),
                {"momentum": 0.0},
                every_row=("w", "momentum"),
                elementwise=not adapts,
            )
            for decays in (True, False)
            for adapts in (True, False)
        }

    def _definition_for(self, var: tf.Variable) -> Definition:
        undecayed = self.exclude_from_weight_decay or ()
        unadapted = self.exclude_from_layer_adaptation
        if unadapted is None:
            unadapted = undecayed
        return self._definitions[
            not named_in(var, undecayed), not named_in(var, unadapted)
        ]

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        return {
            "learning_rate": learning_rate,
            "momentum": self._real_hyper("momentum"),
            "weight_decay_rate": self._real_hyper("weight_decay_rate"),
            "eeta": self._real_hyper("eeta"),
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("momentum", "weight_decay_rate", "eeta"),
            "nesterov": self.nesterov,
            "classic_momentum": self.classic_momentum,
            "exclude_from_weight_decay": self.exclude_from_weight_decay,
            "exclude_from_layer_adaptation": self.exclude_from_layer_adaptation,
        }
