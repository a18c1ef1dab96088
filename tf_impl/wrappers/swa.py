"""SWA: the TensorFlow side of `reference/wrappers/swa.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from tf_impl.tensors import cast
from tf_impl.wrapper import AveragingWrapper, only_if, whole


def _mean(w, _, average, snapshots):
    mean = (average * snapshots + w) / (snapshots + 1)
    return w, tf.where(snapshots > 0, mean, w)


class SWA(AveragingWrapper):
    """Stochastic weight averaging (Izmailov et al., 2018, arXiv:1803.05407, algorithm
    1): the mean of snapshots of the variables, in the slot `average`.

    Args:
        optimizer: the inner optimizer, as in `tf_impl.wrapper.Wrapper`.
        start_averaging: the first snapshot is taken after so many steps, 0: what
            training starts from. Until then the average is the variable itself.
        average_period: steps from one snapshot to the next, 10.
        name: as in `tf_impl.wrapper.Wrapper`.

    Raises:
        TypeError, ValueError: an argument outside its domain.
    """

    def __init__(
        self,
        optimizer: Any,
        start_averaging: int = 0,
        average_period: int = 10,
        name: str = "SWA",
        **kwargs: Any,
    ) -> None:
        super().__init__(optimizer, name, **kwargs)
        self._set_hyper("start_averaging", whole("start_averaging", start_averaging, 0))
        self._set_hyper("average_period", whole("average_period", average_period, 1))

    def _follow(self, strategy: Any, variables: Sequence[tf.Variable]) -> Any:
        start = cast(self._real_hyper("start_averaging"), tf.int64)
        period = cast(self._real_hyper("average_period"), tf.int64)
        since = tf.maximum(self.iterations - start, 0)
        snapshots = tf.cast(since // period, tf.float64)

        def average() -> Any:
            return self._apply_to_each(
                strategy, variables, _mean, [False, True], {"snapshots": snapshots}
            )

        return only_if(since % period == 0, average)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "start_averaging": int(self._serialize_hyperparameter("start_averaging")),
            "average_period": int(self._serialize_hyperparameter("average_period")),
        }
