"""ExponentialMovingAverage: the TensorFlow side of `reference/wrappers/ema.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf_impl.tensors import after
from tf_impl.wrapper import AveragingWrapper, only_if, part, whole


def _follow(w, _, average, momentum, rest):
    return w, tf.where(rest < 1, momentum * average + rest * w, w)


def _overwrite(w, _, average):
    return average, average


class ExponentialMovingAverage(AveragingWrapper):
    """The exponential moving average of Keras 3 (`use_ema=True` there), in the slot
    `average`: the variable itself after the first step, then `ema_momentum` of itself
    and the rest of the variable.

    Args:
        optimizer: the inner optimizer, as in `tf_impl.wrapper.Wrapper`.
        ema_momentum: 0 to 1, default 0.99.
        ema_overwrite_frequency: after every so many steps the variables become their
            averages; `None`: never.
        name: as in `tf_impl.wrapper.Wrapper`.

    Raises:
        TypeError, ValueError: an argument outside its domain.
    """

    def __init__(
        self,
        optimizer: Any,
        ema_momentum: Any = 0.99,
        ema_overwrite_frequency: int | None = None,
        name: str = "ExponentialMovingAverage",
        **kwargs: Any,
    ) -> None:
        super().__init__(optimizer, name, **kwargs)
        self._set_hyper("ema_momentum", part("ema_momentum", ema_momentum))
        self._frequency = ema_overwrite_frequency
        if ema_overwrite_frequency is not None:
            whole("ema_overwrite_frequency", ema_overwrite_frequency, 1)

    def finalize_variable_values(self, var_list: Sequence[tf.Variable]) -> None:
        """Set variables to their averages at the end of training, as Keras calls it."""
        self.assign_average_vars(var_list)

    def _follow(self, strategy: Any, variables: Sequence[tf.Variable]) -> Any:
        momentum = self._real_hyper("ema_momentum")
        momentum = tf.where(self.iterations == 1, tf.zeros_like(momentum), momentum)
        averaged = self._apply_to_each(
            strategy,
            variables,
            _follow,
            [False, True],
            {"momentum": momentum, "rest": 1 - momentum},
        )
        if self._frequency is None:
            return averaged

        def overwrite() -> Any:
            return self._apply_to_each(
                strategy, variables, _overwrite, [True, False], {}
            )

        with after(averaged):
            return only_if(self.iterations % self._frequency == 0, overwrite)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("ema_momentum"),
            "ema_overwrite_frequency": self._frequency,
        }
