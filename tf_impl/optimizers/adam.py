"""Adam and AMSGrad: the TensorFlow side of `reference/optimizers/adam.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.hypers import epsilon_or_default
from tf_impl.tensors import Tensor


def _adam(
    w, g, m, v, step_size, beta_1, one_minus_beta_1, beta_2, one_minus_beta_2, epsilon
):
    m = beta_1 * m + one_minus_beta_1 * g
    v = beta_2 * v + one_minus_beta_2 * tf.square(g)
    w = w - step_size * m / (tf.sqrt(v) + epsilon)
    return w, m, v


def _amsgrad(
    w,
    g,
    m,
    v,
    vhat,
    step_size,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    epsilon,
):
    m = beta_1 * m + one_minus_beta_1 * g
    v = beta_2 * v + one_minus_beta_2 * tf.square(g)
    vhat = tf.maximum(vhat, v)
    w = w - step_size * m / (tf.sqrt(vhat) + epsilon)
    return w, m, v, vhat


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2014, arXiv:1412.6980, the form before section 2.1); AMSGrad
    (Reddi, Kale, Kumar, 2018, arXiv:1904.09237, algorithm 2).

    Slots: `m`, the average of gradients; `v`, that of squared gradients; `vhat`
    (amsgrad), the largest `v` so far, without bias correction.

    Epsilon is the paper's "epsilon hat": outside the root, and not scaled by the bias
    correction, unlike torch.optim.Adam.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        beta_1, beta_2: decay of `m` and `v`, 0 to below 1, defaults 0.9 and 0.999.
        epsilon: 1e-7.
        amsgrad: whether to divide by the largest `v` so far.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row; `sparse="touched_rows"` makes it LazyAdam.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        name: str = "Adam",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("beta_1", beta_1)
        self._set_hyper("beta_2", beta_2)
        self.epsilon = epsilon_or_default(epsilon)
        self.amsgrad = amsgrad
        slots = {"m": 0.0, "v": 0.0}
        if amsgrad:
            slots["vhat"] = 0.0
        self._define(_amsgrad if amsgrad else _adam, slots, every_row=("w", *slots))

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("beta_1")
        beta_2 = self._real_hyper("beta_2")
        return {
            "step_size": learning_rate * tf.sqrt(1 - beta_2**t) / (1 - beta_1**t),
            "beta_1": beta_1,
            "one_minus_beta_1": 1 - beta_1,
            "beta_2": beta_2,
            "one_minus_beta_2": 1 - beta_2,
            "epsilon": self.epsilon,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("beta_1", "beta_2"),
            "epsilon": self.epsilon,
            "amsgrad": self.amsgrad,
        }

    def set_weights(self, weights: list[Any]) -> None:
        """Set the weights, also from a list that ends with one unused `vhat` for each
        variable, as optimizers of the first Keras wrote."""
        expected = len(self.weights)
        variables = (expected - 1) // 2
        if not self.amsgrad and len(weights) == 3 * variables + 1:
            weights = weights[:expected]
        super().set_weights(weights)
