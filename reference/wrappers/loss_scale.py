"""Loss scaling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from ..gradients import Array, IndexedSlices
from ..optimizer import Arithmetic, Constraint, State, hyper
from ..optimizers.adam import Adam
from ..optimizers.nadam import Nadam
from ..rule import Slot
from ..wrapper import LOSS_SCALE, Wrapper

INITIAL_SCALE = 2.0**15
GROWTH_STEPS = 2000


@dataclass(frozen=True)
class LossScaleOptimizer(Wrapper):
    """Loss scaling for float16: a step whose gradients are not finite is skipped.

    Micikevicius et al., *Mixed Precision Training*, 2017, arXiv:1710.03740, section
    3.2; the dynamic scale is that of Keras.

    The loss is to be multiplied by ``scale(state)`` before it is differentiated, the
    gradients are to be ``unscaled``; ``step`` takes unscaled ones.

    Args:
        optimizer: the inner optimizer.
        dynamic: whether the scale adapts and steps are skipped.
        initial_scale: a power of two, best; 2**15, to be given where it stays fixed.
        dynamic_growth_steps: so many steps in a row double the scale, 2000. A skipped
            one halves it, down to 1, and begins the row anew.

    A skipped step changes no weight, no slot and not ``iterations``. Shared, if
    dynamic: ``loss_scale``, and ``good_steps`` in the row.

    >>> import reference
    >>> half = LossScaleOptimizer(reference.SGD(learning_rate=1.0), initial_scale=8.0)
    >>> w, state = half.run(np.array([1.0]), [np.array([np.inf])])
    >>> w.tolist(), state.iterations, half.scale(state)
    ([1.0], 0, 4.0)
    """

    dynamic: bool = True
    initial_scale: float | None = hyper(None, "[1, inf)")
    dynamic_growth_steps: int | None = hyper(None, "[1, inf)")

    place: ClassVar[int] = LOSS_SCALE
    adds: ClassVar[dict[str, Slot]] = {}
    home: ClassVar[str] = "tf.keras.mixed_precision.LossScaleOptimizer"
    paper: ClassVar[str] = "Micikevicius et al. 2017, arXiv:1710.03740"
    examples: ClassVar = (
        {"optimizer": Adam(), "dynamic_growth_steps": 3},
        {"optimizer": Nadam(), "initial_scale": 1.0},
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.dynamic and self.initial_scale is None:
            raise ValueError("initial_scale must be given where dynamic is False")
        if not self.dynamic and self.dynamic_growth_steps is not None:
            raise ValueError(
                "dynamic_growth_steps is for a dynamic scale, got "
                f"{self.dynamic_growth_steps} with dynamic=False"
            )

    def scale(self, state: State) -> float:
        """What the loss of the next step is to be multiplied by."""
        fixed = INITIAL_SCALE if self.initial_scale is None else self.initial_scale
        return state.shared.get("loss_scale", fixed)

    def unscaled(self, gradients: Sequence[Any], state: State) -> list[Any]:
        """The gradients of the loss from those of the scaled loss."""
        scale = self.scale(state)
        return [
            None
            if g is None
            else replace(g, values=g.values / scale)
            if isinstance(g, IndexedSlices)
            else g / scale
            for g in gradients
        ]

    def advance(
        self,
        weights: Sequence[Array],
        gradients: Sequence[Array | IndexedSlices | None],
        state: State,
        arithmetic: Arithmetic,
        constraints: Sequence[Constraint | None] = (),
    ) -> tuple[list[Array], State]:
        inner, _ = self._apart(state)
        new = list(weights)
        if not self.dynamic or all(_is_finite(g) for g in gradients):
            new, inner = self.optimizer.advance(
                weights, gradients, inner, arithmetic, constraints
            )
        if not self.dynamic:
            return new, inner
        scale, good_steps = state.shared["loss_scale"], state.shared["good_steps"]
        if not all(_is_finite(g) for g in gradients):
            scale, good_steps = max(scale / 2, 1.0), 0
        elif good_steps + 1 == (self.dynamic_growth_steps or GROWTH_STEPS):
            scale, good_steps = scale * 2, 0
        else:
            good_steps = good_steps + 1
        own = {"loss_scale": scale, "good_steps": good_steps}
        return new, replace(inner, shared={**inner.shared, **own})

    def _shared_start(self) -> dict[str, Any]:
        if not self.dynamic:
            return {}
        initial = INITIAL_SCALE if self.initial_scale is None else self.initial_scale
        return {"loss_scale": float(initial), "good_steps": 0}


def _is_finite(g: Array | IndexedSlices | None) -> bool:
    if g is None:
        return True
    return bool(np.all(np.isfinite(g.values if isinstance(g, IndexedSlices) else g)))
