"""How the check drives an ``OptimizerV2``: ours, tf_keras', yours."""

from __future__ import annotations

import contextlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import tensorflow as tf

import tf_impl
from reference.conformance.port import Refused, Setting, Snapshot, arguments
from reference.conformance.ports.base import NamedPort
from reference.conformance.rounding import (
    FLOAT32,
    FLOAT64,
    FORMATS,
    TENSORFLOW_CPU,
    TENSORFLOW_GPU,
    Format,
    Platform,
)
from reference.dialects import Dialect
from reference.gradients import IndexedSlices
from reference.optimizer import Driver, State
from reference.schedules import LearningRateSchedule
from tf_impl.legacy_keras import OptimizerV2, keras

MODES = ("eager", "function", "xla")
NO_KERNEL = ("No OpKernel was registered", "uncompilable", "unsupported operations")
CLIPPING_AND_DECAY = {"clipvalue", "clipnorm", "global_clipnorm", "decay"}


class ReplicasDiffer(Exception):
    """Replicas that must hold the same number do not."""


def two_logical_cpus() -> bool:
    """Make two logical CPUs for ``MirroredStrategy``; False where it is too late."""
    if len(tf.config.list_logical_devices("CPU") if tf_started() else []) >= 2:
        return True
    with contextlib.suppress(RuntimeError):
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * 2,
        )
    return len(tf.config.list_logical_devices("CPU")) >= 2


def tf_started() -> bool:
    """Whether TensorFlow's devices are settled for this process."""
    from tensorflow.python.eager import context

    return context.context()._context_handle is not None


class OptimizerV2Port(NamedPort):
    """A subclass of ``OptimizerV2``.

    Args:
        target: the class.
        dialect: the names in which it is special.

    Raises:
        TypeError: ``target`` is not a subclass.
    """

    every_pair = True

    def __init__(self, target: Any, dialect: Dialect | None = None) -> None:
        super().__init__(target, dialect)
        if not (isinstance(target, type) and issubclass(target, OptimizerV2)):
            raise TypeError(
                f"expected a subclass of {OptimizerV2.__module__}.Optimizer "
                f"(OptimizerV2), got {target!r}"
            )

    def modes(self) -> Sequence[str]:
        return MODES

    def devices(self) -> Sequence[str]:
        return ("CPU", *(["GPU"] if tf.config.list_physical_devices("GPU") else []))

    def strategies(self) -> Sequence[str]:
        return ("none", "mirrored")

    def refusal(self, gradient: np.ndarray | IndexedSlices | None) -> str:
        if gradient is None and getattr(self.target, "_needs_every_gradient", False):
            return "a weight needs a gradient at each call"
        return ""

    def platform(self, setting: Setting) -> Platform:
        return TENSORFLOW_GPU if setting.device == "GPU" else TENSORFLOW_CPU

    def versions(self) -> Mapping[str, str]:
        package = sys.modules[OptimizerV2.__module__.partition(".")[0]]
        return {"tensorflow": tf.__version__, "keras": package.__version__}

    @cached_property
    def parameters(self) -> Mapping[str, Any]:
        found = super().parameters
        last = inspect.signature(OptimizerV2.__init__).parameters
        reached = any(p.name in found for p in last.values() if p.default is None)
        return {**dict.fromkeys(CLIPPING_AND_DECAY), **found} if reached else found

    def start(
        self,
        weights: Sequence[np.ndarray],
        hyperparameters: Mapping[str, Any],
        setting: Setting,
        slots: Sequence[str],
    ) -> OptimizerV2Session:
        given = self.given(hyperparameters)
        return OptimizerV2Session(self.target, weights, given, setting, slots)


class OptimizerV2Session:
    """One optimizer and its variables, on one device or two replicas."""

    def __init__(
        self,
        target: Any,
        weights: Sequence[np.ndarray],
        hyperparameters: Mapping[str, Any],
        setting: Setting,
        slots: Sequence[str],
    ) -> None:
        self.target = target
        self.setting = setting
        self.slots = slots
        self.dtype = tf.dtypes.as_dtype(setting.dtype.name)
        self.given = dict(hyperparameters)
        self.strategy = None
        if setting.strategy == "mirrored":
            if not two_logical_cpus():
                raise Refused("TensorFlow started with one logical CPU")
            # Collectives of one strategy meet those of another in the same process.
            self.strategy = tf.distribute.MirroredStrategy(
                ["CPU:0", "CPU:1"],
                cross_device_ops=tf.distribute.ReductionToOneDevice(),
            )
        with self._placed():
            self.variables = [
                tf.Variable(self._array(w), name=f"w{i}") for i, w in enumerate(weights)
            ]
            try:
                self.optimizer = target(**_converted(hyperparameters, self.variables))
            except (TypeError, ValueError) as error:
                raise Refused(str(error)) from error
            if setting.mode != "eager" or self.strategy:
                self.optimizer._create_all_weights(self.variables)
        self._step = self._compiled()

    def read(self) -> Snapshot:
        shared, shared_format = self._shared()
        state = State(
            iterations=int(self.optimizer.iterations.numpy()),
            slots=tuple(self._slots_of(v) for v in self.variables),
            shared=shared,
        )
        return Snapshot([_exact(v) for v in self.variables], state, shared_format)

    def write(self, snapshot: Snapshot) -> None:
        with self._placed():
            self.optimizer._create_all_weights(self.variables)
        for variable, w, slots in zip(
            self.variables, snapshot.weights, snapshot.state.slots, strict=True
        ):
            variable.assign(self._array(w))
            for name, value in slots.items():
                try:
                    slot = self.optimizer.get_slot(variable, name)
                except KeyError as error:
                    raise Refused(f"it has no slot {name} to start from") from error
                slot.assign(self._array(value))
        for name, value in snapshot.state.shared.items():
            kept = self._shared_variables(self.optimizer)[name]
            kept.assign(np.asarray(value, kept.dtype.as_numpy_dtype))
        self.optimizer.iterations.assign(snapshot.state.iterations)

    def apply(self, gradients: Sequence[np.ndarray | IndexedSlices | None]) -> None:
        with _silent():
            try:
                self._apply(gradients)
            except tf.errors.OpError as error:
                if any(words in error.message for words in NO_KERNEL):
                    raise Refused(_kernel_message(error.message)) from error
                raise

    def _apply(self, gradients: Sequence[np.ndarray | IndexedSlices | None]) -> None:
        if self.strategy:
            shares = [[_share(g, r, 2) for g in gradients] for r in range(2)]
            flat = [[self._tensors(g) for g in share] for share in shares]
            values = self.strategy.experimental_distribute_values_from_function(
                lambda context: flat[context.replica_id_in_sync_group]
            )
            self._step(values)
            return
        with self._placed():
            self._step([self._tensors(g) for g in gradients])

    def set_learning_rate(self, value: float) -> None:
        self.optimizer.learning_rate = value

    def resume(self) -> None:
        weights = self.optimizer.get_weights()
        with self._placed():
            self.optimizer = self.target.from_config(self.optimizer.get_config())
            self.optimizer._create_all_weights(self.variables)
            self.optimizer.set_weights(weights)
        self._step = self._compiled()

    def hyperparameter_formats(self) -> Mapping[str, Format]:
        formats = {}
        for name, given in self.given.items():
            if name not in self.optimizer._hyper or not isinstance(given, float):
                continue
            kept = float(self.optimizer._get_hyper(name, tf.float64))
            if kept != given and kept == float(FLOAT32.round(given)):
                formats[name] = FLOAT32
        return formats

    @contextlib.contextmanager
    def _placed(self) -> Iterator[None]:
        if self.strategy:
            with self.strategy.scope():
                yield
        else:
            with tf.device(self.setting.device):
                yield

    def _array(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(values).astype(self.dtype.as_numpy_dtype)

    def _tensors(self, g: np.ndarray | IndexedSlices | None) -> Any:
        if isinstance(g, IndexedSlices):
            return {
                "values": tf.constant(self._array(g.values)),
                "indices": tf.constant(g.indices),
            }
        return None if g is None else tf.constant(self._array(g))

    def _compiled(self) -> Callable[[Any], Any]:
        optimizer, variables = self.optimizer, self.variables

        def step(gradients: Sequence[Any]) -> None:
            optimizer.apply_gradients(
                (tf.IndexedSlices(**g) if isinstance(g, dict) else g, v)
                for g, v in zip(gradients, variables, strict=True)
            )

        if self.strategy:
            strategy = self.strategy
            return tf.function(
                lambda values: strategy.run(step, args=(values,)),
                jit_compile=self.setting.mode == "xla",
            )
        if self.setting.mode == "eager":
            return step
        return tf.function(step, jit_compile=self.setting.mode == "xla")

    def _slots_of(self, variable: Any) -> dict[str, np.ndarray]:
        found = {}
        for name in self.slots:
            with contextlib.suppress(KeyError):
                found[name] = _exact(self.optimizer.get_slot(variable, name))
        return found

    def _shared(self) -> tuple[dict[str, float], Format]:
        shared, format = {}, FLOAT64
        for name, variable in self._shared_variables(self.optimizer).items():
            format = FORMATS.get(variable.dtype.name, format)
            shared[name] = float(_exact(variable))
        return shared, format

    def _shared_variables(self, optimizer: Any) -> dict[str, Any]:
        """Scalars beside the step count; of several optimizers, with their numbers."""
        found: dict[str, Any] = {}
        for number, inner in enumerate(getattr(optimizer, "optimizers", ())):
            own = {"iterations": inner.iterations, **self._shared_variables(inner)}
            found |= {f"{number}/{name}": variable for name, variable in own.items()}
        if found:
            return found
        for variable in optimizer.weights:
            name = variable.name.split("/")[-1].split(":")[0]
            if variable.shape.rank == 0 and name not in (*self.slots, "iter"):
                found[name] = variable
        return found


def _kernel_message(message: str) -> str:
    line = message.splitlines()[0]
    compiled = re.search(r"XLA_\w+_JIT: (\w+)", line)
    if compiled:
        return f"XLA has no kernel for {compiled[1]}"
    return line.split(" used by ")[0]


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Without Keras' warning about the gradients that are left out on purpose."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


def _exact(variable: Any) -> np.ndarray:
    replicas = [np.asarray(v) for v in getattr(variable, "values", [variable])]
    first = replicas[0].astype(np.float64)
    for other in replicas[1:]:
        if not np.array_equal(first, other.astype(np.float64), equal_nan=True):
            raise ReplicasDiffer(f"the replicas of {variable.name} differ")
    return first


def _share(
    g: np.ndarray | IndexedSlices | None, replica: int, replicas: int
) -> np.ndarray | IndexedSlices | None:
    """A gradient's part on one replica; the parts add up exactly to the whole."""
    if g is None:
        return None
    if isinstance(g, IndexedSlices):
        mine = slice(replica, None, replicas)
        return IndexedSlices(g.values[mine], g.indices[mine])
    g = np.asarray(g)
    mine = (np.arange(g.size) % replicas == replica).reshape(g.shape)
    return np.where(mine, g, 0.0)


def _converted(
    hyperparameters: Mapping[str, Any], variables: Sequence[Any]
) -> dict[str, Any]:
    return {n: _counterpart(value, variables) for n, value in hyperparameters.items()}


def _counterpart(value: Any, variables: Sequence[Any]) -> Any:
    """What stands here for a schedule, an optimizer, or optimizers for some weights."""
    if isinstance(value, LearningRateSchedule):
        schedule = getattr(keras.optimizers.schedules, type(value).__name__)
        return schedule(**vars(value))
    if isinstance(value, Driver):
        cls: Any = getattr(tf_impl, type(value).__name__)
        taken = arguments(value, OptimizerV2Port(cls).accepts())
        return cls(**_converted(taken, variables))
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return [
            (
                _counterpart(optimizer, variables),
                ... if places is ... else [variables[i] for i in places],
            )
            for optimizer, places in value
        ]
    return value
