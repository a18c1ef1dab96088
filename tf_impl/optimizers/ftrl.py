"""FTRL-Proximal: the TensorFlow side of `reference/optimizers/ftrl.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.tensors import Tensor, after


def _ftrl(w, g, n, z, power, learning_rate, l1, l2, l2_shrinkage):
    n_new = n + tf.square(g)
    sigma = (power(n_new) - power(n)) / learning_rate
    z = z + (g + (2 * l2_shrinkage - sigma) * w)
    shrunk = tf.sign(z) * l1 - z
    curvature = power(n_new) / learning_rate + 2 * l2
    # `not above` rather than `at most`: a NaN stays one.
    w = tf.where(tf.abs(z) <= l1, tf.zeros_like(w), shrunk / curvature)
    return w, n_new, z


def _ftrl_root(w, g, n, z, learning_rate_power, **coefficients):
    return _ftrl(w, g, n, z, tf.sqrt, **coefficients)


def _ftrl_power(w, g, n, z, learning_rate_power, **coefficients):
    return _ftrl(w, g, n, z, lambda x: tf.pow(x, -learning_rate_power), **coefficients)


def _kernel(w, g, n, z, learning_rate, learning_rate_power, l1, l2, l2_shrinkage):
    step = tf.raw_ops.ResourceApplyFtrlV2(
        var=w,
        accum=n,
        linear=z,
        grad=g,
        lr=learning_rate,
        l1=l1,
        l2=l2,
        l2_shrinkage=l2_shrinkage,
        lr_power=learning_rate_power,
    )
    # Where z became NaN, that operation makes w zero, and this one NaN.
    with tf.control_dependencies([step]):
        z_new = tf.raw_ops.ReadVariableOp(resource=z, dtype=g.dtype)
        return tf.raw_ops.ResourceApplyGradientDescent(
            var=w, alpha=tf.zeros_like(learning_rate), delta=z_new
        )


class Ftrl(Optimizer):
    """Follow the regularized leader, proximal (McMahan et al., 2013, "Ad click
    prediction: a view from the trenches", algorithm 1).

    Slots: `accumulator`, the sum `n` of squared gradients; `linear`, the paper's `z`.

    The weights are rebuilt from `z`: as in Keras, what they were before the first step
    only enters through the change of `n`. They are 0 wherever `|z| <= l1`.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        learning_rate_power: at most 0, default -0.5: the learning rate falls as
            `n**learning_rate_power`.
        initial_accumulator_value: where `n` starts, at least 0, default 0.1.
        l1_regularization_strength, l2_regularization_strength: at least 0, default 0.
        l2_shrinkage_regularization_strength: at least 0, default 0: adds
            `2 * strength * w` to the gradient in `z`, not in `n`.
        beta: the paper's beta, default 0.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows.

    Raises:
        ValueError: an argument is outside its domain.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        learning_rate_power: float = -0.5,
        initial_accumulator_value: float = 0.1,
        l1_regularization_strength: float = 0.0,
        l2_regularization_strength: float = 0.0,
        name: str = "Ftrl",
        l2_shrinkage_regularization_strength: float = 0.0,
        beta: float = 0.0,
        **kwargs: Any,
    ) -> None:
        if learning_rate_power > 0:
            raise ValueError(
                f"`learning_rate_power` must be at most 0, not {learning_rate_power!r}"
            )
        for argument, value in (
            ("initial_accumulator_value", initial_accumulator_value),
            ("l1_regularization_strength", l1_regularization_strength),
            ("l2_regularization_strength", l2_regularization_strength),
            (
                "l2_shrinkage_regularization_strength",
                l2_shrinkage_regularization_strength,
            ),
        ):
            if value < 0:
                raise ValueError(f"`{argument}` must be at least 0, not {value!r}")
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("learning_rate_power", learning_rate_power)
        self._set_hyper("l1_regularization_strength", l1_regularization_strength)
        self._set_hyper("l2_regularization_strength", l2_regularization_strength)
        self._set_hyper("beta", beta)
        self._initial_accumulator_value = initial_accumulator_value
        self._l2_shrinkage_regularization_strength = (
            l2_shrinkage_regularization_strength
        )
        self._define(
            _ftrl_root,
            {"accumulator": initial_accumulator_value, "linear": 0.0},
            kernel=_kernel,
        )

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        # Keras makes both slots of one variable before those of the next.
        for var in var_list:
            super()._create_slots([var])

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        # n**-power / learning_rate + beta / learning_rate + 2 * l2 is the curvature.
        beta_as_l2 = tf.math.divide_no_nan(self._real_hyper("beta"), 2 * learning_rate)
        return {
            "learning_rate": learning_rate,
            "learning_rate_power": self._real_hyper("learning_rate_power"),
            "l1": self._real_hyper("l1_regularization_strength"),
            "l2": self._real_hyper("l2_regularization_strength") + beta_as_l2,
            "l2_shrinkage": self._l2_shrinkage_regularization_strength,
        }

    def _with_rule(
        self,
        rule: Callable[..., Any],
        coefficients: dict[str, Tensor],
        update: Callable[..., Any],
    ) -> Any:
        # A root is ten times as fast as a power, and correctly rounded.
        is_root = tf.equal(coefficients["learning_rate_power"], -0.5)

        def branch(rule: Callable[..., Any]) -> Callable[[], Any]:
            def run() -> Tensor:
                with after(update(rule)):
                    return tf.constant(0)

            return run

        return tf.cond(is_root, branch(_ftrl_root), branch(_ftrl_power))

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            "initial_accumulator_value": self._initial_accumulator_value,
            **self._hyper_config(
                "learning_rate_power",
                "l1_regularization_strength",
                "l2_regularization_strength",
                "beta",
            ),
            "l2_shrinkage_regularization_strength": (
                self._l2_shrinkage_regularization_strength
            ),
        }
