"""TensorFlow's raw training operations, driven through the check.

`tf.raw_ops.ResourceApply*` and `ResourceSparseApply*` are what Keras, TensorFlow 1 and
Addons call. `KERNELS` says for each which rule it should follow and how its inputs are
named there; `check_raw_ops` judges it on every device, in every dtype and with every
type of index for which this TensorFlow registers it.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.python.framework import kernels as registry

import reference
from reference.conformance.check import Progress, _label, check
from reference.conformance.kernels import (
    HeldAdagrad,
    InsideRMSprop,
    NesterovAdam,
    ScaledFtrl,
)
from reference.conformance.port import Setting, Snapshot
from reference.conformance.report import Result
from reference.conformance.rounding import (
    FORMATS,
    TENSORFLOW_CPU,
    TENSORFLOW_GPU,
    Format,
    Platform,
)
from reference.gradients import IndexedSlices, deduplicate
from reference.optimizer import Optimizer, State
from reference.schedules import LearningRateSchedule

MODES = ("eager", "function")
DTYPES = tuple(FORMATS)
INDICES = ("int32", "int64")

Input = str | Callable[[Mapping[str, float]], float | int]
"""A hyperparameter, or what is worked out from them and the step count `t`."""


@dataclass(frozen=True)
class Kernel:
    """A raw operation with its attributes.

    Attributes:
        op: its name in `tf.raw_ops`.
        rule: the rule that it should follow, with options that reach its branches.
        slots: the slots of the rule behind its arguments.
        inputs: what its other arguments are.
        attributes: its attributes, where they are not the default.
        follows: the rule that it follows where that is another one.
        why: what the other rule does otherwise, in a sentence.
    """

    op: str
    rule: Optimizer
    slots: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, Input] = field(default_factory=dict)
    attributes: Mapping[str, bool] = field(default_factory=dict)
    follows: Optimizer | None = None
    why: str = ""

    @property
    def sparse(self) -> bool:
        return self.op.startswith("ResourceSparse")

    @property
    def label(self) -> str:
        words = ", ".join(f"{name}={value}" for name, value in self.attributes.items())
        return f"{self.op}({words})" if words else self.op

    def run(self, arguments: Mapping[str, Any]) -> Any:
        return getattr(tf.raw_ops, self.op)(**arguments, **self.attributes)

    @property
    def gradient(self) -> str:
        """The argument that takes the gradient."""
        signature = inspect.signature(getattr(tf.raw_ops, self.op))
        return "delta" if "delta" in signature.parameters else "grad"

    def registered(self) -> set[tuple[str, str, str]]:
        """Devices, dtypes and types of index for which there is a kernel."""
        found = set()
        for kernel in registry.get_registered_kernels_for_op(self.op).kernel:
            types = {
                constraint.name: tf.dtypes.as_dtype(
                    constraint.allowed_values.list.type[0]
                ).name
                for constraint in kernel.constraint
            }
            found.add((kernel.device_type, types["T"], types.get("Tindices", "")))
        return found


def _kernels() -> Iterator[Kernel]:
    """Every operation, each with the options that lead to a branch of its own."""
    both: dict[str, Any] = {
        "l1_regularization_strength": 0.01,
        "l2_regularization_strength": 0.05,
    }
    rate: dict[str, Input] = {"lr": "learning_rate"}
    l1_l2: dict[str, Input] = {
        "l1": "l1_regularization_strength",
        "l2": "l2_regularization_strength",
    }

    def each(name: str, *args: Any, **kwargs: Any) -> Iterator[Kernel]:
        yield Kernel(f"ResourceApply{name}", *args, **kwargs)
        yield Kernel(f"ResourceSparseApply{name}", *args, **kwargs)

    yield Kernel(
        "ResourceApplyGradientDescent",
        reference.SGD(),
        inputs={"alpha": "learning_rate"},
    )
    for nesterov in (False, True):
        attributes = {"use_nesterov": True} if nesterov else {}
        yield from each(
            "Momentum",
            reference.Momentum(use_nesterov=nesterov),
            {"accum": "momentum"},
            {**rate, "momentum": "momentum"},
            attributes,
        )
        yield from each(
            "KerasMomentum",
            reference.SGD(momentum=0.9, nesterov=nesterov),
            {"accum": "momentum"},
            {**rate, "momentum": "momentum"},
            attributes,
        )

    accumulator = {"accum": "accumulator"}
    yield from each("Adagrad", reference.Adagrad(epsilon=0.0), accumulator, rate)
    yield from each(
        "AdagradV2",
        reference.Adagrad(),
        accumulator,
        {**rate, "epsilon": "epsilon"},
    )
    held = "update_slots=False leaves the sum of squares as it is"
    for name, epsilon in (("Adagrad", 0.0), ("AdagradV2", 1e-7)):
        yield from each(
            name,
            reference.Adagrad(epsilon=epsilon),
            accumulator,
            rate if name == "Adagrad" else {**rate, "epsilon": "epsilon"},
            {"update_slots": False},
            follows=HeldAdagrad(epsilon=epsilon),
            why=held,
        )
    for penalties in ({}, both):
        yield from each(
            "AdagradDA",
            reference.AdagradDA(**penalties),
            {
                "gradient_accumulator": "gradient_accumulator",
                "gradient_squared_accumulator": "gradient_squared_accumulator",
            },
            {**rate, **l1_l2, "global_step": lambda named: int(named["t"])},
        )
        yield from each(
            "ProximalAdagrad",
            reference.ProximalAdagrad(**penalties),
            accumulator,
            {**rate, **l1_l2},
        )
        yield from each(
            "ProximalGradientDescent",
            reference.ProximalGradientDescent(**penalties),
            {},
            {"alpha": "learning_rate", **l1_l2},
        )

    yield from each(
        "Adadelta",
        reference.Adadelta(),
        {"accum": "accum_grad", "accum_update": "accum_var"},
        {**rate, "rho": "rho", "epsilon": "epsilon"},
    )

    def power(name: str) -> Input:
        return lambda named: named[name] ** named["t"]

    betas: dict[str, Input] = {
        **rate,
        "beta1": "beta_1",
        "beta2": "beta_2",
        "beta1_power": power("beta_1"),
        "epsilon": "epsilon",
    }
    moments = {"m": "m", "v": "v"}
    adam: dict[str, Input] = {**betas, "beta2_power": power("beta_2")}
    yield Kernel("ResourceApplyAdaMax", reference.Adamax(), moments, betas)
    yield Kernel("ResourceApplyAdam", reference.Adam(), moments, adam)
    yield Kernel(
        "ResourceApplyAdam",
        reference.Nadam(),
        moments,
        adam,
        {"use_nesterov": True},
        follows=NesterovAdam(),
        why="use_nesterov is no Nadam: its momentum does not warm up, and both parts "
        "of the step have the bias correction of the present step",
    )
    yield Kernel(
        "ResourceApplyAdamWithAmsgrad",
        reference.Adam(amsgrad=True),
        {**moments, "vhat": "vhat"},
        adam,
    )
    signs: dict[str, Input] = {**rate, "beta": "beta", "sign_decay": "sign_decay"}
    for options in reference.AddSign.examples:
        yield Kernel(
            "ResourceApplyAddSign",
            reference.AddSign(**options),
            {"m": "m"},
            {**signs, "alpha": "alpha"},
        )
    for options in reference.PowerSign.examples:
        yield Kernel(
            "ResourceApplyPowerSign",
            reference.PowerSign(**options),
            {"m": "m"},
            {**signs, "logbase": lambda named: math.log(named["base"])},
        )

    averages = {"ms": "rms", "mom": "momentum"}
    rms: dict[str, Input] = {
        **rate,
        "rho": "rho",
        "momentum": "momentum",
        "epsilon": "epsilon",
    }
    yield from each("RMSProp", reference.RMSprop(momentum=0.8), averages, rms)
    yield from each(
        "RMSProp",
        reference.RMSprop(sparse="touched_rows"),
        averages,
        rms,
        follows=InsideRMSprop(sparse="touched_rows"),
        why="epsilon is under the root, with momentum and without",
    )
    yield from each(
        "CenteredRMSProp",
        reference.RMSprop(momentum=0.8, centered=True),
        {**averages, "mg": "mg"},
        rms,
    )

    ftrl: dict[str, Input] = {**rate, **l1_l2, "lr_power": "learning_rate_power"}
    shrinking: dict[str, Input] = {
        **ftrl,
        "l2_shrinkage": "l2_shrinkage_regularization_strength",
    }
    shrink = {"l2_shrinkage_regularization_strength": 0.02}
    leader = {"accum": "accumulator", "linear": "linear"}
    for options in ({}, both, {"learning_rate_power": -0.7}):
        yield from each("Ftrl", reference.Ftrl(**options), leader, ftrl)
        second = {**options, **shrink} if options is both else options
        yield from each("FtrlV2", reference.Ftrl(**second), leader, shrinking)
    scaled = "linear has the learning rate inside"
    for name, options, inputs in (
        ("Ftrl", both, ftrl),
        ("FtrlV2", {**both, **shrink}, shrinking),
    ):
        yield from each(
            name,
            reference.Ftrl(**options),
            leader,
            inputs,
            {"multiply_linear_by_lr": True},
            follows=ScaledFtrl(**options),
            why=scaled,
        )


KERNELS = tuple(_kernels())


class KernelPort:
    """A raw operation, as an implementation of a rule.

    The driver does what Keras does around it: it forms the step count and the powers of
    the decays, in the dtype of the weights, and sums duplicate rows.

    Args:
        kernel: the operation.
        rule: the rule by which it is judged.
        device: `"CPU"` or `"GPU"`.
        indices: `"int32"` or `"int64"`; nothing for a dense one.
    """

    def __init__(
        self, kernel: Kernel, rule: Optimizer, device: str, indices: str
    ) -> None:
        self.kernel = kernel
        self.rule = rule
        self.device = device
        self.indices = indices

    @property
    def name(self) -> str:
        return self.kernel.label

    def modes(self) -> Sequence[str]:
        return MODES

    def devices(self) -> Sequence[str]:
        return (self.device,)

    def strategies(self) -> Sequence[str]:
        return ("none",)

    def platform(self, setting: Setting) -> Platform:
        return TENSORFLOW_GPU if setting.device == "GPU" else TENSORFLOW_CPU

    def versions(self) -> Mapping[str, str]:
        return {"tensorflow": tf.__version__}

    def accepts(self) -> set[str]:
        return set(self.rule.hyperparameters())

    def refusal(self, gradient: np.ndarray | IndexedSlices | None) -> str:
        if gradient is None:
            return ""
        if isinstance(gradient, IndexedSlices) == self.kernel.sparse:
            return ""
        return f"takes {'sparse' if self.kernel.sparse else 'dense'} gradients alone"

    def start(
        self,
        weights: Sequence[np.ndarray],
        hyperparameters: Mapping[str, Any],
        setting: Setting,
        slots: Sequence[str],
    ) -> KernelSession:
        rule = replace(self.rule, **hyperparameters)
        return KernelSession(self.kernel, rule, weights, setting, self.indices)


class KernelSession:
    """A raw operation at work on variables."""

    def __init__(
        self,
        kernel: Kernel,
        rule: Optimizer,
        weights: Sequence[np.ndarray],
        setting: Setting,
        indices: str,
    ) -> None:
        self.kernel = kernel
        self.rule = rule
        self.setting = setting
        self.indices = indices
        self.dtype = tf.dtypes.as_dtype(setting.dtype.name)
        self.iterations = 0
        self.tensors = []
        state = rule.init([np.asarray(w) for w in weights])
        with tf.device(setting.device):
            for w, slots in zip(weights, state.slots, strict=True):
                # The operation may have state that the rule has not.
                needed = dict.fromkeys(kernel.slots.values(), np.zeros_like(w))
                named = {"weight": w, **needed, **slots}
                self.tensors.append(
                    {name: tf.Variable(self._array(x)) for name, x in named.items()}
                )
        self._step = (
            tf.function(self._run, reduce_retracing=True)
            if setting.mode == "function"
            else self._run
        )

    def read(self) -> Snapshot:
        seen = [
            {name: np.asarray(v.numpy(), np.float64) for name, v in tensors.items()}
            for tensors in self.tensors
        ]
        weights = [tensors.pop("weight") for tensors in seen]
        return Snapshot(weights, State(self.iterations, tuple(seen), {}))

    def write(self, snapshot: Snapshot) -> None:
        for tensors, w, slots in zip(
            self.tensors, snapshot.weights, snapshot.state.slots, strict=True
        ):
            for name, value in {"weight": w, **slots}.items():
                tensors[name].assign(self._array(value))
        self.iterations = snapshot.state.iterations

    def apply(self, gradients: Sequence[np.ndarray | IndexedSlices | None]) -> None:
        self.apply_as_given(
            [deduplicate(g) if isinstance(g, IndexedSlices) else g for g in gradients]
        )

    def apply_as_given(
        self, gradients: Sequence[np.ndarray | IndexedSlices | None]
    ) -> None:
        """As `apply`, with duplicate rows as they are."""
        with tf.device(self.setting.device):
            self._step([self._given(g) for g in gradients], self._inputs())
        self.iterations += 1

    def set_learning_rate(self, value: float) -> None:
        self.rule = replace(self.rule, learning_rate=value)

    def resume(self) -> None:
        """There is nothing beside the variables, which the user keeps."""

    def hyperparameter_formats(self) -> Mapping[str, Format]:
        return {}

    def _array(self, values: Any) -> np.ndarray:
        return np.asarray(values).astype(self.dtype.as_numpy_dtype)

    def _given(self, g: np.ndarray | IndexedSlices | None) -> list[Any]:
        """The gradient as a list: empty, or values, or values and indices."""
        if g is None:
            return []
        if isinstance(g, IndexedSlices):
            return [self._array(g.values), g.indices.astype(self.indices)]
        return [self._array(g)]

    def _inputs(self) -> dict[str, Any]:
        """The scalars of the step, from hyperparameters in the dtype of the weights."""
        named: dict[str, Any] = {"t": self.iterations + 1}
        sources = {one for one in self.kernel.inputs.values() if isinstance(one, str)}
        for name in {*sources, *self.rule.hyperparameters()}:
            value = getattr(self.rule, name)
            if isinstance(value, LearningRateSchedule):
                value = value(self.iterations)
            named[name] = float(self.setting.dtype.round(value))
        given = {}
        for argument, source in self.kernel.inputs.items():
            value = named[source] if isinstance(source, str) else source(named)
            dtype = tf.int64 if isinstance(value, int) else self.dtype
            given[argument] = tf.constant(value, dtype)
        return given

    def _run(self, gradients: list[list[Any]], inputs: dict[str, Any]) -> None:
        for tensors, gradient in zip(self.tensors, gradients, strict=True):
            if gradient:
                handles = {
                    argument: tensors[slot].handle
                    for argument, slot in self.kernel.slots.items()
                }
                names = [self.kernel.gradient, "indices"]
                self.kernel.run(
                    {
                        "var": tensors["weight"].handle,
                        **handles,
                        **inputs,
                        **dict(zip(names, gradient, strict=False)),
                    }
                )


@dataclass(frozen=True)
class Verdict:
    """What one operation does on a device, in a dtype, with a type of index.

    Attributes:
        kernel: the operation with its attributes.
        rule: the rule that it should follow.
        device, dtype, indices: where; a dense one has no indices.
        verdict: `"conforms"`, `"differs"` or `"no kernel"`.
        follows: the rule that it follows instead, if that is known.
        why: what that does otherwise; of an unknown one, what came instead.
        convention: where it does its arithmetic.
        worst_ratio: worst error as a fraction of the bound, if that is a number.
        undecidable: elements for which the rule itself may go either way.
    """

    kernel: str
    rule: str
    device: str
    dtype: str
    indices: str
    verdict: str
    follows: str = ""
    why: str = ""
    convention: str = ""
    worst_ratio: float | None = None
    undecidable: int = 0

    @property
    def explained(self) -> bool:
        return self.verdict != "differs" or bool(self.follows)

    @property
    def cell(self) -> str:
        ideal = self.verdict != "conforms" or self.convention == "ideal"
        unknown = "" if self.explained else ", unexplained"
        return self.verdict + ("" if ideal else "*") + unknown


@dataclass(frozen=True)
class RawOpsReport:
    """All verdicts, and what each sparse operation does with duplicate rows."""

    verdicts: Sequence[Verdict]
    duplicates: Mapping[str, str]
    versions: Mapping[str, str]

    @property
    def explained(self) -> bool:
        """Whether each operation follows its rule, or another one that is known."""
        return all(v.explained for v in self.verdicts)

    def to_json(self) -> str:
        shown = {
            "explained": self.explained,
            "verdicts": [asdict(v) for v in self.verdicts],
            "duplicates": dict(self.duplicates),
            "versions": dict(self.versions),
        }
        return json.dumps(shown, indent=1, allow_nan=False)

    def __str__(self) -> str:
        dtypes = list(dict.fromkeys(v.dtype for v in self.verdicts))
        rows = [["operation", "rule", "device", "indices", *dtypes, "duplicates"]]
        found: dict[tuple[str, ...], dict[str, str]] = {}
        for v in self.verdicts:
            place = (v.kernel, v.rule, v.device, v.indices or "-")
            found.setdefault(place, {})[v.dtype] = v.cell
        for row, by_dtype in found.items():
            summed = self.duplicates.get(row[0], "-")
            rows.append([*row, *(by_dtype[d] for d in dtypes), summed])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()
            for cells in rows
        ]
        return "\n".join([*lines, *self._conventions(), *self._differences()])

    def _conventions(self) -> Iterator[str]:
        kinds = {
            v.convention for v in self.verdicts if v.convention not in ("", "ideal")
        }
        if kinds:
            yield ""
            yield "* rounds otherwise than the ideal:"
        for convention in sorted(kinds):
            names = {v.kernel for v in self.verdicts if v.convention == convention}
            yield f"  {convention}: {len(names)} operations"

    def _differences(self) -> Iterator[str]:
        told: dict[tuple[str, str, str], list[str]] = {}
        for v in self.verdicts:
            if v.verdict == "differs":
                names = told.setdefault((v.why, v.rule, v.follows), [])
                if v.kernel not in names:
                    names.append(v.kernel)
        if told:
            yield ""
            yield "what differs:"
        for (why, rule, follows), names in told.items():
            yield f"  {', '.join(names)}, against {rule}"
            yield f"    {why}" + (f" ({follows} conforms)" if follows else "")
        count = sum(v.verdict == "conforms" for v in self.verdicts)
        differ = sum(v.verdict == "differs" for v in self.verdicts)
        missing = sum(v.verdict == "no kernel" for v in self.verdicts)
        yield ""
        yield f"{count} conform, {differ} differ, {missing} have no kernel"


def check_raw_ops(
    *,
    dtypes: Sequence[str] = DTYPES,
    modes: Sequence[str] = MODES,
    quick: bool = False,
    seed: int = 0,
    kernels: Sequence[Kernel] | None = None,
    progress: Progress = lambda done, total, what: None,
) -> RawOpsReport:
    """Judge raw training operations on the devices that TensorFlow sees.

    Args:
        dtypes: among `"float16"`, `"bfloat16"`, `"float32"`, `"float64"`.
        modes: among `"eager"` and `"function"`.
        quick: float32, one program.
        seed: of the inputs.
        kernels: which operations; default all.
        progress: told of each verdict.
    """
    kernels = KERNELS if kernels is None else kernels
    devices = [
        device for device in ("CPU", "GPU") if tf.config.list_physical_devices(device)
    ]
    places = [
        (kernel, device, indices, dtype)
        for kernel in kernels
        for device in devices
        for indices in (INDICES if kernel.sparse else ("",))
        for dtype in (("float32",) if quick else dtypes)
    ]
    verdicts = []
    for kernel, device, indices, dtype in places:
        # One program shows that the other type of index is read, and a function made.
        short = quick or indices == INDICES[0]
        verdicts.append(_judged(kernel, device, indices, dtype, modes, short, seed))
        progress(len(verdicts), len(places), f"{kernel.label} {dtype} {indices}")
    return RawOpsReport(
        verdicts,
        {k.label: duplicates_of(k) for k in kernels if k.sparse},
        {"tensorflow": tf.__version__, "numpy": np.__version__},
    )


def _judged(
    kernel: Kernel,
    device: str,
    indices: str,
    dtype: str,
    modes: Sequence[str],
    quick: bool,
    seed: int,
) -> Verdict:
    place = Verdict(
        kernel.label, shown(kernel.rule), device, dtype, indices, "no kernel"
    )
    if (device, dtype, indices) not in kernel.registered():
        return place

    def results(rule: Optimizer, modes: Sequence[str], quick: bool) -> list[Result]:
        port = KernelPort(kernel, rule, device, indices)
        return [
            result
            for mode in modes
            for result in check(
                port,
                rule,
                modes=[mode],
                dtypes=[dtype],
                devices=[device],
                quick=quick or mode != modes[0],
                seed=seed,
                # What it follows instead is known, and need not be searched for.
                thorough=None if kernel.follows else False,
            ).results
        ]

    found = results(kernel.rule, modes[:1], quick)
    if kernel.follows and not all(r.conforms for r in found):
        instead = results(kernel.follows, modes, quick)
        if all(r.conforms for r in instead):
            why, follows = kernel.why, shown(kernel.follows)
            return _summed_up(place, "differs", instead, follows=follows, why=why)
    found += results(kernel.rule, modes[1:], True)
    differing = [r for r in found if not r.conforms]
    if differing:
        causes = [str(cause) for r in differing for cause in r.explanations[:1]]
        why = "; ".join([str(differing[0].failure), *causes[:1]])
        return _summed_up(place, "differs", found, why=why)
    return _summed_up(place, "conforms", found)


def _summed_up(
    place: Verdict, verdict: str, results: Sequence[Result], **known: str
) -> Verdict:
    worst = max(results, key=lambda result: result.worst_ratio)
    return replace(
        place,
        verdict=verdict,
        convention=worst.convention,
        worst_ratio=worst.worst_ratio if math.isfinite(worst.worst_ratio) else None,
        undecidable=sum(r.undecidable for r in results),
        **known,
    )


def shown(rule: Optimizer) -> str:
    """A rule with the options that are not its defaults."""
    plain = type(rule)()
    options = {
        name: value
        for name, value in vars(rule).items()
        if value != getattr(plain, name)
    }
    return _label(type(rule).__name__, options)


def duplicates_of(kernel: Kernel) -> str:
    """What a sparse operation does with rows of one index, on the CPU in float32.

    Returns:
        `"one by one"` where two rows of one call are, bit for bit, what two calls with
        a row each are; `"summed"` where they are what one row, their sum, is.
    """
    rows = np.array([[1.0, -2.0], [0.5, 4.0]])
    ways = {
        "together": [IndexedSlices(rows, np.array([1, 1]))],
        "one by one": [IndexedSlices(row[None], np.array([1])) for row in rows],
        "summed": [IndexedSlices(rows.sum(axis=0)[None], np.array([1]))],
    }
    after = {}
    for name, gradients in ways.items():
        session = KernelSession(
            kernel,
            kernel.rule,
            [np.ones((3, 2))],
            Setting(FORMATS["float32"]),
            INDICES[1],
        )
        for g in gradients:
            session.iterations = 0
            session.apply_as_given([g])
        snapshot = session.read()
        after[name] = [*snapshot.weights, *snapshot.state.slots[0].values()]

    def same(way: str) -> bool:
        return all(map(np.array_equal, after["together"], after[way]))

    return next((way for way in ("one by one", "summed") if same(way)), "otherwise")
