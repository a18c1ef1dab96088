"""Yogi: the TensorFlow side of `reference/optimizers/yogi.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor


def _steep_tanh(x):
    return tf.tanh(10 * x)


ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "sign": tf.sign,
    "tanh": _steep_tanh,
}


def _new_v(v, g, activation, one_minus_beta_2):
    square = tf.square(g)
    return v + one_minus_beta_2 * ACTIVATIONS[activation](square - v) * square


def _proximal(w, direction, v, step_size, epsilon, l1, l2):
    rate = step_size / (tf.sqrt(v) + epsilon)
    w = w - rate * direction
    shrunk = tf.sign(w) * tf.maximum(tf.abs(w) - rate * l1, 0)
    return shrunk / (1 + rate * l2)


def _yogi(activation):
    def rule(w, g, v, m, beta_1, one_minus_beta_1, one_minus_beta_2, **coefficients):
        m = beta_1 * m + one_minus_beta_1 * g
        v = _new_v(v, g, activation, one_minus_beta_2)
        return _proximal(w, m, v, **coefficients), v, m

    return rule


def _without_momentum(activation):
    def rule(w, g, v, one_minus_beta_2, **coefficients):
        v = _new_v(v, g, activation, one_minus_beta_2)
        return _proximal(w, g, v, **coefficients), v

    return rule


RULES = {
    (has_m, activation): (_yogi if has_m else _without_momentum)(activation)
    for has_m in (True, False)
    for activation in ACTIVATIONS
}


class Yogi(Optimizer):
    """Yogi (Zaheer et al., 2018, NeurIPS, algorithm 2, with a bias correction).

    Replaces tensorflow_addons.optimizers.Yogi. Slots: `v`, the second moment, which
    moves towards each squared gradient by a part of that; `m` (with beta1), the average
    of gradients.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.01.
        beta1: decay of `m`, 0 to below 1, default 0.9. Whether it is zero is decided
            when the optimizer is made.
        beta2: 1 - beta2 is that part, default 0.999.
        epsilon: outside the root, 1e-3; zero is allowed.
        l1_regularization_strength, l2_regularization_strength: of a proximal step after
            the gradient step, at the rate of each element; default 0.
        initial_accumulator_value: where `v` starts, 1e-6.
        activation: `"sign"`, or `"tanh"` of 10 times the difference.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: `m` on every row, `v` and the weights on touched rows.

    Raises:
        ValueError: `activation` is neither.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        beta1: Any = 0.9,
        beta2: Any = 0.999,
        epsilon: Any = 1e-3,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        initial_accumulator_value: float = 1e-6,
        activation: str = "sign",
        name: str = "Yogi",
        **kwargs: Any,
    ) -> None:
        if activation not in ACTIVATIONS:
            raise ValueError(
                f"`activation` must be 'sign' or 'tanh', not {activation!r}"
            )
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta1)
        self._set_hyper("beta_2", beta2)
        self._set_hyper("epsilon", epsilon)
        self._set_hyper("l1_regularization_strength", l1_regularization_strength)
        self._set_hyper("l2_regularization_strength", l2_regularization_strength)
        self._activation = activation
        self._initial_accumulator_value = initial_accumulator_value
        self._has_m = callable(beta1) or tf.is_tensor(beta1) or beta1 != 0
        slots = {"v": initial_accumulator_value}
        if self._has_m:
            slots["m"] = 0.0
        rule = RULES[self._has_m, activation]
        self._define(rule, slots, every_row=("m",) if self._has_m else ())

    def _create_slots(self, var_list: Any) -> None:
        for var in var_list:  # in Addons' order, which weights are kept in
            super()._create_slots([var])

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("beta_1")
        beta_2 = self._real_hyper("beta_2")
        of_m = {"beta_1": beta_1, "one_minus_beta_1": 1 - beta_1}
        return {
            **(of_m if self._has_m else {}),
            "one_minus_beta_2": 1 - beta_2,
            "step_size": learning_rate * tf.sqrt(1 - beta_2**t) / (1 - beta_1**t),
            "epsilon": self._real_hyper("epsilon"),
            "l1": self._real_hyper("l1_regularization_strength"),
            "l2": self._real_hyper("l2_regularization_strength"),
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            "beta1": self._serialize_hyperparameter("beta_1"),
            "beta2": self._serialize_hyperparameter("beta_2"),
            **self._hyper_config(
                "epsilon", "l1_regularization_strength", "l2_regularization_strength"
            ),
            "activation": self._activation,
            "initial_accumulator_value": self._initial_accumulator_value,
        }


def _optax_yogi(
    w,
    g,
    m,
    v,
    learning_rate,
    beta_1,
    one_minus_beta_1,
    one_minus_beta_2,
    bias_1,
    bias_2,
    epsilon,
):
    m = beta_1 * m + one_minus_beta_1 * g
    v = _new_v(v, g, "sign", one_minus_beta_2)
    w = w - learning_rate * (m / bias_1) / (tf.sqrt(v / bias_2) + epsilon)
    return w, m, v


class OptaxYogi(Optimizer):
    """Yogi (Zaheer et al., 2018, NeurIPS, algorithm 2), as in optax.

    Slots: `m`, the average of gradients, and `v`, the second moment; both start at
    `initial_accumulator_value` and are corrected for bias.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.01.
        beta_1, beta_2: as in `Yogi`, defaults 0.9 and 0.999.
        epsilon: outside the root of the corrected `v`, 1e-3.
        initial_accumulator_value: where `m` and `v` start, 1e-6.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-3,
        initial_accumulator_value: float = 1e-6,
        name: str = "OptaxYogi",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self.epsilon = epsilon_or_default(epsilon)
        self._initial_accumulator_value = initial_accumulator_value
        slots = dict.fromkeys(("m", "v"), initial_accumulator_value)
        self._define(_optax_yogi, slots, every_row=("w", "m", "v"))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("beta_1")
        beta_2 = self._real_hyper("beta_2")
        return {
            "learning_rate": learning_rate,
            "beta_1": beta_1,
            "one_minus_beta_1": 1 - beta_1,
            "one_minus_beta_2": 1 - beta_2,
            "bias_1": 1 - beta_1**t,
            "bias_2": 1 - beta_2**t,
            "epsilon": self.epsilon,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta_1", "beta_2"),
            "epsilon": self.epsilon,
            "initial_accumulator_value": self._initial_accumulator_value,
        }
