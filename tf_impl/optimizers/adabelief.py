"""AdaBelief: the TensorFlow side of `reference/optimizers/adabelief.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.optimizers.rectified_adam import RectifiedAdam
from tf_impl.tensors import Tensor


def _moments(
    g, m, v, touched, beta_1, one_minus_beta_1, beta_2, one_minus_beta_2, epsilon
):
    m = beta_1 * m + one_minus_beta_1 * g
    if not touched:
        return m, beta_2 * v
    surprise = one_minus_beta_2 * tf.square(g - m) + epsilon
    return m, beta_2 * v + surprise


def _moved(w, m, v, learning_rate, bias_1, bias_2, epsilon, r):
    m_hat = m / bias_1
    u = tf.where(r > 0, r * m_hat / (tf.sqrt(v / bias_2) + epsilon), m_hat)
    return w - learning_rate * u


def _adabelief(
    w,
    g,
    m,
    v,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    epsilon,
    touched,
    **coefficients,
):
    decays = beta_1, one_minus_beta_1, beta_2, one_minus_beta_2
    m, v = _moments(g, m, v, touched, *decays, epsilon)
    return _moved(w, m, v, epsilon=epsilon, **coefficients), m, v


def _adabelief_amsgrad(
    w,
    g,
    m,
    v,
    vhat,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    epsilon,
    touched,
    **coefficients,
):
    decays = beta_1, one_minus_beta_1, beta_2, one_minus_beta_2
    m, v = _moments(g, m, v, touched, *decays, epsilon)
    vhat = tf.maximum(vhat, v)
    return _moved(w, m, vhat, epsilon=epsilon, **coefficients), m, v, vhat


class AdaBelief(RectifiedAdam):
    """AdaBelief (Zhuang et al., 2020, arXiv:2010.07468, algorithm 2), as in Addons.

    Replaces tensorflow_addons.optimizers.AdaBelief. Slots: `m`, the average of
    gradients; `v`, that of their squared distance from `m`; `vhat` (amsgrad), the
    largest `v`.

    Args:
        epsilon: added to `v` at each step, and outside its corrected root, 1e-14.
        rectify: whether to rectify as `RectifiedAdam` does; the paper does not.
        others: as in `RectifiedAdam`.

    Sparse gradients: `m`, `v` and `vhat` on every row, the weights on touched rows; on
    other rows `v` decays, and nothing is added.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-14,
        weight_decay: Any = 0.0,
        amsgrad: bool = False,
        rectify: bool = True,
        sma_threshold: Any = 5.0,
        total_steps: Any = 0,
        warmup_proportion: Any = 0.1,
        min_lr: Any = 0.0,
        name: str = "AdaBelief",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate,
            beta_1,
            beta_2,
            epsilon,
            weight_decay,
            amsgrad,
            sma_threshold,
            total_steps,
            warmup_proportion,
            min_lr,
            name,
            **kwargs,
        )
        self.rectify = rectify
        self._define_with_maximum(_adabelief, _adabelief_amsgrad)

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        coefficients = super()._coefficients(t, learning_rate)
        if not self.rectify:
            coefficients["r"] = tf.ones_like(t)
        return coefficients

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "rectify": self.rectify}
