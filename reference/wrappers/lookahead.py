"""Lookahead."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..gradients import Array
from ..optimizer import Arithmetic, hyper
from ..optimizers.adam import Adam
from ..optimizers.nadam import Nadam
from ..rule import Slot
from ..wrapper import LOOKAHEAD, Wrapper, lines


@dataclass(frozen=True)
class Lookahead(Wrapper):
    """Lookahead: k steps forward, 1 step back.

    Zhang, Lucas, Hinton, Ba, *Lookahead Optimizer: k steps forward, 1 step back*, 2019,
    arXiv:1907.08610, algorithm 1.

    Args:
        optimizer: the inner optimizer, which takes the fast steps.
        sync_period: ``k``, steps from one synchronisation to the next; an integer from
            1.
        slow_step_size: ``alpha``, the part of the way that the slow weights go toward
            the fast ones; ``[0, 1]``.

    Slot ``slow``: the slow weights, which start at the weights. After every
    ``sync_period``-th step, constraints included, both are the same, on every row
    whatever the gradient was. With ``sync_period=1`` and ``slow_step_size=1`` it is the
    inner optimizer.

    >>> import numpy as np, reference
    >>> lookahead = Lookahead(reference.SGD(learning_rate=1.0), sync_period=3)
    >>> w, state, path = np.array(0.0), None, []
    >>> for _ in range(7):
    ...     w, state = lookahead.run(w, [np.array(-1.0)], state)
    ...     path.append(float(w))
    >>> path
    [1.0, 2.0, 1.5, 2.5, 3.5, 3.0, 4.0]
    """

    sync_period: int = hyper(6, "[1, inf)")
    slow_step_size: float = hyper(0.5, "[0, 1]")

    place: ClassVar[int] = LOOKAHEAD
    adds: ClassVar[dict[str, Slot]] = {"slow": Slot("slow", "w")}
    home: ClassVar[str] = "tensorflow_addons.optimizers.Lookahead"
    paper: ClassVar[str] = "Zhang et al. 2019, arXiv:1907.08610"
    examples: ClassVar = (
        {"optimizer": Adam(), "sync_period": 3},
        {"optimizer": Nadam(clipnorm=2.0), "sync_period": 2, "slow_step_size": 0.75},
    )

    @lines(makes=("w",), slow="slow")
    def synchronize(w, slow, slow_step_size):
        slow = slow + slow_step_size * (w - slow)
        w = slow
        return w, slow

    def _follow(
        self, w: Array, slots: dict[str, Array], t: int, arithmetic: Arithmetic
    ) -> tuple[Array, dict[str, Array]]:
        if t % self.sync_period:
            return w, slots
        made, slots = self._run(self.synchronize, {"w": w}, slots, arithmetic)
        return made["w"], slots
