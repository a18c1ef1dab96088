"""The moving average of the weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..gradients import Array
from ..optimizer import Arithmetic, hyper
from ..optimizers.adam import Adam
from ..optimizers.sgd import SGD
from ..rule import Slot
from ..wrapper import AVERAGE, Wrapper, lines


@dataclass(frozen=True)
class MovingAverage(Wrapper):
    """The exponential moving average of the weights, beside them.

    Polyak, Juditsky, *Acceleration of Stochastic Approximation by Averaging*, SIAM
    Journal on Control and Optimization 30 (1992), has the plain mean; the exponential
    one with a decay that grows is TensorFlow's ``ExponentialMovingAverage``.

    Args:
        optimizer: the inner optimizer.
        average_decay: ``d``; ``[0, 1]``.
        num_updates: ``d`` is at most ``(1 + num_updates) / (10 + num_updates)``.
        start_step: until this many steps are behind it, the average is the weights.
        dynamic_decay: ``d`` is at most ``(1 + n) / (10 + n)``, where ``n`` steps have
            gone by since ``start_step``, the present one not counted: 0.1 at first.

    Slot ``average`` starts at the weights, and follows on every row what they are after
    a step, constraints included.

    >>> average = MovingAverage(SGD(learning_rate=1.0), average_decay=0.5)
    >>> w, state = average.run(np.array([1.0]), [np.array([1.0]), np.array([-2.0])])
    >>> w.tolist(), state.slots[0]["average"].tolist()
    ([2.0], [1.25])
    """

    average_decay: float = hyper(0.99, "[0, 1]")
    num_updates: int | None = hyper(None, "[0, inf)")
    start_step: int = hyper(0, "[0, inf)")
    dynamic_decay: bool = False

    place: ClassVar[int] = AVERAGE
    adds: ClassVar[dict[str, Slot]] = {"average": Slot("average", "w")}
    home: ClassVar[str] = "tensorflow_addons.optimizers.MovingAverage"
    paper: ClassVar[str] = "Polyak, Juditsky 1992"
    examples: ClassVar = (
        {"optimizer": Adam(), "num_updates": 3},
        {"optimizer": SGD(), "start_step": 2, "dynamic_decay": True},
    )

    @lines(average="average")
    def follow(w, average, d):
        average = d * average + (1 - d) * w
        return average

    @lines(average="average")
    def follow_at_once(w, average):
        average = w
        return average

    @lines(average="average")
    def follow_dynamically(w, average, average_decay, n):
        d = np.minimum(average_decay, (1 + n) / (10 + n))
        average = d * average + (1 - d) * w
        return average

    def _follow(
        self, w: Array, slots: dict[str, Array], t: int, arithmetic: Arithmetic
    ) -> tuple[Array, dict[str, Array]]:
        n = t - 1 - self.start_step
        given = {"w": w}
        if n < 0:
            return w, self._run(self.follow_at_once, given, slots, arithmetic)[1]
        decay = self.average_decay
        if self.num_updates is not None:
            decay = min(decay, (1 + self.num_updates) / (10 + self.num_updates))
        if self.dynamic_decay:
            chosen, numbers = self.follow_dynamically, {"average_decay": decay, "n": n}
        else:
            chosen, numbers = self.follow, {"d": decay}
        return w, self._run(chosen, given, slots, arithmetic, **numbers)[1]
