"""MovingAverage: the TensorFlow side of `reference/wrappers/moving_average.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf_impl.wrapper import AveragingWrapper, part, whole


def _follow(w, _, average, decay, rest):
    return w, tf.where(rest < 1, decay * average + rest * w, w)


class MovingAverage(AveragingWrapper):
    """The exponential moving average of the variables, in the slot `average`.

    Args:
        optimizer: the inner optimizer, as in `tf_impl.wrapper.Wrapper`.
        average_decay: the decay of the average, 0 to 1, default 0.99.
        num_updates: limits the decay to `(1 + num_updates) / (10 + num_updates)`.
        start_step: for so many steps the average is the variable itself, 0.
        dynamic_decay: whether to limit the decay to `(1 + n) / (10 + n)`, with `n` the
            steps from `start_step` to the one before this.
        name: as in `tf_impl.wrapper.Wrapper`.

    Raises:
        TypeError, ValueError: an argument outside its domain.
    """

    def __init__(
        self,
        optimizer: Any,
        average_decay: Any = 0.99,
        num_updates: int | None = None,
        start_step: int = 0,
        dynamic_decay: bool = False,
        name: str = "MovingAverage",
        **kwargs: Any,
    ) -> None:
        super().__init__(optimizer, name, **kwargs)
        self._set_hyper("average_decay", part("average_decay", average_decay))
        self._num_updates = num_updates
        if num_updates is not None:
            whole("num_updates", num_updates, 0)
        self._set_hyper("start_step", whole("start_step", start_step, 0))
        self._dynamic_decay = dynamic_decay

    def _follow(self, strategy: Any, variables: Sequence[tf.Variable]) -> Any:
        decay = self._decay()
        return self._apply_to_each(
            strategy,
            variables,
            _follow,
            [False, True],
            {"decay": decay, "rest": 1 - decay},
        )

    def _decay(self) -> Any:
        """Return the decay of the step that was just counted, float64."""
        decay = self._real_hyper("average_decay")
        if self._num_updates is not None:
            limit = (1 + self._num_updates) / (10 + self._num_updates)
            decay = tf.minimum(decay, tf.constant(limit, tf.float64))
        before = tf.cast(self.iterations - 1, tf.float64)
        elapsed = before - self._real_hyper("start_step")
        if self._dynamic_decay:
            decay = tf.minimum(decay, (1 + elapsed) / (10 + elapsed))
        return tf.where(elapsed < 0, tf.zeros_like(decay), decay)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            **self._hyper_config("average_decay"),
            "num_updates": self._num_updates,
            "start_step": int(self._serialize_hyperparameter("start_step")),
            "dynamic_decay": self._dynamic_decay,
        }
