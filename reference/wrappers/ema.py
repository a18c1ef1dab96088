"""The exponential moving average of Keras."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..gradients import Array
from ..optimizer import Arithmetic, hyper
from ..optimizers.adam import Adam
from ..optimizers.sgd import SGD
from ..rule import Slot
from ..wrapper import AVERAGE, Wrapper, lines


@dataclass(frozen=True)
class ExponentialMovingAverage(Wrapper):
    """The exponential moving average that Keras 3 keeps with ``use_ema=True``.

    Args:
        optimizer: the inner optimizer.
        ema_momentum: the decay of the average; ``[0, 1]``.
        ema_overwrite_frequency: after every so many steps the weights become their
            average; ``None`` (default): never.

    Slot ``average``: the weights themselves after the first step of all; then it
    follows what they are after a step, constraints included. It starts at the weights
    (Keras 3 starts it at zero: seen only by a weight whose first gradient comes late);
    the legacy line of Keras averages the start in as well.

    >>> import numpy as np
    >>> ema = ExponentialMovingAverage(SGD(learning_rate=1.0), ema_momentum=0.5)
    >>> w, state, averages = np.array(0.0), None, []
    >>> for _ in range(3):
    ...     w, state = ema.run(w, [np.array(-1.0)], state)
    ...     averages.append(float(state.slots[0]["average"]))
    >>> averages
    [1.0, 1.5, 2.25]
    """

    ema_momentum: float = hyper(0.99, "[0, 1]")
    ema_overwrite_frequency: int | None = hyper(None, "[1, inf)")

    place: ClassVar[int] = AVERAGE
    adds: ClassVar[dict[str, Slot]] = {"average": Slot("average", "w")}
    home: ClassVar[str] = "keras.optimizers.Optimizer"
    paper: ClassVar[str] = "Polyak, Juditsky 1992"
    examples: ClassVar = (
        {"optimizer": Adam(), "ema_momentum": 0.75},
        {"optimizer": SGD(), "ema_momentum": 0.5, "ema_overwrite_frequency": 3},
    )

    @lines(average="average")
    def first(w, average):
        average = w
        return average

    @lines(average="average")
    def follow(w, average, ema_momentum):
        average = ema_momentum * average + (1 - ema_momentum) * w
        return average

    @lines(makes=("w",), average="average")
    def overwrite(w, average):
        w = average
        return w, average

    def _follow(
        self, w: Array, slots: dict[str, Array], t: int, arithmetic: Arithmetic
    ) -> tuple[Array, dict[str, Array]]:
        chosen = self.first if t == 1 else self.follow
        _, slots = self._run(chosen, {"w": w}, slots, arithmetic)
        every = self.ema_overwrite_frequency
        if every is None or t % every:
            return w, slots
        made, slots = self._run(self.overwrite, {"w": w}, slots, arithmetic)
        return made["w"], slots
