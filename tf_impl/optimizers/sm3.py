"""SM3: the TensorFlow side of `reference/optimizers/sm3.py`."""

from __future__ import annotations

import functools
from typing import Any

import tensorflow as tf

from tf_impl.base import Definition, Optimizer
from tf_impl.tensors import Tensor

MOST_AXES = 4


def _sm3(w, g, m, *accumulators, learning_rate, momentum, one_minus_momentum, epsilon):
    total = functools.reduce(tf.minimum, accumulators) + tf.square(g)
    direction = tf.math.divide_no_nan(g, tf.sqrt(total + epsilon))
    m = momentum * m + one_minus_momentum * direction
    w = w - learning_rate * m
    if len(accumulators) == 1:
        return w, m, total
    axes = range(len(accumulators))
    maxima = [
        tf.reduce_max(
            total, axis=[other for other in axes if other != axis], keepdims=True
        )
        for axis in axes
    ]
    return w, m, *maxima


def _length_of(axis: int, shape: tf.TensorShape) -> list[int]:
    return [size if i == axis else 1 for i, size in enumerate(shape)]


class SM3(Optimizer):
    """SM3-II with momentum (Anil, Gupta, Koren, Singer, 2019, arXiv:1901.11150).

    Slots: `momentum`; `accumulator_0` and so on, one for each axis of the variable, as
    long as the axis and 1 elsewhere.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.001.
        momentum: 0 to below 1, default 0.9.
        epsilon: under the root, 1e-8.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: every row.

    Raises:
        ValueError: a variable has more than four axes.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        momentum: Any = 0.9,
        epsilon: float = 1e-8,
        name: str = "SM3",
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper("momentum", momentum)
        self.epsilon = float(epsilon)
        self._definitions = [self._for_axes(n) for n in range(1, MOST_AXES + 1)]

    def _for_axes(self, count: int) -> Definition:
        names = [f"accumulator_{axis}" for axis in range(count)]
        return self._defined(
            _sm3,
            dict.fromkeys(["momentum", *names], 0.0),
            every_row=("w", "momentum", *names),
            elementwise=False,
            shapes={
                name: functools.partial(_length_of, axis)
                for axis, name in enumerate(names)
                if count > 1
            },
        )

    def _definition_for(self, var: tf.Variable) -> Definition:
        if var.shape.rank > MOST_AXES:
            raise ValueError(
                f"SM3 takes variables of {MOST_AXES} axes at most, got {var.shape}"
            )
        return self._definitions[max(var.shape.rank, 1) - 1]

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        momentum = self._real_hyper("momentum")
        return {
            "learning_rate": learning_rate,
            "momentum": momentum,
            "one_minus_momentum": 1 - momentum,
            "epsilon": self.epsilon,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            **self._hyper_config("momentum"),
            "epsilon": self.epsilon,
        }
