"""LAMB: the TensorFlow side of `reference/optimizers/lamb.py`."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf_impl.base import Definition, Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.names import named_in
from tf_impl.tensors import Tensor
from tf_impl.updates import Rule


def trust_ratio(w: Tensor, u: Tensor, trust: Tensor | None = None) -> Tensor:
    """Return how much longer `w` is than `u`, times `trust`; 1 if either is zero."""
    w_norm, u_norm = tf.norm(w), tf.norm(u)
    length = w_norm if trust is None else trust * w_norm
    return tf.where((w_norm > 0) & (u_norm > 0), length / u_norm, tf.ones_like(w_norm))


@functools.cache
def _lamb(decay: str, adapts: bool) -> Rule:
    """Return the rule that decays `"in ratio"`, `"first"` or not at all."""

    def lamb(
        w,
        g,
        m,
        v,
        learning_rate,
        beta_1,
        one_minus_beta_1,
        bias_of_m,
        beta_2,
        one_minus_beta_2,
        bias_of_v,
        epsilon,
        weight_decay,
        learning_rate_times_decay,
    ):
        if decay == "first":
            w = w - learning_rate_times_decay * w
        m = beta_1 * m + one_minus_beta_1 * g
        v = beta_2 * v + one_minus_beta_2 * tf.square(g)
        u = m / bias_of_m / (tf.sqrt(v / bias_of_v) + epsilon)
        if decay == "in ratio":
            u = u + weight_decay * w
        if adapts:
            u = trust_ratio(w, u) * u
        return w - learning_rate * u, m, v

    return lamb


class LAMB(Optimizer):
    """LAMB (You et al., 2019, arXiv:1904.00962, algorithm 2, `phi` the identity).

    Replaces tensorflow_addons.optimizers.LAMB and keras.optimizers.Lamb
    (`decay_first=True`, `epsilon=1e-7`).

    Slots: `m`, the average of gradients; `v`, that of squared gradients.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        beta_1, beta_2: decay of `m` and `v`, 0 to below 1, defaults 0.9 and 0.999.
        epsilon: added to the bias-corrected root, 1e-6.
        weight_decay: 0 or more, default 0: added to the direction, times the weights.
        exclude_from_weight_decay: regular expressions; a variable in whose name one is
            found does not decay.
        exclude_from_layer_adaptation: the same for variables whose steps are not made
            as long as the variable; `None`: those that do not decay. The empty list
            excludes none (in Addons it stands for `None`).
        decay_first: take `learning_rate * weight_decay` off the weights before the
            step, as Keras 3 does, instead.
        layer_adaptation: `False` excludes all variables.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Names are those of the variables without what MirroredStrategy adds, so that all
    replicas agree; `:0` at their end may be asked for or not.

    Sparse gradients: every row.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-6,
        weight_decay: Any = 0.0,
        exclude_from_weight_decay: Sequence[str] | None = None,
        exclude_from_layer_adaptation: Sequence[str] | None = None,
        name: str = "LAMB",
        decay_first: bool = False,
        layer_adaptation: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self._set_hyper("weight_decay", weight_decay)
        self.epsilon = epsilon_or_default(epsilon)
        self.decay_first = decay_first
        self.layer_adaptation = layer_adaptation
        self.exclude_from_weight_decay = exclude_from_weight_decay
        self.exclude_from_layer_adaptation = exclude_from_layer_adaptation
        slots = {"m": 0.0, "v": 0.0}
        self._definitions = {
            (decays, adapts): self._defined(
                _lamb(decays and ("first" if decay_first else "in ratio"), adapts),
                slots,
                every_row=("w", *slots),
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
        adapts = self.layer_adaptation and not named_in(var, unadapted)
        return self._definitions[not named_in(var, undecayed), adapts]

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("beta_1")
        beta_2 = self._real_hyper("beta_2")
        weight_decay = self._real_hyper("weight_decay")
        return {
            "learning_rate": learning_rate,
            "beta_1": beta_1,
            "one_minus_beta_1": 1 - beta_1,
            "bias_of_m": 1 - beta_1**t,
            "beta_2": beta_2,
            "one_minus_beta_2": 1 - beta_2,
            "bias_of_v": 1 - beta_2**t,
            "epsilon": self.epsilon,
            "weight_decay": weight_decay,
            "learning_rate_times_decay": learning_rate * weight_decay,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta_1", "beta_2"),
            "epsilon": self.epsilon,
            **self._hyper_config("weight_decay"),
            "exclude_from_weight_decay": self.exclude_from_weight_decay,
            "exclude_from_layer_adaptation": self.exclude_from_layer_adaptation,
            "decay_first": self.decay_first,
            "layer_adaptation": self.layer_adaptation,
        }
