"""optax: a function that makes a ``GradientTransformation``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import optax

from ...gradients import IndexedSlices
from ...optimizer import State
from ..port import Refused, Setting, Snapshot
from ..rounding import XLA_CPU, Format, Platform
from .base import NamedPort

SCHEDULED = 64
"""Steps of a schedule that are tabulated; no run is longer."""


class OptaxPort(NamedPort):
    """A function that returns a ``GradientTransformation``.

    Hyperparameters are Python numbers; ``1 - beta`` is formed in float64, ``beta**t``
    in float32. float64 runs under ``enable_x64``. Modes: ``eager`` and ``jit``.
    """

    arguments: ClassVar = {
        "beta_1": ("b1",),
        "beta_2": ("b2",),
        "beta_3": ("b3",),
        "epsilon": ("eps",),
        "rho": ("rho", "decay"),
    }
    slot_names: ClassVar = {
        "m": ("mu",),
        "v": ("nu",),
        "vhat": ("nu_max",),
        "accumulator": ("sum_of_squares",),
        "accum_grad": ("e_g",),
        "accum_var": ("e_x",),
        "rms": ("nu",),
        "mg": ("mu",),
        "momentum": ("trace",),
    }

    def modes(self) -> Sequence[str]:
        return ("eager", "jit")

    def platform(self, setting: Setting) -> Platform:
        return XLA_CPU

    def versions(self) -> Mapping[str, str]:
        return {"optax": optax.__version__, "jax": jax.__version__}

    def refusal(self, gradient: np.ndarray | IndexedSlices | None) -> str:
        if isinstance(gradient, IndexedSlices):
            return "optax has no sparse gradients"
        return "optax has no weights without a gradient" if gradient is None else ""

    def start(
        self,
        weights: Sequence[np.ndarray],
        hyperparameters: Mapping[str, Any],
        setting: Setting,
        slots: Sequence[str],
    ) -> OptaxSession:
        return OptaxSession(self, weights, hyperparameters, setting, slots)


class OptaxSession:
    """One transformation, its state and the weights."""

    def __init__(
        self,
        port: OptaxPort,
        weights: Sequence[np.ndarray],
        hyperparameters: Mapping[str, Any],
        setting: Setting,
        slots: Sequence[str],
    ) -> None:
        self.port = port
        self.setting = setting
        self.slots = slots
        self.steps = 0
        self.arguments = port.given(hyperparameters)
        if callable(rate := self.arguments.get("learning_rate")):
            rates = np.array([rate(step) for step in range(SCHEDULED)])
            self.arguments["learning_rate"] = lambda count: jnp.asarray(rates)[count]
        self._make()
        with self._precision():
            self.weights = [self._array(w) for w in weights]
            try:
                self.state = self.transformation.init(self.weights)
            except (TypeError, ValueError) as error:
                raise Refused(str(error)) from error

    def _make(self) -> None:
        with self._precision():
            try:
                self.transformation = self.port.target(**self.arguments)
            except (TypeError, ValueError) as error:
                raise Refused(str(error)) from error
        update = self._update
        self.update = jax.jit(update) if self.setting.mode == "jit" else update

    def _update(self, gradients: Any, state: Any, weights: Any) -> Any:
        updates, state = self.transformation.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state

    def _precision(self) -> Any:
        return jax.enable_x64(self.setting.dtype.name == "float64")

    def _array(self, values: Any) -> Any:
        return jnp.asarray(np.asarray(values, np.float64), self.setting.dtype.name)

    def read(self) -> Snapshot:
        fields = dict(_fields(self.state))
        slots: list[dict[str, np.ndarray]] = [{} for _ in self.weights]
        for ours in self.slots:
            names, sign = self.port.slot(ours)
            for name in names:
                kept = fields.get(name)
                if isinstance(kept, list) and len(kept) == len(self.weights):
                    for found, leaf in zip(slots, kept, strict=True):
                        found[ours] = sign * _exact(leaf)
                    break
        steps = int(fields["count"]) if "count" in fields else self.steps
        weights = [_exact(w) for w in self.weights]
        return Snapshot(weights, State(steps, tuple(slots)))

    def write(self, snapshot: Snapshot) -> None:
        self.steps = snapshot.state.iterations
        given: dict[str, Any] = {"count": jnp.asarray(self.steps, jnp.int32)}
        fields = dict(_fields(self.state))
        with self._precision():
            self.weights = [self._array(w) for w in snapshot.weights]
            for ours in {name for slots in snapshot.state.slots for name in slots}:
                names, sign = self.port.slot(ours)
                name = next((n for n in names if isinstance(fields.get(n), list)), None)
                if name is None:
                    raise Refused(f"it has no slot {ours} to start from")
                given[name] = [
                    self._array(sign * slots[ours]) if ours in slots else kept
                    for slots, kept in zip(
                        snapshot.state.slots, fields[name], strict=True
                    )
                ]
        if unset := set(fields) - set(given):
            raise Refused(f"it keeps {', '.join(sorted(unset))}, unknown here")
        self.state = _with_fields(self.state, given)

    def apply(self, gradients: Sequence[np.ndarray | IndexedSlices | None]) -> None:
        with self._precision():
            arrays = [self._array(g) for g in gradients]
            self.weights, self.state = self.update(arrays, self.state, self.weights)
        self.steps += 1

    def set_learning_rate(self, value: float) -> None:
        self.arguments["learning_rate"] = value
        self._make()

    def resume(self) -> None:
        leaves = [np.array(leaf) for leaf in jax.tree.leaves(self.state)]
        self._make()
        with self._precision():
            structure = jax.tree.structure(self.transformation.init(self.weights))
            self.state = jax.tree.unflatten(structure, map(jnp.asarray, leaves))

    def hyperparameter_formats(self) -> Mapping[str, Format]:
        return {}


def _exact(leaf: Any) -> np.ndarray:
    return np.asarray(leaf).astype(np.float64)


def _fields(state: Any) -> Any:
    """Names and values of what the named tuples of a state hold."""
    if hasattr(state, "_fields"):
        for name, value in state._asdict().items():
            if isinstance(value, tuple):
                yield from _fields(value)
            else:
                yield name, value
    elif isinstance(state, tuple):
        for part in state:
            yield from _fields(part)


def _with_fields(state: Any, given: Mapping[str, Any]) -> Any:
    """The state with the fields that are given, wherever they are in it."""
    if hasattr(state, "_fields"):
        new = {
            name: given.get(name, _with_fields(value, given))
            for name, value in state._asdict().items()
        }
        return state._replace(**new)
    if isinstance(state, tuple):
        return tuple(_with_fields(part, given) for part in state)
    return state
