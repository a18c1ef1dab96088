"""RAdam: the TensorFlow side of `reference/optimizers/rectified_adam.py`."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor
from tf_impl.updates import Rule


def rectifier(t: Tensor, beta_2: Tensor, threshold: Tensor) -> Tensor:
    """Return the factor `r` of step `t`, or 0 where the average is shorter."""
    longest = 2 / (1 - beta_2) - 1
    power = beta_2**t
    length = longest - 2 * t * power / (1 - power)
    # In factors, none of which overflows.
    ratio = (length - 4) / (longest - 4) * ((length - 2) / (longest - 2))
    return tf.where(
        length >= threshold, tf.sqrt(ratio * longest / length), tf.zeros_like(length)
    )


def warmed_up(
    t: Tensor, rate: Tensor, total: Tensor, proportion: Tensor, least: Tensor
) -> Tensor:
    """Return the rate of step `t`: up to `rate`, then down to `least`, linearly."""
    rise = total * proportion
    fall = tf.maximum(total - rise, 1)
    done = tf.minimum((t - rise) / fall, 1)
    warm = tf.where(t <= rise, rate * t / rise, rate + (least - rate) * done)
    return tf.where(total > 0, warm, rate)


def _direction(m, v, bias_1, bias_2, r, epsilon):
    m_hat = m / bias_1
    return tf.where(r > 0, r * m_hat / (tf.sqrt(v / bias_2) + epsilon), m_hat)


def _rectified_adam(
    w,
    g,
    m,
    v,
    learning_rate,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    **coefficients,
):
    m = beta_1 * m + one_minus_beta_1 * g
    v = beta_2 * v + one_minus_beta_2 * tf.square(g)
    w = w - learning_rate * _direction(m, v, **coefficients)
    return w, m, v


def _rectified_amsgrad(
    w,
    g,
    m,
    v,
    vhat,
    learning_rate,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    **coefficients,
):
    m = beta_1 * m + one_minus_beta_1 * g
    v = beta_2 * v + one_minus_beta_2 * tf.square(g)
    vhat = tf.maximum(vhat, v)
    w = w - learning_rate * _direction(m, vhat, **coefficients)
    return w, m, v, vhat


def _radam(
    w,
    g,
    m,
    v,
    learning_rate,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    bias_1,
    r,
    epsilon,
):
    m = beta_1 * m + one_minus_beta_1 * g
    v = beta_2 * v + one_minus_beta_2 * tf.square(g)
    m_hat = m / bias_1
    w = w - learning_rate * tf.where(r > 0, r * m_hat / (tf.sqrt(v) + epsilon), m_hat)
    return w, m, v


class RectifiedAdam(Optimizer):
    """RAdam (Liu et al., 2019, arXiv:1908.03265, algorithm 2), as in Addons.

    Replaces tensorflow_addons.optimizers.RectifiedAdam, but no hyperparameter is frozen
    when the optimizer is made. Slots: `m` and `v`, the averages of gradients and of
    squared gradients; `vhat` (amsgrad), the largest `v`.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        beta_1, beta_2: decay of `m` and `v`, 0 to below 1, defaults 0.9 and 0.999.
        epsilon: outside the root of the corrected `v`, 1e-7.
        weight_decay: decoupled, times the learning rate; as `learning_rate`, default 0.
        amsgrad: whether to divide by the largest `v` so far.
        sma_threshold: the length of the average from which on the step is rectified;
            before, it is momentum. At least 4, default 5.
        total_steps: above 0, the learning rate rises, then falls to `min_lr`.
        warmup_proportion: the part of the steps in which it rises, default 0.1.
        min_lr: 0.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: `m`, `v` and `vhat` on every row, the weights on touched rows.
    """

    _DECAY_TIMES_LEARNING_RATE = True

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-7,
        weight_decay: Any = 0.0,
        amsgrad: bool = False,
        sma_threshold: Any = 5.0,
        total_steps: Any = 0,
        warmup_proportion: Any = 0.1,
        min_lr: Any = 0.0,
        name: str = "RectifiedAdam",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, weight_decay=weight_decay, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self._set_hyper("sma_threshold", sma_threshold)
        self._set_hyper("total_steps", total_steps)
        self._set_hyper("warmup_proportion", warmup_proportion)
        self._set_hyper("min_lr", min_lr)
        self.epsilon = epsilon_or_default(epsilon)
        self.amsgrad = amsgrad
        self._define_with_maximum(_rectified_adam, _rectified_amsgrad)

    def _define_with_maximum(self, rule: Rule, amsgrad: Rule) -> None:
        slots = {"m": 0.0, "v": 0.0, **({"vhat": 0.0} if self.amsgrad else {})}
        self._define(amsgrad if self.amsgrad else rule, slots, every_row=tuple(slots))

    def _real_learning_rate(self, step_dtype: tf.DType) -> Tensor:
        return warmed_up(
            tf.cast(self.iterations + 1, tf.float64),
            super()._real_learning_rate(step_dtype),
            self._real_hyper("total_steps"),
            self._real_hyper("warmup_proportion"),
            self._real_hyper("min_lr"),
        )

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("beta_1")
        beta_2 = self._real_hyper("beta_2")
        return {
            "learning_rate": learning_rate,
            "beta_1": beta_1,
            "one_minus_beta_1": 1 - beta_1,
            "beta_2": beta_2,
            "one_minus_beta_2": 1 - beta_2,
            "bias_1": 1 - beta_1**t,
            "bias_2": 1 - beta_2**t,
            "r": rectifier(t, beta_2, self._real_hyper("sma_threshold")),
            "epsilon": self.epsilon,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta_1", "beta_2", "sma_threshold"),
            "epsilon": self.epsilon,
            "amsgrad": self.amsgrad,
            "total_steps": int(self._serialize_hyperparameter("total_steps")),
            **self._hyper_config("warmup_proportion", "min_lr"),
        }


class RAdam(Optimizer):
    """RAdam (Liu et al., 2019, arXiv:1908.03265, algorithm 2), as in torch.

    Slots: `m` and `v`, the averages of gradients and squared gradients.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        beta_1, beta_2: decay of `m` and `v`, 0 to below 1, defaults 0.9 and 0.999.
        epsilon: outside the root of `v`, which is not corrected, 1e-8.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-8,
        name: str = "RAdam",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self.epsilon = epsilon_or_default(epsilon)
        self._define(_radam, {"m": 0.0, "v": 0.0}, every_row=("w", "m", "v"))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("beta_1")
        beta_2 = self._real_hyper("beta_2")
        just_above_5 = tf.constant(np.nextafter(5.0, 6.0), tf.float64)
        r = rectifier(t, beta_2, just_above_5)
        return {
            "learning_rate": learning_rate,
            "beta_1": beta_1,
            "one_minus_beta_1": 1 - beta_1,
            "beta_2": beta_2,
            "one_minus_beta_2": 1 - beta_2,
            "bias_1": 1 - beta_1**t,
            "r": r * tf.sqrt(1 - beta_2**t),
            "epsilon": self.epsilon,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta_1", "beta_2"),
            "epsilon": self.epsilon,
        }
