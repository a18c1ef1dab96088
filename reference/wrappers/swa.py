"""Stochastic weight averaging."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..gradients import Array
from ..optimizer import Arithmetic, hyper
from ..optimizers.nadam import Nadam
from ..optimizers.sgd import SGD
from ..rule import Slot
from ..wrapper import AVERAGE, Wrapper, lines


@dataclass(frozen=True)
class SWA(Wrapper):
    """Stochastic weight averaging: the mean of snapshots of the weights.

    Izmailov, Podoprikhin, Garipov, Vetrov, Wilson, *Averaging Weights Leads to Wider
    Optima and Better Generalization*, 2018, arXiv:1803.05407, algorithm 1.

    Args:
        optimizer: the inner optimizer.
        start_averaging: ``m``: the first snapshot is of the weights after ``m`` steps,
            the weights that training starts from where ``m`` is 0.
        average_period: ``c``, the cycle length: further snapshots are taken after
            ``m + c``, ``m + 2c``, ... steps, at the end of each cycle.

    Slot ``average``: until the first snapshot, the weights; then the mean of the
    snapshots so far, constraints included. Addons means the same and is off by one.

    >>> import numpy as np
    >>> swa = SWA(SGD(learning_rate=1.0), start_averaging=1, average_period=2)
    >>> w, state, averages = np.array(0.0), None, []
    >>> for _ in range(5):
    ...     w, state = swa.run(w, [np.array(-1.0)], state)
    ...     averages.append(float(state.slots[0]["average"]))
    >>> averages  # 1, 1, (1 + 3) / 2, 2, (1 + 3 + 5) / 3
    [1.0, 1.0, 2.0, 2.0, 3.0]
    """

    start_averaging: int = hyper(0, "[0, inf)")
    average_period: int = hyper(10, "[1, inf)")

    place: ClassVar[int] = AVERAGE
    adds: ClassVar[dict[str, Slot]] = {"average": Slot("average", "w")}
    home: ClassVar[str] = "tensorflow_addons.optimizers.SWA"
    paper: ClassVar[str] = "Izmailov et al. 2018, arXiv:1803.05407"
    examples: ClassVar = (
        {"optimizer": SGD(), "average_period": 1},
        {"optimizer": Nadam(), "start_averaging": 2, "average_period": 3},
    )

    @lines(average="average")
    def first(w, average):
        average = w
        return average

    @lines(average="average")
    def further(w, average, n_models):
        average = (average * n_models + w) / (n_models + 1)
        return average

    def _follow(
        self, w: Array, slots: dict[str, Array], t: int, arithmetic: Arithmetic
    ) -> tuple[Array, dict[str, Array]]:
        n_models, inside = divmod(t - self.start_averaging, self.average_period)
        if t <= self.start_averaging:
            return w, self._run(self.first, {"w": w}, slots, arithmetic)[1]
        if inside:
            return w, slots
        return w, self._run(
            self.further, {"w": w}, slots, arithmetic, n_models=n_models
        )[1]
