"""Muon: the TensorFlow side of `reference/optimizers/muon.py`."""

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


def _orthogonalized(
    u: Tensor, steps: int, tall: bool, a: Tensor, b: Tensor, c: Tensor
) -> Tensor:
    """Return `u` with singular values near 1, by Newton and Schulz."""
    x = u / (tf.norm(u) + 1e-7)
    for _ in range(steps):
        # Of both products of x with itself, the smaller.
        square = tf.matmul(x, x, transpose_a=tall, transpose_b=not tall)
        factor = b * square + c * tf.matmul(square, square)
        x = a * x + (tf.matmul(x, factor) if tall else tf.matmul(factor, x))
    return x


@functools.cache
def _muon(nesterov: bool, scaled: bool, steps: int, tall: bool) -> Rule:
    def muon(w, g, m, step_size, decay, momentum, a, b, c, **of_adamw):
        m = momentum * m + g
        u = g + momentum * m if nesterov else m
        step = _orthogonalized(u, steps, tall, a, b, c)
        if scaled:
            longest = tf.cast(tf.reduce_max(tf.shape(w)), w.dtype)
            step_size = step_size * tf.sqrt(longest)
        return w - decay * w - step_size * step, m

    return muon


def _adamw(
    w,
    g,
    m,
    v,
    adam_step_size,
    adam_decay,
    beta_1,
    one_minus_beta_1,
    beta_2,
    one_minus_beta_2,
    epsilon,
    **of_muon,
):
    m = beta_1 * m + one_minus_beta_1 * g
    v = beta_2 * v + one_minus_beta_2 * tf.square(g)
    w = w - adam_decay * w
    return w - adam_step_size * m / (tf.sqrt(v) + epsilon), m, v


class Muon(Optimizer):
    """Muon (Jordan et al., 2024) for variables of two axes, with the scale of Liu et
    al., 2025, arXiv:2502.16982; AdamW (Loshchilov and Hutter, 2017, arXiv:1711.05101)
    for all others.

    Takes the place of keras.optimizers.Muon.

    Slots: `momentum`; for AdamW also `velocity`.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        adam_beta_1, adam_beta_2: AdamW's, 0 to below 1, defaults 0.9 and 0.999.
        adam_weight_decay: AdamW's, times the learning rate, 0.004; `None` is 0.
        epsilon: AdamW's, outside the root, 1e-7.
        weight_decay: decoupled, times the learning rate, 0.004; `None` is 0.
        name: prefix of the names of the optimizer's variables.
        exclude_layers: regular expressions; a variable in whose name one is found is
            AdamW's.
        exclude_embeddings: whether variables with "embedding" in their names are
            AdamW's.
        muon_a, muon_b, muon_c: coefficients of the Newton-Schulz iteration.
        adam_lr_ratio: AdamW's learning rate over the other, 1.
        momentum: 0 to 1, default 0.95.
        ns_steps: how many steps of Newton and Schulz, 5.
        nesterov: whether to look one momentum step ahead.
        rms_rate: root mean square of a step over the learning rate, 0.2; `None`: steps
            are not scaled.
        sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.

    Raises:
        ValueError: `ns_steps` is less than 1.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        adam_beta_1: Any = 0.9,
        adam_beta_2: Any = 0.999,
        adam_weight_decay: Any = 0.004,
        epsilon: float = 1e-7,
        weight_decay: Any = 0.004,
        name: str = "Muon",
        exclude_layers: Sequence[str] | None = None,
        exclude_embeddings: bool = True,
        muon_a: float = 3.4445,
        muon_b: float = -4.775,
        muon_c: float = 2.0315,
        adam_lr_ratio: float = 1.0,
        momentum: Any = 0.95,
        ns_steps: int = 5,
        nesterov: bool = True,
        rms_rate: float | None = 0.2,
        **kwargs: Any,
    ) -> None:
        if ns_steps < 1:
            raise ValueError(f"`ns_steps` must be 1 or more, not {ns_steps}")
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("adam_beta_1", adam_beta_1)
        self._set_hyper("adam_beta_2", adam_beta_2)
        self._set_hyper("adam_weight_decay", _or_zero(adam_weight_decay))
        self._set_hyper("weight_decay", _or_zero(weight_decay))
        self._set_hyper("momentum", momentum)
        self.epsilon = epsilon_or_default(epsilon)
        self.exclude_layers = list(exclude_layers or ())
        self.exclude_embeddings = exclude_embeddings
        self.polynomial = {"a": muon_a, "b": muon_b, "c": muon_c}
        self.adam_lr_ratio = float(adam_lr_ratio)
        self.ns_steps = int(ns_steps)
        self.nesterov = nesterov
        self.rms_rate = rms_rate
        self._wide, self._tall = (
            self._defined(
                _muon(nesterov, rms_rate is not None, self.ns_steps, tall),
                {"momentum": 0.0},
                every_row=("w", "momentum"),
                elementwise=False,
            )
            for tall in (False, True)
        )
        slots = {"momentum": 0.0, "velocity": 0.0}
        self._adamw = self._defined(_adamw, slots, every_row=("w", *slots))

    def _definition_for(self, var: tf.Variable) -> Definition:
        embedding = self.exclude_embeddings and named_in(var, ["(?i)embedding"])
        if var.shape.rank != 2 or embedding or named_in(var, self.exclude_layers):
            return self._adamw
        return self._tall if var.shape[0] > var.shape[1] else self._wide

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        beta_1 = self._real_hyper("adam_beta_1")
        beta_2 = self._real_hyper("adam_beta_2")
        adam_rate = learning_rate * self.adam_lr_ratio
        rms_rate = 1.0 if self.rms_rate is None else self.rms_rate
        return {
            "step_size": learning_rate * rms_rate,
            "decay": learning_rate * self._real_hyper("weight_decay"),
            "momentum": self._real_hyper("momentum"),
            **self.polynomial,
            "adam_step_size": adam_rate * tf.sqrt(1 - beta_2**t) / (1 - beta_1**t),
            "adam_decay": learning_rate * self._real_hyper("adam_weight_decay"),
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
            **self._hyper_config("adam_beta_1", "adam_beta_2", "adam_weight_decay"),
            "epsilon": self.epsilon,
            **self._hyper_config("weight_decay"),
            "exclude_layers": self.exclude_layers,
            "exclude_embeddings": self.exclude_embeddings,
            **{f"muon_{name}": value for name, value in self.polynomial.items()},
            "adam_lr_ratio": self.adam_lr_ratio,
            **self._hyper_config("momentum"),
            "ns_steps": self.ns_steps,
            "nesterov": self.nesterov,
            "rms_rate": self.rms_rate,
        }


def _or_zero(weight_decay: Any) -> Any:
    return 0.0 if weight_decay is None else weight_decay
