"""``torch.optim``, and any other subclass of its ``Optimizer``."""

from __future__ import annotations

import copy
import io
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import torch

from ...dialects import Dialect
from ...gradients import IndexedSlices
from ...optimizer import State
from ..port import Refused, Setting, Snapshot
from ..rounding import FORMATS, IEEE, Format, Platform
from .base import NamedPort

DTYPES = {
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "float32": torch.float32,
    "float64": torch.float64,
}


class TorchPort(NamedPort):
    """A subclass of ``torch.optim.Optimizer``.

    Hyperparameters are Python numbers, coefficients are formed in float64, arithmetic
    is in the dtype of the weights. Steps are counted for each weight. Modes: ``loop``,
    and ``foreach`` and ``fused`` where the class takes them.
    """

    every_pair = True
    arguments: ClassVar = {
        "learning_rate": ("lr",),
        "beta_1": ("betas[0]",),
        "beta_2": ("betas[1]",),
        "beta_3": ("betas[2]",),
        "epsilon": ("eps",),
        "rho": ("alpha",),
        "schedule_decay": ("momentum_decay",),
    }
    slot_names: ClassVar = {
        "m": ("exp_avg",),
        "v": ("exp_avg_sq", "exp_inf"),
        "vhat": ("max_exp_avg_sq",),
        "accumulator": ("sum",),
        "accum_grad": ("square_avg",),
        "accum_var": ("acc_delta",),
        "rms": ("square_avg",),
        "mg": ("grad_avg",),
        "momentum": ("momentum_buffer",),
    }

    shared_names: ClassVar = {"momentum_cache": "mu_product"}

    def __init__(self, target: Any, dialect: Dialect | None = None) -> None:
        super().__init__(target, dialect)
        if target.__init__ is torch.optim.Optimizer.__init__:
            raise TypeError(f"{target!r} has no constructor of its own")

    def modes(self) -> Sequence[str]:
        paths = [path for path in ("foreach", "fused") if path in self.parameters]
        return ("loop", *paths)

    def platform(self, setting: Setting) -> Platform:
        return IEEE

    def versions(self) -> Mapping[str, str]:
        return {"torch": torch.__version__}

    def start(
        self,
        weights: Sequence[np.ndarray],
        hyperparameters: Mapping[str, Any],
        setting: Setting,
        slots: Sequence[str],
    ) -> TorchSession:
        return TorchSession(self, weights, hyperparameters, setting, slots)


class TorchSession:
    """One optimizer and its parameters."""

    def __init__(
        self,
        port: TorchPort,
        weights: Sequence[np.ndarray],
        hyperparameters: Mapping[str, Any],
        setting: Setting,
        slots: Sequence[str],
    ) -> None:
        self.port = port
        self.dtype = DTYPES[setting.dtype.name]
        self.slots = slots
        self.steps = 0
        self.pending: Snapshot | None = None
        self.parameters = [torch.nn.Parameter(self._tensor(w)) for w in weights]
        rate = hyperparameters.get("learning_rate")
        self.schedule = rate if callable(rate) else None
        if self.schedule:
            hyperparameters = {**hyperparameters, "learning_rate": self.schedule(0)}
        self.arguments = port.given(hyperparameters)
        for path in ("foreach", "fused"):
            if path in port.parameters:
                self.arguments[path] = setting.mode == path
        self.optimizer = self._made()

    def _made(self) -> Any:
        try:
            return self.port.target(self.parameters, **self.arguments)
        except (TypeError, ValueError, RuntimeError) as error:
            raise Refused(str(error)) from error

    def _tensor(self, array: Any) -> Any:
        return torch.tensor(np.asarray(array, np.float64)).to(self.dtype)

    def read(self) -> Snapshot:
        if self.pending:
            return self.pending
        slots, counts, format = [], [], FORMATS["float64"]
        each: list[dict[str, float]] = []
        for p in self.parameters:
            kept = self.optimizer.state.get(p, {})
            found = {}
            for ours in self.slots:
                names, sign = self.port.slot(ours)
                for name in names:
                    if torch.is_tensor(kept.get(name)) and not kept[name].is_sparse:
                        found[ours] = sign * _exact(kept[name])
                        break
            slots.append(found)
            counts.append(int(kept["step"]) if "step" in kept else 0)
            each.append({})
            for ours, name in self.port.shared_names.items():
                if name in kept:
                    each[-1][ours] = float(kept[name])
                    format = FORMATS[str(kept[name].dtype).removeprefix("torch.")]
        counted = any("step" in kept for kept in self.optimizer.state.values())
        return Snapshot(
            [_exact(p) for p in self.parameters],
            State(self.steps, tuple(slots), next(filter(None, each), {})),
            format,
            counts=counts if counted else None,
            shared_each=each,
        )

    def write(self, snapshot: Snapshot) -> None:
        self.pending = snapshot
        self._set_weights(snapshot)

    def _set_weights(self, snapshot: Snapshot) -> None:
        with torch.no_grad():
            for p, w in zip(self.parameters, snapshot.weights, strict=True):
                p.copy_(self._tensor(w))

    def apply(self, gradients: Sequence[np.ndarray | IndexedSlices | None]) -> None:
        if self.schedule:
            self.set_learning_rate(self.schedule(self.steps))
        if self.pending:
            self._step(gradients)  # makes the state, which is set then
            self._set_state(self.pending)
            self.pending = None
        self._step(gradients)
        self.steps += 1

    def _step(self, gradients: Sequence[np.ndarray | IndexedSlices | None]) -> None:
        for p, g in zip(self.parameters, gradients, strict=True):
            p.grad = self._gradient(g, p)
        try:
            self.optimizer.step()
        except RuntimeError as error:
            if "sparse" in str(error).lower():
                raise Refused(str(error).splitlines()[0]) from error
            raise

    def _gradient(self, g: np.ndarray | IndexedSlices | None, p: Any) -> Any:
        if isinstance(g, IndexedSlices):
            indices = torch.tensor(np.asarray(g.indices, np.int64))[None]
            return torch.sparse_coo_tensor(
                indices, self._tensor(g.values), p.shape, check_invariants=True
            )
        return None if g is None else self._tensor(g)

    def _set_state(self, snapshot: Snapshot) -> None:
        self._set_weights(snapshot)
        self.steps = snapshot.state.iterations
        for p, slots in zip(self.parameters, snapshot.state.slots, strict=True):
            kept = self.optimizer.state[p]
            unset = set(kept) - {"step"}
            if "step" in kept:
                step = kept["step"]
                kept["step"] = (
                    torch.full_like(step, self.steps)
                    if torch.is_tensor(step)
                    else self.steps
                )
            for ours, value in slots.items():
                names, sign = self.port.slot(ours)
                name = next((n for n in names if torch.is_tensor(kept.get(n))), None)
                if name is None:
                    raise Refused(f"it has no slot {ours} to start from")
                kept[name].copy_(self._tensor(sign * value))
                unset -= {name}
            for ours, value in snapshot.state.shared.items():
                name = self.port.shared_names.get(ours)
                if name in kept:
                    kept[name].fill_(float(value))
                    unset -= {name}
            if unset:
                raise Refused(f"it keeps {', '.join(sorted(unset))}, unknown here")

    def set_learning_rate(self, value: float) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = value

    def resume(self) -> None:
        file = io.BytesIO()
        torch.save(self.optimizer.state_dict(), file)
        file.seek(0)
        self.optimizer = self._made()
        self.optimizer.load_state_dict(torch.load(file, weights_only=True))

    def hyperparameter_formats(self) -> Mapping[str, Format]:
        return {}


def _exact(tensor: Any) -> np.ndarray:
    return copy.copy(tensor.detach().to(torch.float64).numpy())
