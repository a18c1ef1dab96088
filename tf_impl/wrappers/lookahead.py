"""Lookahead: the TensorFlow side of `reference/wrappers/lookahead.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import tensorflow as tf

from tf_impl.tensors import cast
from tf_impl.wrapper import LOOKAHEAD, Wrapper, only_if, part, whole


def _synchronize(w, _, slow, slow_step_size):
    slow = slow + slow_step_size * (w - slow)
    return slow, slow


class Lookahead(Wrapper):
    """Fast steps of an inner optimizer, pulled back to slow weights from time to time
    (Zhang et al., 2019, arXiv:1907.08610, algorithm 1).

    Slot `slow`: the slow weights, which start at the variable when it is first seen.

    Args:
        optimizer: the inner optimizer, as in `tf_impl.wrapper.Wrapper`.
        sync_period: steps from one synchronisation to the next, 6. They fall on the
            steps that it divides.
        slow_step_size: the part of the way that the slow weights go toward the fast
            ones, 0 to 1, default 0.5.
        name: as in `tf_impl.wrapper.Wrapper`.

    A variable is synchronised on every row, after its constraint, if it has a gradient
    at that step.

    Raises:
        TypeError, ValueError: an argument outside its domain.
    """

    _place = LOOKAHEAD
    _slots_made: ClassVar = {"slow": lambda var: var.read_value()}
    _checkpoint_name = "lh_base_optimizer"

    def __init__(
        self,
        optimizer: Any,
        sync_period: int = 6,
        slow_step_size: float = 0.5,
        name: str = "Lookahead",
        **kwargs: Any,
    ) -> None:
        super().__init__(optimizer, name, **kwargs)
        self._set_hyper("sync_period", whole("sync_period", sync_period, 1))
        self._set_hyper("slow_step_size", part("slow_step_size", slow_step_size))

    def _follow(self, strategy: Any, variables: Sequence[tf.Variable]) -> Any:
        def synchronize() -> Any:
            step_size = self._real_hyper("slow_step_size")
            return self._apply_to_each(
                strategy,
                variables,
                _synchronize,
                [True, True],
                {"slow_step_size": step_size},
            )

        period = cast(self._real_hyper("sync_period"), tf.int64)
        return only_if(self.iterations % period == 0, synchronize)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "sync_period": int(self._serialize_hyperparameter("sync_period")),
            **self._hyper_config("slow_step_size"),
        }
