"""How a class is examined: each line of the contract is run, in each of its cases.

A line is a function in `hooks`, `updates`, `hypers`, `persistence` or `training`: its
docstring says why it matters, its body fails where the line is broken. What it needs it
takes by name:

* `cls`, the class; `make(**changed)`, which makes an optimizer; `base`, OptimizerV2;
* `keras`, the Keras that has it;
* `gradients`, and how far two correct runs on them may be apart, `allowed`;
* whatever its cases say, by name, as expressions.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from tf_impl.contract import words
from tf_impl.contract.report import BROKEN, HELD, NOT_APPLICABLE, Line
from tf_impl.contract.reproduce import program
from tf_impl.legacy_keras import OptimizerV2, keras
from tf_impl.port import two_logical_cpus

Case = Mapping[str, str]
EPS = float(np.finfo(np.float32).eps)
# What TensorFlow says where it cannot run an operation at all.
NO_KERNEL = {
    "No OpKernel was registered": "TensorFlow has no kernel for {}",
    "Could not find device for node": "TensorFlow has no kernel for {}",
    "uncompilable": "XLA has no kernel for {}",
    "unsupported operations": "XLA has no kernel for {}",
}


class Subject:
    """A class, and how its optimizers are made.

    Args:
        cls: a subclass of `OptimizerV2`.
        arguments: of its constructor; where it takes `learning_rate` and none is
            given, 0.5, so that a step shows. An optimizer among the values (of a
            wrapper) is copied for each object.

    Raises:
        TypeError: `cls` is no subclass.
        ValueError: the constructor does not take the arguments.
    """

    def __init__(self, cls: Any, arguments: Mapping[str, Any]) -> None:
        if not (isinstance(cls, type) and issubclass(cls, OptimizerV2)):
            raise TypeError(
                f"expected a subclass of {OptimizerV2.__module__}.Optimizer "
                f"(OptimizerV2), got {cls!r}"
            )
        self.cls: type[Any] = cls
        self.defaults = constructor_defaults(cls)
        self.arguments = dict(arguments)
        if "learning_rate" in self.defaults:
            self.arguments.setdefault("learning_rate", 0.5)
        try:
            self.hypers = self._hypers(self.make())
        except (TypeError, ValueError) as error:
            raise ValueError(f"cannot make {cls.__name__}: {error}") from error
        self.no_step = self.no_sparse_step = ""
        self.broken: set[str] = set()

    def learn(self, line: Line) -> None:
        """Note what makes later lines inapplicable."""
        if line.verdict == BROKEN:
            self.broken.add(line.name)
        if line.name == "takes steps" and line.verdict != HELD:
            self.no_step = self.no_sparse_step = "no step can be taken"
        if line.name == "takes sparse steps" and line.verdict == BROKEN:
            self.no_sparse_step = "no sparse step can be taken"
        if line.name == "takes sparse steps" and line.verdict == NOT_APPLICABLE:
            self.no_sparse_step = line.found

    def make(self, **changed: Any) -> Any:
        arguments = {**self.arguments, **changed}
        return self.cls(**{name: _fresh(x) for name, x in arguments.items()})

    def _hypers(self, optimizer: Any) -> dict[str, float]:
        """Return the numbers that the constructor takes and hands to `_set_hyper`."""
        return {
            name: float(value)
            for name, value in optimizer._hyper.items()
            if name in self.defaults
            and name != "decay"  # read from where the base class has put it aside
            and isinstance(value, (int, float))
            and not isinstance(value, bool)
        }

    @functools.cached_property
    def initial(self) -> set[str]:
        """Return the hyperparameters that slots start from, which are past by then."""
        return {
            name
            for name, value in self.changed_arguments().items()
            if name in self.hypers
            and not _equal(self._start(), self._start(**{name: value}))
        }

    def _start(self, **changed: Any) -> list[np.ndarray]:
        optimizer = self.make(**changed)
        optimizer._create_all_weights([tf.Variable(words.START)])
        return optimizer.get_weights()

    @functools.cached_property
    def no_schedule(self) -> str:
        """Return what the constructor says to a schedule, if it refuses."""
        schedule = keras.optimizers.schedules.ExponentialDecay(0.5, 1, 0.5)
        try:
            self.make(learning_rate=schedule)
        except (TypeError, ValueError):
            return "the constructor refuses a schedule"
        return ""

    def changed_arguments(self) -> dict[str, Any]:
        """Return another value for each argument that has a plain one."""
        known = {**self.defaults, **self.arguments}
        changed: dict[str, Any] = {
            name: _other(value)
            for name, value in known.items()
            if isinstance(value, (bool, int, float)) or name == "name"
        }
        for name, value in changed.copy().items():
            try:
                self.make(**{name: value})
            except Exception:
                del changed[name]
        return changed

    @functools.cached_property
    def working_dtypes(self) -> list[str]:
        """Return the dtypes of weights that a step works for."""
        found = []
        for dtype in ("float16", "bfloat16", "float32", "float64"):
            with contextlib.suppress(Exception):
                w = tf.Variable(words.START, dtype=dtype)
                words.trained(self.make(), w, words.dense()[:1])
                if np.all(np.isfinite(np.float64(w.numpy()))):
                    found.append(dtype)
        return found

    @functools.cache  # noqa: B019
    def allowed(self, gradients: str) -> list[float]:
        """Return how far two correct runs may be apart, for each array of the state.

        A step has at most as many roundings as its graph has operations. Each is a
        relative error of half an ulp or less in something that the step computes; what
        an ulp in all that goes in (weights, gradients, hyperparameters) comes to is
        measured, by running the optimizer itself on inputs moved by one at random. To
        that, for each operation and step, an ulp of the largest number in the array.
        """
        inputs = eval(gradients, vars(words))
        plain = words.trained(self.make(), tf.Variable(words.START), inputs)
        moved = [np.zeros(np.shape(array)) for array in plain]
        for seed in range(4):
            random = np.random.default_rng(seed)
            hypers = {name: _nudged(x, random) for name, x in self.hypers.items()}
            hypers = {name: float(x) for name, x in hypers.items()}
            try:
                optimizer = self.make(**hypers)
            except (TypeError, ValueError):  # at the edge of what it takes
                optimizer = self.make()
            w = tf.Variable(_nudged(words.START, random))
            nudged = [_nudged(gradient, random) for gradient in inputs]
            run = words.trained(optimizer, w, nudged)
            moved = [
                np.maximum(most, np.abs(np.float64(a) - np.float64(b)))
                for most, a, b in zip(moved, run, plain, strict=True)
            ]
        roundings = _operations(self.make(), inputs[0])
        return [
            0.0
            if np.issubdtype(array.dtype, np.integer)
            else roundings * float(most.max() + len(inputs) * EPS * np.abs(array).max())
            for most, array in zip(moved, plain, strict=True)
        ]


@dataclass(frozen=True)
class Definition:
    """A line as it is defined; `cases` and `needs` are asked of the subject."""

    name: str
    body: Callable[..., Any]
    cases: Callable[[Subject], Sequence[Case]]
    argument: str
    sparse: bool
    replicas: bool
    schedule: bool
    step: bool
    refusals: Mapping[str, str]

    @property
    def why(self) -> str:
        return " ".join((inspect.getdoc(self.body) or "").split())

    def examine(self, subject: Subject, fatal: str = "") -> Line:
        """Return the verdict. No exception of the class leaves this.

        Args:
            subject: the class.
            fatal: that the line ends the process, if it is known to: it is not run.
        """
        try:
            if fatal:
                case = self.cases(subject)[0]
                namespace = self._arguments(subject, case)
                return self._failed(subject, case, namespace, AssertionError(fatal))
            return self._examine(subject)
        except Exception as error:  # of what finds out whether, and how, it applies
            return Line(self.name, BROKEN, self.why, _message(error))

    def _examine(self, subject: Subject) -> Line:
        reason = self._not_for(subject)
        if reason:
            return Line(self.name, NOT_APPLICABLE, self.why, reason)
        cases = [
            case
            for case in self.cases(subject)
            if not (case.get("gradients") == "sparse()" and subject.no_sparse_step)
        ]
        if not cases:
            return Line(self.name, NOT_APPLICABLE, self.why, "there is nothing to try")
        remarks: dict[str, None] = {}
        refused: list[str] = []
        for case in cases:
            namespace: dict[str, Any] = {}
            try:
                with _quiet(), contextlib.ExitStack() as stack:
                    if not self.replicas:
                        stack.enter_context(tf.device("CPU:0"))
                    namespace = self._arguments(subject, case)
                    remark = self.body(**namespace)
                remarks |= {remark: None} if remark else {}
            except Exception as error:
                reason = self._refusal(error)
                if not reason:
                    return self._failed(subject, case, namespace, error)
                refused.append(f"{', '.join(case.values())}: {reason}")
        if len(refused) < len(cases):
            found = ", ".join([*remarks, *refused])
            return Line(self.name, HELD, self.why, found)
        return Line(self.name, NOT_APPLICABLE, self.why, reason)

    def _not_for(self, subject: Subject) -> str:
        if self.step and subject.no_step:
            return subject.no_step
        if self.sparse and subject.no_sparse_step:
            return subject.no_sparse_step
        if self.argument and self.argument not in subject.defaults:
            return f"it takes no {self.argument}"
        if self.argument in subject.initial:
            return f"{self.argument} is what a slot starts from"
        if self.schedule and subject.no_schedule:
            return subject.no_schedule
        if self.replicas and not two_logical_cpus():
            return "TensorFlow started with one logical CPU"
        return ""

    def _arguments(self, subject: Subject, case: Case) -> dict[str, Any]:
        wanted = list(inspect.signature(self.body).parameters)
        known: dict[str, Any] = {
            "cls": subject.cls,
            "make": subject.make,
            "base": OptimizerV2,
            "keras": keras,
        }
        outer = {**vars(words), **known}
        known |= {name: eval(text, outer) for name, text in case.items()}
        if "allowed" in wanted:
            known["allowed"] = subject.allowed(case["gradients"])
        return {name: known[name] for name in wanted}

    def _refusal(self, error: Exception) -> str:
        """Return why an error is no fault of the class, if it is none."""
        if self.sparse and isinstance(error, NotImplementedError):
            return "it has no rule for sparse gradients"
        for text, reason in self.refusals.items():
            if text in str(error):
                name = re.search(r"_JIT: (\w+)|Op '(\w+)'|node (\w+)", str(error))
                return reason.format(*(x for x in name.groups() if x) if name else "it")
        return ""

    def _failed(
        self,
        subject: Subject,
        case: Case,
        namespace: Mapping[str, Any],
        error: Exception,
    ) -> Line:
        found = _message(error)
        assigned = dict(case)
        if "allowed" in namespace:
            assigned["allowed"] = repr(
                [float(f"{x:.3g}") for x in namespace["allowed"]]
            )
        text = program(
            self.body, subject.cls, subject.arguments, assigned, self.replicas
        )
        return Line(self.name, BROKEN, self.why, found, text)


DEFINITIONS: list[Definition] = []


def line(
    name: str,
    cases: Callable[[Subject], Sequence[Case]] | Sequence[Case] = ({},),
    *,
    argument: str = "",
    sparse: bool = False,
    replicas: bool = False,
    schedule: bool = False,
    step: bool = True,
    refusals: Mapping[str, str] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Make a function a line of the contract.

    Args:
        name: what is promised.
        cases: what else the function takes, by name, as expressions; one run each.
        argument: of the constructor, without which the line does not apply.
        sparse: the line does not apply to a class without a sparse rule.
        replicas: it needs two devices.
        schedule: it does not apply where the constructor refuses a schedule.
        step: it does not apply where no step can be taken.
        refusals: what an error says that is no fault of the class, and the reason.
    """

    def define(body: Callable[..., Any]) -> Callable[..., Any]:
        of_subject = cases if callable(cases) else lambda subject: cases
        DEFINITIONS.append(
            Definition(
                name=name,
                body=body,
                cases=of_subject,
                argument=argument,
                sparse=sparse,
                replicas=replicas,
                schedule=schedule,
                step=step,
                refusals=refusals or {},
            )
        )
        return body

    return define


def constructor_defaults(cls: type) -> dict[str, Any]:
    """Return all that a constructor takes by name, with defaults (or `None`).

    What it hands on as `**kwargs` is that of the class above.
    """
    found: dict[str, Any] = {}
    for each in inspect.getmro(cls):
        if "__init__" not in vars(each):
            continue
        parameters = inspect.signature(vars(each)["__init__"]).parameters.values()
        for parameter in parameters:
            if parameter.kind in (
                parameter.POSITIONAL_OR_KEYWORD,
                parameter.KEYWORD_ONLY,
            ):
                given = parameter.default is not parameter.empty
                found.setdefault(parameter.name, parameter.default if given else None)
        if each is OptimizerV2:
            for name in ("clipvalue", "clipnorm", "global_clipnorm", "decay"):
                found.setdefault(name, 0.0)
        if not any(p.kind is p.VAR_KEYWORD for p in parameters):
            break
    found.pop("self")
    return found


def _other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value / 2 or 0.5
    return "another"


def _equal(left: Sequence[np.ndarray], right: Sequence[np.ndarray]) -> bool:
    return len(left) == len(right) and all(map(np.array_equal, left, right))


def _fresh(value: Any) -> Any:
    if isinstance(value, OptimizerV2):
        return type(value).from_config(value.get_config())
    return value


def _nudged(value: Any, random: np.random.Generator) -> Any:
    """Return `value`, each number an ulp of float32 up or down."""
    if isinstance(value, tf.IndexedSlices):
        values = _nudged(value.values.numpy(), random)
        return tf.IndexedSlices(values, value.indices, value.dense_shape)
    if isinstance(value, float):
        return value * (1 + EPS * float(random.choice([-1, 1])))
    directions = np.float32(random.choice([-np.inf, np.inf], np.shape(value)))
    return tf.constant(np.nextafter(value, np.where(value == 0, 0, directions)))


def _operations(optimizer: Any, gradient: Any) -> int:
    """Return how many operations the graph of one step has, functions included."""
    step = words.stepper(optimizer, tf.Variable(words.START), "function")
    graph = step.get_concrete_function(gradient).graph.as_graph_def()
    return len(graph.node) + sum(len(f.node_def) for f in graph.library.function)


def _message(error: Exception) -> str:
    lines = [text.strip() for text in str(error).splitlines() if text.strip()]
    kind = type(error).__name__
    text = lines[0] if lines else ""
    if text == "in user code:":
        text = lines[-1].removeprefix(f"{kind}: ")
    text = re.sub(r"\{\{.*?\}\} ?| name: *$", "", text)
    return text if isinstance(error, AssertionError) else f"{kind}: {text}"[:300]


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without the warnings that Keras has for what is done here on purpose."""
    logger = tf.get_logger()
    level = logger.level
    logger.setLevel("ERROR")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
