"""Schedule-free Adam: averaging in place of a schedule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..optimizer import Hyper, Optimizer, State, hyper
from ..rule import rule
from ..sparse import every_row


@dataclass(frozen=True)
class ScheduleFreeAdamW(Optimizer):
    """Schedule-free AdamW, as in Keras 3.

    Defazio, Yang, Mehta, Mishchenko, Khaled, Cutkosky, *The Road Less Scheduled*, 2024,
    arXiv:2405.15682, algorithm 1 without its weighting by squared learning rates.

    Gradients are taken at ``w`` (the paper's ``y``), between a point ``z`` that takes
    Adam's steps and the average ``x`` of all ``z``. **``x`` is what one evaluates**:
    ``averaged`` gives it.

    Args:
        learning_rate: ``[0, inf)``.
        beta_1: where between ``z`` (0) and ``x`` (1) the weights are; ``(0, 1]``.
        beta_2: decay of the second moment; ``[0, 1)``.
        epsilon: added to the *corrected* root; ``[0, inf)``.
        warmup_steps: steps over which the learning rate rises; ``[0, inf)``.

    Slots: ``offset`` (``d``), which is ``z - w`` and starts at zero; ``velocity``
    (``v``), the second moment. Keras 3 keeps ``z`` itself. optax weighs each ``z`` in
    the average by the square of the largest learning rate so far: the same while the
    learning rate is constant. Weight decay is times the learning rate here. A sparse
    gradient acts on every row, as in Keras 3: each ``x`` goes on towards its ``z``.

    >>> free = ScheduleFreeAdamW(0.5, beta_1=0.5, beta_2=0.0, epsilon=0.0)
    >>> g = np.array([2.0])
    >>> w, state = free.run(np.array([1.0]), [g, g])
    >>> w.tolist(), free.averaged(w, state).tolist()  # z is 0.5, then 0
    ([0.125], [0.25])
    """

    learning_rate: Hyper = hyper(0.0025, "[0, inf)")
    beta_1: Hyper = hyper(0.9, "(0, 1]")
    beta_2: Hyper = hyper(0.999, "[0, 1)")
    epsilon: float = hyper(1e-8, "[0, inf)")
    warmup_steps: float = hyper(0, "[0, inf)")
    decay_rows: str = field(default="every_row", kw_only=True)
    decay_times_learning_rate: bool = field(default=True, kw_only=True)

    home: ClassVar[str] = "keras.optimizers.ScheduleFreeAdamW"
    paper: ClassVar[str] = "Defazio et al. 2024, arXiv:2405.15682"
    examples: ClassVar = (  # 1e-8 is 0 in float16
        {"epsilon": 1e-7},
        {"epsilon": 1e-7, "warmup_steps": 4},
    )

    @rule(d="offset", v="velocity", sparse=every_row)
    def schedule_free(
        w, g, d, v, t, learning_rate, beta_1, beta_2, epsilon, warmup_steps
    ):
        rate = learning_rate * np.minimum(t / np.maximum(warmup_steps, 1), 1)
        v = beta_2 * v + (1 - beta_2) * g**2
        x = w - (1 - beta_1) / beta_1 * d
        z = w + d - rate * g / (np.sqrt(v / (1 - beta_2**t)) + epsilon)
        x = x + (z - x) / t
        w = (1 - beta_1) * z + beta_1 * x
        d = beta_1 * (z - x)
        return w, d, v

    def averaged(self, params: Any, state: State) -> Any:
        """The averages ``x`` of weights as ``step`` takes and gives them.

        Raises:
            ValueError: ``beta_1`` is a callable, whose last value is not known.
        """
        if callable(self.beta_1):
            raise ValueError("averaged needs a beta_1 that is a number")
        share = (1 - self.beta_1) / self.beta_1

        def average(w: Any, slots: dict[str, Any]) -> Any:
            w = np.asarray(w)
            wide = w.astype(np.result_type(w, np.float64), copy=False)
            return (wide - share * slots["offset"]).astype(w.dtype)

        if isinstance(params, dict):
            pairs = zip(params.items(), state.slots, strict=True)
            return {name: average(w, slots) for (name, w), slots in pairs}
        if isinstance(params, list | tuple):
            pairs = zip(params, state.slots, strict=True)
            return type(params)([average(w, slots) for w, slots in pairs])
        return average(params, state.slots[0])
