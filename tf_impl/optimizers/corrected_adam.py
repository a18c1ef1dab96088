"""Adam as in torch: the TensorFlow side of `reference/optimizers/corrected_adam.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor


def _moments(g, m, v, beta_1, one_minus_beta_1, beta_2, one_minus_beta_2):
    m = beta_1 * m + one_minus_beta_1 * g
    v = beta_2 * v + one_minus_beta_2 * tf.square(g)
    return m, v


def _moved(w, m, corrected_v, step_size, epsilon, epsilon_root):
    return w - step_size * m / (tf.sqrt(corrected_v + epsilon_root) + epsilon)


def _adam(
    w,
    g,
    m,
    v,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    bias_2,
    **coefficients,
):
    m, v = _moments(g, m, v, beta_1, one_minus_beta_1, beta_2, one_minus_beta_2)
    return _moved(w, m, v / bias_2, **coefficients), m, v


def _amsgrad(
    w,
    g,
    m,
    v,
    vhat,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    bias_2,
    **coefficients,
):
    m, v = _moments(g, m, v, beta_1, one_minus_beta_1, beta_2, one_minus_beta_2)
    vhat = tf.maximum(vhat, v)
    return _moved(w, m, vhat / bias_2, **coefficients), m, v, vhat


def _amsgrad_of_corrected(
    w,
    g,
    m,
    v,
    vhat,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    bias_2,
    **coefficients,
):
    m, v = _moments(g, m, v, beta_1, one_minus_beta_1, beta_2, one_minus_beta_2)
    vhat = tf.maximum(vhat, v / bias_2)
    return _moved(w, m, vhat, **coefficients), m, v, vhat


class CorrectedAdam(Optimizer):
    """Adam (Kingma and Ba, 2014, arXiv:1412.6980, algorithm 1), as in torch and optax.

    Slots: `m` and `v`, the averages of gradients and squared gradients; `vhat`
    (amsgrad), the largest `v`.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        beta_1, beta_2: decay of `m` and `v`, 0 to below 1, defaults 0.9 and 0.999.
        epsilon: outside the root of the corrected `v`, 1e-8.
        epsilon_root: inside that root, 0.
        amsgrad: whether to divide by the largest `v` so far (Reddi, Kale, Kumar, 2018,
            arXiv:1904.09237).
        correct_first: whether `vhat` is the largest of the corrected `v`, as in optax;
            in torch it is the largest `v`, corrected.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-8,
        epsilon_root: float = 0.0,
        amsgrad: bool = False,
        correct_first: bool = False,
        name: str = "CorrectedAdam",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self.epsilon = epsilon_or_default(epsilon)
        self.epsilon_root = float(epsilon_root)
        self.amsgrad = amsgrad
        self.correct_first = correct_first
        slots = {"m": 0.0, "v": 0.0, **({"vhat": 0.0} if amsgrad else {})}
        with_maximum = _amsgrad_of_corrected if correct_first else _amsgrad
        rule = with_maximum if amsgrad else _adam
        self._define(rule, slots, every_row=("w", *slots))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("beta_1")
        beta_2 = self._real_hyper("beta_2")
        return {
            "beta_1": beta_1,
            "one_minus_beta_1": 1 - beta_1,
            "beta_2": beta_2,
            "one_minus_beta_2": 1 - beta_2,
            "bias_2": 1 - beta_2**t,
            "step_size": learning_rate / (1 - beta_1**t),
            "epsilon": self.epsilon,
            "epsilon_root": self.epsilon_root,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta_1", "beta_2"),
            "epsilon": self.epsilon,
            "epsilon_root": self.epsilon_root,
            "amsgrad": self.amsgrad,
            "correct_first": self.correct_first,
        }
