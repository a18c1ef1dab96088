"""Keras 3 on any of its backends, and the newer optimizers of tf_keras."""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from ...dialects import Dialect
from ...gradients import IndexedSlices
from ...optimizer import State
from ...schedules import LearningRateSchedule
from ..port import Refused, Setting, Snapshot
from ..rounding import FLOAT32, FORMATS, IEEE, TENSORFLOW_CPU, XLA_CPU, Format, Platform
from .base import NamedPort

MODES = {
    "tensorflow": ("eager", "function", "xla"),
    "torch": ("eager",),
    "jax": ("eager",),
}
NO_KERNEL = ("No OpKernel was registered", "uncompilable", "unsupported operations")


class KerasPort(NamedPort):
    """A subclass of ``keras.optimizers.Optimizer``, or of the one of tf_keras.

    The learning rate is kept in float32, ``1 - beta`` is formed in float64, ``beta**t``
    in the dtype of the weights. Modes on TensorFlow: ``eager``, ``function``, ``xla``.
    """

    slot_names: ClassVar = {
        "m": ("_momentums", "momentums", "_m"),
        "v": ("_velocities", "_u", "_v"),
        "vhat": ("_velocity_hats",),
        "accumulator": ("_accumulators",),
        "linear": ("_linears",),
        "accum_grad": ("_accumulated_grads",),
        "accum_var": ("_accumulated_delta_vars",),
        "rms": ("_velocities",),
        "mg": ("_average_gradients",),
        "momentum": ("momentums", "_momentums"),
    }
    shared_names: ClassVar = {"momentum_cache": "_u_product"}

    def __init__(self, target: Any, dialect: Dialect | None = None) -> None:
        super().__init__(target, dialect)
        package = next(
            name
            for cls in target.__mro__
            if (name := cls.__module__.partition(".")[0]) in ("keras", "tf_keras")
        )
        self.package = sys.modules[package]
        self.backend = (
            importlib.import_module("keras").backend.backend()
            if package == "keras"
            else "tensorflow"
        )

    def modes(self) -> Sequence[str]:
        return MODES[self.backend]

    def platform(self, setting: Setting) -> Platform:
        platforms = {"tensorflow": TENSORFLOW_CPU, "jax": XLA_CPU}
        return platforms.get(self.backend, IEEE)

    def versions(self) -> Mapping[str, str]:
        backend = importlib.import_module(self.backend)
        return {
            self.package.__name__: self.package.__version__,
            self.backend: backend.__version__,
        }

    def refusal(self, gradient: np.ndarray | IndexedSlices | None) -> str:
        if isinstance(gradient, IndexedSlices) and self.backend != "tensorflow":
            return f"sparse gradients on {self.backend} are not driven here"
        return ""

    def start(
        self,
        weights: Sequence[np.ndarray],
        hyperparameters: Mapping[str, Any],
        setting: Setting,
        slots: Sequence[str],
    ) -> KerasSession:
        return KerasSession(self, weights, hyperparameters, setting, slots)


class KerasSession:
    """One optimizer and its variables."""

    def __init__(
        self,
        port: KerasPort,
        weights: Sequence[np.ndarray],
        hyperparameters: Mapping[str, Any],
        setting: Setting,
        slots: Sequence[str],
    ) -> None:
        self.port = port
        self.setting = setting
        self.slots = slots
        self.dtype = setting.dtype.name
        self.given = dict(hyperparameters)
        self.variables = [self._variable(w) for w in weights]
        try:
            self.optimizer = port.target(**port.given(self._converted(hyperparameters)))
        except (TypeError, ValueError) as error:
            raise Refused(str(error)) from error
        self.optimizer.build(self.variables)
        self._step = self._compiled()

    def _converted(self, hyperparameters: Mapping[str, Any]) -> dict[str, Any]:
        schedules = self.port.package.optimizers.schedules
        return {
            name: getattr(schedules, type(value).__name__)(**vars(value))
            if isinstance(value, LearningRateSchedule)
            else value
            for name, value in hyperparameters.items()
        }

    def _variable(self, w: np.ndarray) -> Any:
        if hasattr(self.port.package, "Variable"):
            return self.port.package.Variable(self._array(w), dtype=self.dtype)
        tf = importlib.import_module("tensorflow")
        return tf.Variable(self._array(w), dtype=self.dtype)

    def _array(self, values: Any) -> np.ndarray:
        values = np.asarray(values, np.float64)
        if self.dtype == "bfloat16":
            return values.astype(np.float32)
        return values.astype(self.dtype)

    def read(self) -> Snapshot:
        slots: list[dict[str, np.ndarray]] = [{} for _ in self.variables]
        for ours in self.slots:
            kept, sign = self._kept(ours)
            for found, variable in zip(slots, kept, strict=False):
                if variable is not None:
                    found[ours] = sign * _exact(variable)
        shared, format = {}, FORMATS["float64"]
        for ours, name in self.port.shared_names.items():
            if (variable := getattr(self.optimizer, name, None)) is not None:
                shared[ours] = float(_exact(variable))
                format = FORMATS[_dtype_name(variable)]
        steps = int(_exact(self.optimizer.iterations))
        weights = [_exact(v) for v in self.variables]
        return Snapshot(weights, State(steps, tuple(slots), shared), format)

    def _kept(self, ours: str) -> tuple[Sequence[Any], float]:
        names, sign = self.port.slot(ours)
        for name in names:
            kept = getattr(self.optimizer, name, None)
            if isinstance(kept, list) and len(kept) == len(self.variables):
                return kept, sign
        return (), sign

    def write(self, snapshot: Snapshot) -> None:
        for variable, w in zip(self.variables, snapshot.weights, strict=True):
            variable.assign(self._array(w))
        for ours in {name for slots in snapshot.state.slots for name in slots}:
            kept, sign = self._kept(ours)
            if not kept:
                raise Refused(f"it has no slot {ours} to start from")
            for variable, slots in zip(kept, snapshot.state.slots, strict=True):
                if ours in slots and variable is not None:
                    variable.assign(self._array(sign * slots[ours]))
        for ours, value in snapshot.state.shared.items():
            name = self.port.shared_names.get(ours, "")
            if not hasattr(self.optimizer, name):
                raise Refused(f"it has no {ours} to start from")
            getattr(self.optimizer, name).assign(value)
        self.optimizer.iterations.assign(snapshot.state.iterations)

    def apply(self, gradients: Sequence[np.ndarray | IndexedSlices | None]) -> None:
        given = [self._gradient(g) for g in gradients]
        with _silent():
            try:
                self._step(given)
            except Exception as error:
                if any(words in str(error) for words in NO_KERNEL):
                    raise Refused(str(error).splitlines()[0]) from error
                raise

    def _gradient(self, g: np.ndarray | IndexedSlices | None) -> Any:
        if g is None:
            return None
        if isinstance(g, IndexedSlices):
            return {"values": self._tensor(g.values), "indices": np.asarray(g.indices)}
        return self._tensor(g)

    def _tensor(self, values: Any) -> Any:
        if self.port.backend == "tensorflow":
            tf = importlib.import_module("tensorflow")
            return tf.constant(self._array(values), self.dtype)
        ops = importlib.import_module("keras").ops
        return ops.convert_to_tensor(self._array(values), self.dtype)

    def _compiled(self) -> Callable[[Any], Any]:
        optimizer, variables = self.optimizer, self.variables
        if self.port.backend != "tensorflow":
            return lambda gradients: optimizer.apply(gradients, variables)
        tf = importlib.import_module("tensorflow")

        def step(gradients: Sequence[Any]) -> None:
            pairs = [
                (_slices(tf, g, v) if isinstance(g, dict) else g, v)
                for g, v in zip(gradients, variables, strict=True)
            ]
            optimizer.apply_gradients(pairs)

        if self.setting.mode == "eager":
            return step
        return tf.function(step, jit_compile=self.setting.mode == "xla")

    def set_learning_rate(self, value: float) -> None:
        self.optimizer.learning_rate = value

    def resume(self) -> None:
        old = self.optimizer
        self.optimizer = self.port.target.from_config(old.get_config())
        self.optimizer.build(self.variables)
        for new, kept in zip(self.optimizer.variables, old.variables, strict=True):
            new.assign(kept)
        self._step = self._compiled()

    def hyperparameter_formats(self) -> Mapping[str, Format]:
        given = self.given.get("learning_rate")
        if not isinstance(given, float):
            return {}
        kept = float(_exact(self.optimizer.learning_rate))
        single = kept != given and kept == float(FLOAT32.round(given))
        return {"learning_rate": FLOAT32} if single else {}


def _slices(tf: Any, g: Mapping[str, Any], variable: Any) -> Any:
    return tf.IndexedSlices(g["values"], g["indices"], tf.shape(_value(variable)))


def _value(variable: Any) -> Any:
    return getattr(variable, "value", variable) if _is_keras(variable) else variable


def _is_keras(variable: Any) -> bool:
    return type(variable).__module__.partition(".")[0] == "keras"


def _exact(variable: Any) -> np.ndarray:
    value = _value(variable)
    if hasattr(value, "detach"):
        return np.array(value.detach().double().numpy())
    return np.asarray(value).astype(np.float64)


def _dtype_name(variable: Any) -> str:
    return getattr(variable.dtype, "name", variable.dtype)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Without the warnings about gradients that are left out on purpose."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
