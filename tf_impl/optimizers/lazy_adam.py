"""LazyAdam: the TensorFlow side of `reference/optimizers/lazy_adam.py`."""

from __future__ import annotations

from typing import Any

from tf_impl.optimizers.adam import Adam


class LazyAdam(Adam):
    """Adam that changes the rows of a sparse gradient alone.

    Replaces tensorflow_addons.optimizers.LazyAdam. Arguments and slots are those of
    `Adam`; the bias correction counts every step. With amsgrad, which Addons' sparse
    update leaves out, the largest `v` is kept for the rows that are touched.

    Sparse gradients: touched rows.
    """

    def __init__(
        self,
        learning_rate: Any = 0.001,
        beta_1: Any = 0.9,
        beta_2: Any = 0.999,
        epsilon: float = 1e-7,
        amsgrad: bool = False,
        name: str = "LazyAdam",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            learning_rate, beta_1, beta_2, epsilon, amsgrad, name, **kwargs
        )

    def _define(self, rule: Any, slots: Any, every_row: Any = ()) -> None:
        super()._define(rule, slots)
