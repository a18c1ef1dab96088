"""The protocol through which the check drives an implementation.

The check knows only this: start with these weights and hyperparameters; read the state;
write the state; apply these gradients; set the learning rate; resume from what a user
would save.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np

from ..gradients import IndexedSlices
from ..optimizer import State
from .rounding import FLOAT64, Format, Platform


class Refused(Exception):
    """The implementation declines this combination, with its own words."""


@dataclass(frozen=True)
class Setting:
    """How a run is made.

    Attributes:
        dtype: format of the weights.
        mode: a way of running that the port offers, as ``"eager"``.
        device: a device that the port offers, as ``"CPU"``.
        strategy: ``"none"`` or ``"mirrored"`` (two replicas).
    """

    dtype: Format
    mode: str = "eager"
    device: str = "CPU"
    strategy: str = "none"


@dataclass(frozen=True)
class Snapshot:
    """Weights and state at one moment, exact, in float64 or wider.

    Attributes:
        weights: one array a weight.
        state: slots by the names of the rule; a slot that cannot be seen is absent.
        shared_format: format in which shared slots are kept.
        counts: the steps of each weight, where they are counted one by one.
        shared_each: the shared slots of each weight, where each keeps its own.
    """

    weights: list[np.ndarray]
    state: State
    shared_format: Format = FLOAT64
    counts: Sequence[int] | None = None
    shared_each: Sequence[Mapping[str, float]] | None = None


class Session(Protocol):
    """One optimizer at work on some weights."""

    def read(self) -> Snapshot: ...

    def write(self, snapshot: Snapshot) -> None: ...

    def apply(self, gradients: Sequence[np.ndarray | IndexedSlices | None]) -> None: ...

    def set_learning_rate(self, value: float) -> None: ...

    def resume(self) -> None:
        """Go on in a fresh optimizer, from the configuration and the saved weights."""

    def hyperparameter_formats(self) -> Mapping[str, Format]:
        """The formats, narrower than float64, in which hyperparameters are kept."""


class Port(Protocol):
    """A kind of implementation."""

    @property
    def name(self) -> str: ...

    def modes(self) -> Sequence[str]: ...

    def devices(self) -> Sequence[str]: ...

    def strategies(self) -> Sequence[str]: ...

    def platform(self, setting: Setting) -> Platform: ...

    def versions(self) -> Mapping[str, str]: ...

    def accepts(self) -> set[str]:
        """The names of the hyperparameters that the constructor takes."""

    def refusal(self, gradient: np.ndarray | IndexedSlices | None) -> str:
        """Why a weight cannot have such a gradient; empty where it can."""

    def start(
        self,
        weights: Sequence[np.ndarray],
        hyperparameters: Mapping[str, Any],
        setting: Setting,
        slots: Sequence[str],
    ) -> Session:
        """Begin; raises ``Refused`` where the implementation declines."""


def arguments(optimizer: Any, accepted: set[str]) -> dict[str, Any]:
    """The constructor arguments of a rule, as far as an implementation takes them."""
    return {
        f.name: getattr(optimizer, f.name)
        for f in fields(optimizer)
        if f.name in accepted
        and f.name != "name"
        and (f.default is not None or getattr(optimizer, f.name) is not None)
        and not (f.name == "decay" and not optimizer.decay)
    }
