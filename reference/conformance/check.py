"""The check: run an implementation through the scenarios and judge it by a rule."""

from __future__ import annotations

import inspect
import multiprocessing
import platform as machine
import time
import unittest
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from .. import OPTIMIZERS, WRAPPERS
from ..dialects import Dialect
from ..optimizer import Driver, Optimizer, State
from ..schedules import LearningRateSchedule
from . import diagnose
from .convention import Convention, candidates, ideal
from .diagnose import Explanation
from .judge import Failure, Recording, Score, judge
from .port import Port, Refused, Setting, Snapshot, arguments
from .ports import dialects_of, load, port_for
from .ports.base import NamedPort
from .report import Report, Result
from .rounding import FLOAT32, FORMATS
from .scenarios import Program, Weight, programs, settled_state

Progress = Callable[[int, int, str], None]
"""Called with how many runs are done, how many there are, and which ended last."""

DTYPES = tuple(FORMATS)
STRATEGIES = ("none", "mirrored")
BRIEFLY = 4.0
"""Processor time that a check may search for the cause of a failure."""
TOGETHER = 200
"""Cases that share processes: one that has compiled hundreds of functions was seen to
end by itself."""


@dataclass(frozen=True)
class Case:
    """One implementation, with one set of options, in one setting.

    Attributes:
        whole: with all programs, not the first alone.
        must_run: a refusal is a failure, as for ``tf_impl``.
        constant_rate: without the programs that change the learning rate.
        scenario: this one of ``scenarios`` alone.
    """

    port: Port
    optimizer: Optimizer
    label: str
    setting: Setting
    whole: bool
    must_run: bool
    constant_rate: bool = False
    scenario: str | None = None

    @property
    def summary(self) -> str:
        setting = self.setting
        return f"{self.label} {setting.dtype.name} {setting.mode}"

    def accepted(self) -> set[str]:
        """The hyperparameters that the programs may set."""
        accepted = self.port.accepts()
        if isinstance(self.optimizer, Optimizer):
            return accepted
        return accepted | set(self.optimizer.hyperparameters())

    def programs(self, seed: int) -> list[Program]:
        """The programs to run, cut down to the scenario."""
        found = programs(self.optimizer, self.setting, seed, quick=not self.whole)
        if self.constant_rate:
            found = [program for program in found if not changes_rate(program)]
        if self.scenario is not None:
            found = [cut for program in found if (cut := _only(program, self.scenario))]
        return found


def check(
    target: Any = None,
    against: str | type[Optimizer] | Optimizer | None = None,
    *,
    names: Sequence[str] = (),
    hyperparameters: Mapping[str, Any] | None = None,
    modes: Sequence[str] | None = None,
    dtypes: Sequence[str] | None = None,
    devices: Sequence[str] | None = None,
    strategies: Sequence[str] | None = None,
    quick: bool = False,
    strict: bool | None = None,
    seed: int = 0,
    jobs: int = 1,
    thorough: bool | None = False,
    scenario: str | None = None,
    constant_rate: bool | None = None,
    progress: Progress | None = None,
) -> Report:
    """Judge an implementation against a rule, or ``tf_impl`` against ``reference``.

    Args:
        target: a subclass of ``OptimizerV2``, of Keras 3's or torch's optimizer, an
            optax function, a NumPy ``step(weights, grads, state)``, or where one is:
            ``"torch:Adam"``, ``"package.module:Class"``, ``"path/to/file.py:Class"``.
            ``None`` judges ``tf_impl``.
        against: the rule: a name, a class of ``reference``, or an instance. For an
            optimizer of a known library it may be left out: the map of dialects says.
        names: without a target, the optimizers to judge; empty means all.
        hyperparameters: values for both sides, as ``{"epsilon": 1e-3}``.
        modes: among those of the framework, as ``"eager"``, ``"function"``, ``"xla"``
            or ``"loop"``, ``"foreach"``, ``"fused"``; default all.
        dtypes: among ``"float16"``, ``"bfloat16"``, ``"float32"``, ``"float64"``;
            default all. Without either, Keras 3, optax, and further options of a class
            run in every mode in float32, and in the first in other dtypes.
        devices: among ``"CPU"``, ``"GPU"``; default those that the machine has.
        strategies: among ``"none"``, ``"mirrored"``; default both, for further options
            of a class the first.
        quick: float32, the first two modes, one program.
        strict: accept the ideal convention alone. Default: for ``tf_impl``.
        seed: of the scenarios.
        jobs: processes that share the runs; more than one needs a target by name.
        thorough: on failure in float32, search long for what is wrong; ``None``: do
            not search.
        scenario: one of ``scenarios`` alone.
        constant_rate: leave out what changes the learning rate. Default: as the map of
            dialects says.
        progress: told of each run.

    Raises:
        ValueError, TypeError: an argument that names nothing; the message says what is
            allowed.
    """
    _allowed("dtype", dtypes, DTYPES)
    _allowed("strategy", strategies, STRATEGIES)
    _allowed("device", devices, ("CPU", "GPU"))
    strict = target is None if strict is None else strict
    request = (target, against, tuple(names), dict(hyperparameters or {}))
    ways = (modes, dtypes, devices, strategies, quick, scenario, constant_rate)
    cases = _cases(request, ways)
    _prepare(cases)
    port = cases[0].port
    notes = []
    if "GPU" not in port.devices():
        if devices and "GPU" in devices:
            raise ValueError("device GPU was asked for; there is none here")
        notes.append("GPU: none here")
    results: dict[int, list[Result]] = {}
    for index, found, said in _run(
        cases, request, ways, (seed, strict, thorough), jobs
    ):
        results[index] = found
        notes += [] if found else said
        if progress:
            progress(len(results), len(cases), cases[index].summary)
    versions = {
        "python": machine.python_version(),
        "numpy": np.__version__,
        **port.versions(),
    }
    ordered = [result for index in range(len(cases)) for result in results[index]]
    return Report(ordered, seed, versions, notes)


def scenarios(rule: str | type[Optimizer] | Optimizer, seed: int = 0) -> list[str]:
    """The names of the scenarios for a rule, each to be checked on its own.

    >>> import reference
    >>> scenarios(reference.SGD)[-4:]
    ['learning rate set', 'schedule', 'resume', 'late']
    """
    optimizer = rule if isinstance(rule, Optimizer) else rule_class(rule)()
    first, *others = programs(optimizer, Setting(FLOAT32), seed)
    parts = [part.name for weight in first.weights for part in weight.parts]
    return [*parts, *(program.name for program in others)]


def _only(program: Program, scenario: str) -> Program | None:
    """The program, or its weights of that name; ``None`` where it has none.

    A weight that lacks gradients has company: no framework takes a step without any.
    """
    if program.name == scenario:
        return program
    parts = [part for weight in program.weights for part in weight.parts]
    chosen = [part for part in parts if part.name == scenario]
    if program.name != "steps" or not chosen:
        return None
    if any(gradient is None for gradient in chosen[0].gradients):
        chosen = [parts[0], *chosen]
    return replace(program, weights=tuple(Weight((part,)) for part in chosen))


def changes_rate(program: Program) -> bool:
    rate = program.hyperparameters.get("learning_rate")
    return bool(program.learning_rates) or isinstance(rate, LearningRateSchedule)


def _cases(request: tuple, ways: tuple) -> list[Case]:
    *kinds, scenario, constant_rate = ways
    modes = ways[0]
    cases: list[Case] = []
    for port, optimizer, label, dialect in _subjects(*request):
        again = any(case.port.name == port.name for case in cases)
        _allowed("mode", modes, port.modes())
        if scenario is not None:
            _allowed("scenario", [scenario], scenarios(optimizer))
        constant = constant_rate
        if constant is None:
            fixed = "learning_rate" not in optimizer.hyperparameters()
            constant = fixed or bool(dialect and dialect.constant_rate)
        wraps = not isinstance(optimizer, Optimizer)
        for setting, whole in _settings(port, again, wraps, *kinds):
            cases.append(
                Case(
                    port,
                    optimizer,
                    label,
                    setting,
                    whole,
                    must_run=request[0] is None,
                    constant_rate=constant,
                    scenario=scenario,
                )
            )
    return cases


def _prepare(cases: list[Case]) -> None:
    if any(case.setting.strategy == "mirrored" for case in cases):
        from tf_impl.port import two_logical_cpus

        two_logical_cpus()


def _run(
    cases: list[Case],
    request: tuple,
    ways: tuple,
    judging: tuple[int, bool, bool | None],
    jobs: int,
) -> Iterator[tuple[int, list[Result], list[str]]]:
    if jobs == 1:
        for index, case in enumerate(cases):
            yield index, *_results(case, *judging)
        return
    for start in range(0, len(cases), TOGETHER):
        indices = list(range(start, min(start + TOGETHER, len(cases))))
        yield from _pooled(cases, indices, request, ways, judging, jobs)


def _pooled(
    cases: list[Case],
    indices: list[int],
    request: tuple,
    ways: tuple,
    judging: tuple[int, bool, bool | None],
    jobs: int,
) -> Iterator[tuple[int, list[Result], list[str]]]:
    """Cases in fresh processes. Where one ends, halves of what it took along are run
    again, down to the case that ends its own process: that one fails."""
    lost = []
    with ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), _begin_job, (request, ways)
    ) as pool:
        running = {pool.submit(_job, index, judging): index for index in indices}
        for done in as_completed(running):
            index = running[done]
            if isinstance(done.exception(), BrokenProcessPool):
                lost.append(index)
            else:
                yield index, *done.result()
    if len(indices) == 1 and lost:
        yield indices[0], _ended(cases[indices[0]]), []
        return
    for half in (lost[::2], lost[1::2]):
        if half:
            yield from _pooled(cases, half, request, ways, judging, jobs)


def _ended(case: Case) -> list[Result]:
    message = "the process that ran it ended"
    return [
        _result(case, kind, ideal(case.setting.dtype), Score(failure=_not_run(message)))
        for kind in ("dense", "sparse")
    ]


_cases_of_job: list[Case] = []


def _begin_job(request: tuple, ways: tuple) -> None:
    _cases_of_job.extend(_cases(request, ways))
    _prepare(_cases_of_job)


def _job(
    index: int, judging: tuple[int, bool, bool | None]
) -> tuple[list[Result], list[str]]:
    return _results(_cases_of_job[index], *judging)


def assert_conforms(target: Any, against: Any = None, **options: Any) -> Report:
    """``check``, for a test: what failed is the message of the ``AssertionError``.

    With ``scenario=...`` one of ``scenarios`` is judged; one that the target refuses
    altogether is a skip, with its own words.

    Returns:
        the report, where the target conforms.
    """
    report = check(target, against, **options)
    if not report.results and options.get("scenario") is not None:
        raise unittest.SkipTest("; ".join(report.notes))
    if not report.conforms:
        raise AssertionError("\n" + str(report))
    return report


def _allowed(what: str, given: Sequence[str] | None, allowed: Sequence[str]) -> None:
    for one in given or ():
        if one not in allowed:
            raise ValueError(f"{what} must be one of {', '.join(allowed)}, got {one!r}")


def _subjects(
    target: Any,
    against: Any,
    names: Sequence[str],
    hyperparameters: Mapping[str, Any],
) -> Iterator[tuple[Port, Optimizer, str, Dialect | None]]:
    if target is None:
        import tf_impl
        from tf_impl.port import OptimizerV2Port

        if against is not None:
            raise ValueError("against needs a target to judge")
        here: dict[str, Any] = {**tf_impl.OPTIMIZERS, **tf_impl.WRAPPERS}
        for name in names or [*OPTIMIZERS, *WRAPPERS]:
            cls = rule_class(name)
            ours = OptimizerV2Port(here[cls.__name__])
            chosen = hyperparameters and issubclass(cls, Optimizer)
            examples = ({},) if chosen else cls.examples
            for options in examples:
                given = {**options, **hyperparameters}
                label = _label(cls.__name__, given)
                yield ours, _instance(cls, given), label, None
        return
    loaded = load(target)
    dialect = _dialect(target, loaded, against, hyperparameters)
    try:
        port = port_for(loaded, dialect)
    except TypeError as error:
        raise ValueError(str(error)) from None
    hyperparameters = _in_our_names(port, hyperparameters)
    if isinstance(against, Optimizer):
        optimizer = replace(against, **hyperparameters)
    else:
        special = {**dialect.options, **dialect.instance} if dialect else {}
        cls = rule_class(against or (dialect.rule if dialect else ""))
        optimizer = _instance(cls, {**special, **hyperparameters})
    unknown = set(hyperparameters) - port.accepts()
    if unknown:
        raise ValueError(
            f"{port.name} does not take {', '.join(sorted(unknown))}; it takes "
            f"{', '.join(sorted(port.accepts() - {'name'}))}"
        )
    yield port, optimizer, _label(port.name, hyperparameters), dialect


def _in_our_names(port: Port, hyperparameters: Mapping[str, Any]) -> dict[str, Any]:
    """The same, where some have the names that the implementation gives them."""
    if not isinstance(port, NamedPort):
        return dict(hyperparameters)
    renamed = {port.places[ours]: ours for ours in port.places}
    return {
        name if name in port.places else renamed.get(name, name): value
        for name, value in hyperparameters.items()
    }


def _dialect(
    target: Any, loaded: Any, against: Any, hyperparameters: Mapping[str, Any]
) -> Dialect | None:
    """The line of the map for this target, rule and options."""
    lines = dialects_of(target if isinstance(target, str) else loaded)
    if against is None:
        if not lines:
            raise ValueError(
                "a target needs a rule to be judged against: one of "
                f"{', '.join(OPTIMIZERS)}"
            )
        named = [line for line in lines if line.rule]
        if not named:
            raise ValueError(f"{lines[0].target} has no rule here: {lines[0].differs}")
    else:
        rule = rule_class(against) if isinstance(against, str) else against
        name = getattr(rule, "__name__", type(rule).__name__)
        named = [line for line in lines if line.rule == name]
    for line in named:
        chosen = {**line.options, **line.theirs}
        if all(chosen.get(n, value) == value for n, value in hyperparameters.items()):
            return line
    return named[0] if named else None


def rule_class(name: str | type[Any]) -> type[Any]:
    """The class of ``reference`` called ``name``, in whatever case.

    Raises:
        ValueError: there is none.
    """
    if isinstance(name, type):
        return name
    known = {**OPTIMIZERS, **WRAPPERS}
    by_name = {name.lower(): cls for name, cls in known.items()}
    if name.lower() not in by_name:
        raise ValueError(
            f"no optimizer is called {name!r}; there are {', '.join(known)}"
        )
    return by_name[name.lower()]


def optimizer_class(name: str) -> type[Optimizer]:
    """``rule_class`` of an optimizer that has a rule of its own.

    Raises:
        ValueError: there is none, or it is a wrapper.
    """
    cls = rule_class(name)
    if not issubclass(cls, Optimizer):
        raise ValueError(
            f"{cls.__name__} is a wrapper: its rule is that of the optimizer inside"
        )
    return cls


def _instance(cls: type[Optimizer], hyperparameters: Mapping[str, Any]) -> Optimizer:
    known = [n for n in inspect.signature(cls).parameters if n != "name"]
    unknown = set(hyperparameters) - set(known)
    if unknown:
        raise ValueError(
            f"{cls.__name__} has no {', '.join(sorted(unknown))}; it has "
            f"{', '.join(known)}"
        )
    try:
        return cls(**hyperparameters)
    except TypeError as error:
        raise ValueError(str(error)) from None


def _label(name: str, options: Mapping[str, Any]) -> str:
    words = [
        _described(value)
        if isinstance(value, Driver) or _is_several(value)
        else option.replace("_regularization_strength", "").replace(
            "learning_rate", "lr"
        )
        if value is True
        else f"{option.replace('learning_rate', 'lr')}={value}"
        for option, value in options.items()
        if not option.endswith("_regularization_strength")
    ]
    if any(option.startswith("l1_") for option in options):
        words.insert(0, "regularised")
    return f"{name}({', '.join(words)})" if words else name


def _is_several(value: Any) -> bool:
    """Whether it is pairs of an optimizer and the places of its weights."""
    return isinstance(value, tuple) and all(isinstance(pair, tuple) for pair in value)


def _described(optimizer: Any) -> str:
    if _is_several(optimizer):
        return ", ".join(_described(inner) for inner, _ in optimizer)
    given = {f.name: getattr(optimizer, f.name) for f in fields(optimizer)}
    defaults = {f.name: f.default for f in fields(optimizer)}
    changed = {name: value for name, value in given.items() if value != defaults[name]}
    return _label(type(optimizer).__name__, changed)


def _settings(
    port: Port,
    again: bool,
    wraps: bool,
    modes: Sequence[str] | None,
    dtypes: Sequence[str] | None,
    devices: Sequence[str] | None,
    strategies: Sequence[str] | None,
    quick: bool,
) -> Iterator[tuple[Setting, bool]]:
    """The settings to run, and whether with all programs or the first alone.

    What is not asked for is thinned where it costs much and shows little: XLA compiles
    each program anew, other options of a class that was judged (``again``) run the
    same code around another rule, and a wrapper (``wraps``) around one that was judged.
    """
    asked = bool(modes or dtypes)
    alike = again or wraps or not getattr(port, "every_pair", True)
    every_pair = asked or not alike
    offered = [one for one in STRATEGIES if one in port.strategies()]
    strategies = strategies or (("none",) if quick or again else offered)
    modes = modes or (port.modes()[:2] if quick else port.modes())
    for dtype in dtypes or (["float32"] if quick else DTYPES):
        format = FORMATS[dtype]
        for device in devices or port.devices():
            for mode in modes if every_pair or format is FLOAT32 else modes[:1]:
                if "none" in strategies:
                    setting = Setting(format, mode, device)
                    whole = format is FLOAT32 and (asked or mode != "xla")
                    yield setting, whole and not quick
        if "mirrored" in strategies and (format is FLOAT32 or len(strategies) == 1):
            yield Setting(format, "function", "CPU", "mirrored"), False


def _results(
    case: Case, seed: int, strict: bool, thorough: bool | None
) -> tuple[list[Result], list[str]]:
    """The result for each kind of gradient; what there is to say about all."""
    setting = case.setting
    runs, notes, refused, started = _runs(case, seed)
    hidden = _hidden_slots(case.optimizer, [run.recording for run in runs])
    if hidden:
        notes.append(f"not seen, checked through the weights: {', '.join(hidden)}")
    found, ideally = _best_conventions(case, runs, strict)
    for kind, message in refused.items():
        alone = not found and not (case.scenario and started)
        if kind not in found and (case.must_run or alone):
            found[kind] = ideal(setting.dtype), Score(failure=_not_run(message))
    explained = {}
    if thorough is not None and isinstance(case.optimizer, Optimizer):
        seconds = diagnose.SECONDS if thorough else BRIEFLY
        explained = _explained(case, runs, found, seconds)
    results = [
        _result(
            case,
            kind,
            convention,
            score,
            cost=_cost(convention, ideally.get(kind)),
            explanations=tuple(explained.get(kind, ())),
            notes=tuple(notes),
        )
        for kind, (convention, score) in found.items()
    ]
    return results, notes


def _explained(
    case: Case,
    runs: Sequence[_Run],
    found: Mapping[str, tuple[Convention, Score]],
    seconds: float,
) -> dict[str, list[Explanation]]:
    """Explanations for the kinds of gradient that fail, which share the time."""
    setting = case.setting
    if setting.dtype is not FLOAT32:
        return {}
    seen = {
        kind: [
            (run.recording, run.optimizer)
            for run in runs
            if len(run.recording.snapshots) > 1
            and _has_kind(run.recording.program, kind)
        ]
        for kind, (_, score) in found.items()
        if score.failure
    }
    seen = {kind: pairs for kind, pairs in seen.items() if pairs}
    end = time.process_time() + seconds
    explained = {}
    for done, (kind, pairs) in enumerate(seen.items()):
        left = end - time.process_time()
        explained[kind] = diagnose.diagnose(
            pairs,
            found[kind][0],
            setting,
            case.port.platform(setting),
            {kind},
            seconds=left / (len(seen) - done),
        )
    return explained


def _result(
    case: Case, kind: str, convention: Convention, score: Score, **more: Any
) -> Result:
    setting = case.setting
    return Result(
        optimizer=case.label,
        gradient=kind,
        dtype=setting.dtype.name,
        mode=setting.mode,
        device=setting.device,
        strategy=setting.strategy,
        conforms=score.conforms,
        worst_ratio=score.worst,
        ratios=score.ratios,
        undecidable=score.undecidable,
        elements=score.elements,
        convention=convention.sentence,
        failure=score.failure,
        **more,
    )


def _not_run(message: str) -> Failure:
    return Failure("start", "run", 1, message=message)


@dataclass(frozen=True)
class _Run:
    recording: Recording
    optimizer: Optimizer
    formats: Mapping[str, Any]


class _NotStarted(Refused):
    """There is no optimizer to run."""


def _runs(case: Case, seed: int) -> tuple[list[_Run], list[str], dict[str, str], bool]:
    """All programs; what was refused, for people, and for each kind of gradient.

    Last whether an optimizer could be made at all.
    """
    runs: list[_Run] = []
    started = True
    notes: list[str] = []
    refused: dict[str, str] = {}
    waiting = case.programs(seed)
    while waiting:
        program, why = _acceptable(case.port, waiting.pop(0))
        for message, left_out in why.items():
            notes.append(f"refused {case.setting.dtype.name}: {message}")
            refused |= dict.fromkeys(left_out, message)
        if not program.weights:
            continue
        kinds = {weight.kind for weight in program.weights}
        try:
            run = _record(case, program)
            stopped = run.recording.crash is not None and run.recording.crash[0] == 1
        except Refused as refusal:
            run, stopped = None, True
            message = str(refusal)
            started = not isinstance(refusal, _NotStarted)
        if stopped and len(kinds) > 1:
            waiting[:0] = [_of_kind(program, kind) for kind in sorted(kinds)]
        elif run is not None:
            runs += _by_count(run)
        else:
            refused |= dict.fromkeys(kinds, message)
            kind = f"{'/'.join(kinds)}, {case.setting.dtype.name} {case.setting.mode}"
            notes.append(f"refused {kind}: {message}")
    return runs, list(dict.fromkeys(notes)), refused, started


def _acceptable(port: Port, program: Program) -> tuple[Program, dict[str, set[str]]]:
    """The program without weights that the port cannot have; why, and their kinds."""
    weights: list[Weight] = []
    why: dict[str, set[str]] = {}
    for weight in program.weights:
        gradients = [weight.gradient(step) for step in range(program.steps)]
        message = next(filter(None, map(port.refusal, gradients)), "")
        if message:
            why.setdefault(message, set()).add(weight.kind)
        else:
            weights.append(weight)
    return replace(program, weights=tuple(weights)), why


def _by_count(run: _Run) -> list[_Run]:
    """The run, apart for each weight whose steps are counted on its own.

    Such a weight lives through the steps at which it has a gradient, and no others.
    """
    program, snapshots = run.recording.program, run.recording.snapshots
    apart = [
        i
        for i in range(len(program.weights))
        if any(s.counts and s.counts[i] != s.state.iterations for s in snapshots)
    ]
    if not apart:
        return [run]
    together = [i for i in range(len(program.weights)) if i not in apart]
    runs = [_alone(run, [i]) for i in apart]
    return [_alone(run, together), *runs] if together else runs


def _alone(run: _Run, chosen: list[int]) -> _Run:
    program, snapshots = run.recording.program, run.recording.snapshots
    taken = [
        step
        for step in range(len(snapshots) - 1)
        if any(program.weights[i].gradient(step) is not None for i in chosen)
    ]
    kept = [_weights_of(snapshots[0], chosen, program.iterations)]
    crash = run.recording.crash
    for step, after in enumerate(snapshots[1:]):
        new = _weights_of(after, chosen, program.iterations)
        if step in taken:
            kept.append(new)
        elif not _same_bits(kept[-1], new):
            crash = step + 1, "a weight without a gradient changed, or a slot of it did"
            break
    weights = tuple(_at_steps(program.weights[i], taken) for i in chosen)
    alone = replace(program, weights=weights, steps=len(taken))
    return replace(run, recording=Recording(alone, kept, crash))


def _at_steps(weight: Weight, steps: list[int]) -> Weight:
    return Weight(
        tuple(
            replace(part, gradients=tuple(part.gradients[step] for step in steps))
            for part in weight.parts
        )
    )


def _weights_of(snapshot: Snapshot, chosen: list[int], before: int) -> Snapshot:
    counts = snapshot.counts or [before] * len(snapshot.weights)
    each = snapshot.shared_each or [snapshot.state.shared] * len(snapshot.weights)
    state = State(
        counts[chosen[0]],
        tuple(snapshot.state.slots[i] for i in chosen),
        dict(each[chosen[0]]),
    )
    weights = [snapshot.weights[i] for i in chosen]
    return replace(snapshot, weights=weights, state=state, counts=None)


def _same_bits(old: Snapshot, new: Snapshot) -> bool:
    """Whether nothing changed; a slot that is made only now is no change."""
    pairs = list(zip(old.weights, new.weights, strict=True))
    for before, after in zip(old.state.slots, new.state.slots, strict=True):
        pairs += [(before[name], after[name]) for name in before]
    return all(np.array_equal(*pair, equal_nan=True) for pair in pairs)


def _of_kind(program: Program, kind: str) -> Program:
    weights = tuple(w for w in program.weights if w.kind == kind)
    return replace(program, weights=weights)


def _has_kind(program: Program, kind: str) -> bool:
    return any(weight.kind == kind for weight in program.weights)


def _best_conventions(
    case: Case, runs: list[_Run], strict: bool
) -> tuple[dict[str, tuple[Convention, Score]], dict[str, Score]]:
    """For each kind of gradient the convention that fits best; the ideal's scores."""
    setting, platform = case.setting, case.port.platform(case.setting)

    def judged(convention: Convention, to_the_end: bool) -> dict[str, Score]:
        total: dict[str, Score] = {}
        for run in runs:
            scores = judge(
                run.recording,
                run.optimizer,
                convention,
                setting,
                platform,
                to_the_end=to_the_end,
            )
            for kind, score in scores.items():
                total.setdefault(kind, Score()).add(score)
        return total

    seen = runs[0].formats if runs else {}
    found: dict[str, tuple[Convention, Score]] = {}
    ideally: dict[str, Score] = {}
    for convention in candidates(case.optimizer, setting.dtype, seen):
        scores = judged(convention, to_the_end=not ideally)
        ideally = ideally or scores
        for kind, score in scores.items():
            best = found.get(kind)
            if best is None or _better(score, best[1]):
                found[kind] = convention, score
        if strict or all(score.conforms for _, score in found.values()):
            break
    return found, ideally


def _better(score: Score, best: Score) -> bool:
    """Conforming, or at least failing later."""
    if best.conforms or score.conforms:
        return score.conforms and not best.conforms
    return score.survived > best.survived


def _cost(convention: Convention, ideal: Score | None) -> str:
    if convention.sentence == "ideal" or ideal is None:
        return ""
    slot, ratio = max(ideal.ratios.items(), key=lambda item: item[1])
    return f"It costs up to {ratio:.3g} times the ideal bound, in {slot}."


def _record(case: Case, program: Program) -> _Run:
    accepted = case.accepted()
    set_here = {n: v for n, v in program.hyperparameters.items() if n in accepted}
    optimizer = case.optimizer.replaced(**set_here)
    starts = [weight.start for weight in program.weights]
    given = arguments(optimizer, case.port.accepts())
    try:
        session = case.port.start(starts, given, case.setting, optimizer.slots)
    except Refused as refusal:
        raise _NotStarted(str(refusal)) from refusal
    formats: Mapping[str, Any] = {}
    known: Mapping[str, Any] = {}
    if program.iterations:
        state = settled_state(optimizer, program, case.setting.dtype)
        session.write(Snapshot(starts, state))
        known = state.shared
    first = session.read()
    shared = {**known, **first.state.shared}  # what does not show is as it was written
    snapshots = [replace(first, state=replace(first.state, shared=shared))]
    crash = None
    for step in range(program.steps):
        try:
            if step == program.resume_before:
                session.resume()
            if step in program.learning_rates:
                session.set_learning_rate(program.learning_rates[step])
            session.apply(program.gradients(step))
            snapshots.append(session.read())
            formats = formats or session.hyperparameter_formats()
        except Refused:
            raise
        except Exception as error:
            crash = step + 1, _first_line(error)
            break
    return _Run(Recording(program, snapshots, crash), optimizer, formats)


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:300]


def _hidden_slots(optimizer: Optimizer, recordings: list[Recording]) -> list[str]:
    """Slots of the rule that no snapshot shows under their names."""
    seen = {
        name
        for recording in recordings
        for snapshot in recording.snapshots
        for slots in snapshot.state.slots
        for name in slots
    }
    return [name for name in optimizer.slots if recordings and name not in seen]
