"""AddSign, PowerSign: the TensorFlow side of `reference/optimizers/sign_decay.py`."""

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import with_schedule
from tf_impl.tensors import Tensor


def _add_sign(w, g, m, learning_rate, alpha, beta, one_minus_beta, sign_decay):
    m = beta * m + one_minus_beta * g
    factor = alpha + sign_decay * (tf.sign(g) * tf.sign(m))
    w = w - learning_rate * factor * g
    return w, m


def _power_sign(w, g, m, learning_rate, same, opposite, beta, one_minus_beta):
    m = beta * m + one_minus_beta * g
    agreement = tf.sign(g) * tf.sign(m)
    # 1 where there is no sign, and NaN where there is no number.
    neither = 1 + agreement
    factor = tf.where(agreement > 0, same, tf.where(agreement < 0, opposite, neither))
    w = w - learning_rate * factor * g
    return w, m


class AddSign(Optimizer):
    """AddSign (Bello, Zoph, Vasudevan, Le, 2017, arXiv:1709.07417): the gradient times
    `alpha + sign_decay * sign(g) * sign(m)`.

    Takes the arguments of `AddSignOptimizer` in TensorFlow 1 (`tf.contrib.opt`), with
    `sign_decay`, a number or a schedule, in place of `sign_decay_fn`.

    Slot `m`: the average of gradients.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.1.
        alpha: at least 0, default 1.
        beta: decay of `m`, 0 to below 1, default 0.9.
        sign_decay: number, schedule, callable or scalar tensor, 0 to 1, default 1.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: `m` on every row, the weights on touched rows, where alone they
    would move anyway.
    """

    def __init__(
        self,
        learning_rate: Any = 0.1,
        alpha: Any = 1.0,
        beta: Any = 0.9,
        sign_decay: Any = 1.0,
        name: str = "AddSign",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("alpha", alpha)
        self._set_hyper("beta", beta)
        self._set_hyper("sign_decay", sign_decay)
        self._define(_add_sign, {"m": 0.0}, every_row=("m",))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta = self._real_hyper("beta")
        return {
            "learning_rate": learning_rate,
            "alpha": self._real_hyper("alpha"),
            "beta": beta,
            "one_minus_beta": 1 - beta,
            "sign_decay": self._real_hyper("sign_decay"),
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Any:
        """Return the optimizer that `get_config` describes; `config` is left alone."""
        config = with_schedule(config, "sign_decay")
        return super().from_config(config, custom_objects=custom_objects)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("alpha", "beta", "sign_decay"),
        }


class PowerSign(Optimizer):
    """PowerSign (Bello, Zoph, Vasudevan, Le, 2017, arXiv:1709.07417): the gradient
    times `base**(sign_decay * sign(g) * sign(m))`.

    Takes the arguments of `PowerSignOptimizer` in TensorFlow 1 (`tf.contrib.opt`), with
    `sign_decay`, a number or a schedule, in place of `sign_decay_fn`.

    Slot `m`: the average of gradients.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.1.
        base: above 0, default e.
        beta: decay of `m`, 0 to below 1, default 0.9.
        sign_decay: number, schedule, callable or scalar tensor, 0 to 1, default 1.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: `m` on every row, the weights on touched rows, where alone they
    would move anyway.
    """

    def __init__(
        self,
        learning_rate: Any = 0.1,
        base: Any = math.e,
        beta: Any = 0.9,
        sign_decay: Any = 1.0,
        name: str = "PowerSign",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("base", base)
        self._set_hyper("beta", beta)
        self._set_hyper("sign_decay", sign_decay)
        self._define(_power_sign, {"m": 0.0}, every_row=("m",))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        base, beta = self._real_hyper("base"), self._real_hyper("beta")
        sign_decay = self._real_hyper("sign_decay")
        return {
            "learning_rate": learning_rate,
            "same": base**sign_decay,
            "opposite": base**-sign_decay,
            "beta": beta,
            "one_minus_beta": 1 - beta,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: dict[str, Any] | None = None
    ) -> Any:
        """Return the optimizer that `get_config` describes; `config` is left alone."""
        config = with_schedule(config, "sign_decay")
        return super().from_config(config, custom_objects=custom_objects)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("base", "beta", "sign_decay"),
        }
