"""Nadam: the TensorFlow side of `reference/optimizers/nadam.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.legacy_keras import LearningRateSchedule
from tf_impl.tensors import Tensor, after

SCHEDULE_DECAY = 0.004


def _nadam(
    w,
    g,
    m,
    v,
    learning_rate,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    share_of_g,
    share_of_m,
    bias_of_v,
    epsilon,
):
    m = beta_1 * m + one_minus_beta_1 * g
    v = beta_2 * v + one_minus_beta_2 * tf.square(g)
    bar = share_of_g * g + share_of_m * m
    w = w - learning_rate * bar / (tf.sqrt(v / bias_of_v) + epsilon)
    return w, m, v


class Nadam(Optimizer):
    """Adam with Nesterov momentum (Dozat, 2016, ICLR workshop, algorithm 2, with the
    momentum schedule of its section 2.2).

    Slots: `m`, the average of gradients; `v`, that of squared gradients. The step has
    one more number, `momentum_cache`, the product of the momenta so far, which starts
    at 1 and advances once a step, whichever variables have gradients.

    Args:
        learning_rate: number, callable or scalar tensor, 0.001; no schedule.
        beta_1, beta_2: decay of `m` and `v`, 0 to below 1, defaults 0.9 and 0.999.
        epsilon: outside the root, 1e-7.
        schedule_decay: how fast the momentum approaches beta_1:
            `beta_1 * (1 - 0.96**(schedule_decay * t) / 2)`, default 0.004.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`. `decay` means
            `schedule_decay` in a config of Keras and is read as such.

    Sparse gradients: `m` and `v` on every row, the weights on touched rows.

    Raises:
        ValueError: the learning rate is a schedule.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-7,
        name: str = "Nadam",
        schedule_decay: float | None = None,
        **kwargs: Any,
    ) -> None:
        decay = kwargs.pop("decay", SCHEDULE_DECAY)
        kwargs["decay"] = decay if schedule_decay is None else schedule_decay
        learning_rate = kwargs.get("lr", learning_rate)
        if isinstance(learning_rate, LearningRateSchedule):
            raise ValueError(
                "`learning_rate` of Nadam must not be a LearningRateSchedule; "
                f"{learning_rate!r} is one"
            )
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", learning_rate)
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self.epsilon = epsilon_or_default(epsilon)
        self._m_cache: Any = None  # a variable, once the first slots are made
        self._define(_nadam, {"m": 0.0, "v": 0.0}, every_row=("m", "v"))

    def _create_slots(self, var_list: Sequence[tf.Variable]) -> None:
        if self._m_cache is None and var_list:
            with self._distribution_strategy_scope():
                self._m_cache = self.add_weight(
                    "momentum_cache",
                    shape=[],
                    dtype=var_list[0].dtype.base_dtype,
                    initializer="ones",
                    trainable=False,
                    aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
                )
            self._weights.append(self._m_cache)
        super()._create_slots(var_list)

    def _momentum(self, t: Tensor) -> Tensor:
        """Return the momentum of step `t`, float64."""
        beta_1 = self._real_hyper("beta_1")
        base = tf.constant(0.96, tf.float64)
        return beta_1 * (1 - base ** (self._initial_decay * t) / 2)

    def _momentum_product(self, t: Tensor) -> Tensor:
        """Return the product of the momenta of steps 1 to `t`, the present one."""
        return tf.cast(self._m_cache, tf.float64) * self._momentum(t)

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("beta_1")
        beta_2 = self._real_hyper("beta_2")
        now, then = self._momentum(t), self._momentum(t + 1)
        product = self._momentum_product(t)
        return {
            "learning_rate": learning_rate,
            "beta_1": beta_1,
            "one_minus_beta_1": 1 - beta_1,
            "beta_2": beta_2,
            "one_minus_beta_2": 1 - beta_2,
            "share_of_g": (1 - now) / (1 - product),
            "share_of_m": then / (1 - product * then),
            "bias_of_v": 1 - beta_2**t,
            "epsilon": self.epsilon,
        }

    def _real_learning_rate(self, step_dtype: tf.DType) -> Tensor:
        # What Keras calls `decay` here is the schedule of the momentum.
        return self._real_hyper("learning_rate")

    def _finish_step(self, updates: Sequence[Any], apply_state: dict[Any, Any]) -> Any:
        with after(*updates):
            t = tf.cast(self.iterations + 1, tf.float64)
            product = tf.cast(self._momentum_product(t), self._m_cache.dtype)
            advance = self._m_cache.assign(product)
        return super()._finish_step([*updates, advance], apply_state)

    def get_config(self) -> dict[str, Any]:
        config = {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta_1", "beta_2"),
            "epsilon": self.epsilon,
        }
        if self._initial_decay != SCHEDULE_DECAY:
            # Keras writes it as `decay` alone, which its constructor overrides.
            config["schedule_decay"] = self._initial_decay
        return config
