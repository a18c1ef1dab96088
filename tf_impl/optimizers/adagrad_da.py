"""AdagradDA: the TensorFlow side of `reference/optimizers/adagrad_da.py`."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from tf_impl.base import Optimizer
from tf_impl.optimizers.proximal import L1, L2, check_not_negative, soft_threshold
from tf_impl.tensors import Tensor


def _adagrad_da(w, g, s, n, learning_rate, threshold, shrinkage):
    s = s + g
    n = n + tf.square(g)
    w = -learning_rate * soft_threshold(s, threshold) / (tf.sqrt(n) + shrinkage)
    return w, s, n


class AdagradDA(Optimizer):
    """Adagrad with regularised dual averaging (Duchi, Hazan, Singer, 2011, JMLR 12,
    equation 3 and section 5.1).

    Takes the arguments of `tf.compat.v1.train.AdagradDAOptimizer`, but for
    `global_step`, which is `iterations` here.

    Slots: `gradient_accumulator`, the sum `s` of gradients;
    `gradient_squared_accumulator`, the sum `n` of their squares.

    The weights are rebuilt from the slots: what they were before the first gradient is
    lost. They are 0 wherever `|s| <= l1 * t`.

    Args:
        learning_rate: number, schedule, callable or scalar tensor, 0.01.
        initial_gradient_squared_accumulator_value: where `n` starts, above 0, 0.1.
        l1_regularization_strength, l2_regularization_strength: at least 0, default 0.
        name, sparse, **kwargs: as in `tf_impl.base.Optimizer`.

    Sparse gradients: touched rows.

    Raises:
        ValueError: an argument is outside its domain.
    """

    def __init__(
        self,
        learning_rate: Any = 0.01,
        initial_gradient_squared_accumulator_value: float = 0.1,
        l1_regularization_strength: Any = 0.0,
        l2_regularization_strength: Any = 0.0,
        name: str = "AdagradDA",
        **kwargs: Any,
    ) -> None:
        check_not_negative(
            l1_regularization_strength=l1_regularization_strength,
            l2_regularization_strength=l2_regularization_strength,
        )
        if not initial_gradient_squared_accumulator_value > 0:
            raise ValueError(
                "`initial_gradient_squared_accumulator_value` must be above 0, "
                f"not {initial_gradient_squared_accumulator_value!r}"
            )
        super().__init__(name, **kwargs)
        self._set_hyper("learning_rate", kwargs.get("lr", learning_rate))
        self._set_hyper("decay", self._initial_decay)
        self._set_hyper(L1, l1_regularization_strength)
        self._set_hyper(L2, l2_regularization_strength)
        self._initial_squares = float(initial_gradient_squared_accumulator_value)
        self._define(
            _adagrad_da,
            {
                "gradient_accumulator": 0.0,
                "gradient_squared_accumulator": self._initial_squares,
            },
        )

    def _coefficients(self, t: Tensor, learning_rate: Tensor) -> dict[str, Tensor]:
        return {
            "learning_rate": learning_rate,
            "threshold": self._real_hyper(L1) * t,
            "shrinkage": self._real_hyper(L2) * t * learning_rate,
        }

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("learning_rate"),
            "decay": self._initial_decay,
            "initial_gradient_squared_accumulator_value": self._initial_squares,
            **self._hyper_config(L1, L2),
        }
