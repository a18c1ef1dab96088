"""A function ``step(weights, grads, state) -> weights, state`` on NumPy arrays."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...gradients import IndexedSlices
from ...optimizer import State
from ..port import Refused, Setting, Snapshot
from ..rounding import FORMATS, IEEE, Format, Platform
from .base import NamedPort

ARGUMENTS = ("weights", "grads", "state")


class FunctionPort(NamedPort):
    """``step(weights, grads, state, **hyperparameters) -> weights, state``.

    ``weights`` is a list of arrays, ``grads`` one of arrays, ``IndexedSlices`` and
    ``None``; ``state`` is ``None`` before the first step and then what came back.
    Further arguments are hyperparameters under our names. A state that is a mapping
    from the names of slots to lists of arrays, one a weight, is judged too.
    """

    def modes(self) -> Sequence[str]:
        return ("numpy",)

    def platform(self, setting: Setting) -> Platform:
        return IEEE

    def versions(self) -> Mapping[str, str]:
        return {}

    def accepts(self) -> set[str]:
        return super().accepts() - set(ARGUMENTS)

    def start(
        self,
        weights: Sequence[np.ndarray],
        hyperparameters: Mapping[str, Any],
        setting: Setting,
        slots: Sequence[str],
    ) -> FunctionSession:
        return FunctionSession(self, weights, hyperparameters, setting, slots)


class FunctionSession:
    """The weights and the state between two calls."""

    def __init__(
        self,
        port: FunctionPort,
        weights: Sequence[np.ndarray],
        hyperparameters: Mapping[str, Any],
        setting: Setting,
        slots: Sequence[str],
    ) -> None:
        self.port = port
        self.dtype = _dtype(setting.dtype)
        self.slots = slots
        self.hyperparameters = dict(hyperparameters)
        self.weights = [np.asarray(w).astype(self.dtype) for w in weights]
        self.state: Any = None
        self.steps = 0

    def read(self) -> Snapshot:
        kept = self.state if isinstance(self.state, Mapping) else {}
        slots: list[dict[str, np.ndarray]] = [{} for _ in self.weights]
        for ours in self.slots:
            for found, array in zip(slots, kept.get(ours, ()), strict=False):
                found[ours] = _exact(array)
        weights = [_exact(w) for w in self.weights]
        return Snapshot(weights, State(self.steps, tuple(slots)))

    def write(self, snapshot: Snapshot) -> None:
        raise Refused("a function starts at its first step")

    def apply(self, gradients: Sequence[np.ndarray | IndexedSlices | None]) -> None:
        given = dict(self.hyperparameters)
        if callable(rate := given.get("learning_rate")):
            given["learning_rate"] = rate(self.steps)
        grads = [self._typed(g) for g in gradients]
        weights = [w.copy() for w in self.weights]
        self.weights, self.state = self.port.target(
            weights, grads, self.state, **self.port.given(given)
        )
        self.steps += 1

    def _typed(self, g: Any) -> Any:
        if isinstance(g, IndexedSlices):
            return IndexedSlices(np.asarray(g.values).astype(self.dtype), g.indices)
        return None if g is None else np.asarray(g).astype(self.dtype)

    def set_learning_rate(self, value: float) -> None:
        self.hyperparameters["learning_rate"] = value

    def resume(self) -> None:
        self.state = copy.deepcopy(self.state)

    def hyperparameter_formats(self) -> Mapping[str, Format]:
        return {}


def _exact(array: Any) -> np.ndarray:
    return np.array(array).astype(np.float64)


def _dtype(format: Format) -> Any:
    if format is FORMATS["bfloat16"]:
        try:
            from ml_dtypes import bfloat16
        except ImportError as error:
            raise Refused("bfloat16 needs ml_dtypes, which is not installed") from error
        return bfloat16
    return np.dtype(format.name)
