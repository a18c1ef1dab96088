"""The check: run an implementation through the scenarios and judge it by a rule."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import multiprocessing
import platform as machine
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import OPTIMIZERS
from ..optimizer import Optimizer
from .convention import Convention, candidates, ideal
from .diagnose import Explanation, diagnose
from .judge import Failure, Recording, Score, judge
from .port import Port, Refused, Setting, Snapshot
from .report import Report, Result
from .rounding import FLOAT32, FORMATS
from .scenarios import Program, programs, settled_state

Progress = Callable[[int, int, str], None]
"""Called with how many runs are done, how many there are, and which ended last."""

DTYPES = tuple(FORMATS)
STRATEGIES = ("none", "mirrored")


@dataclass(frozen=True)
class Case:
    """One implementation, with one set of options, in one setting.

    Attributes:
        whole: with all programs, not the first alone.
        must_run: a refusal is a failure, as for ``tf_impl``.
    """

    port: Port
    optimizer: Optimizer
    label: str
    setting: Setting
    whole: bool
    must_run: bool

    @property
    def summary(self) -> str:
        setting = self.setting
        return f"{self.label} {setting.dtype.name} {setting.mode}"

    def hyperparameters(self) -> dict[str, Any]:
        """The rule's constructor arguments that the implementation takes."""
        accepted = self.port.accepts()
        return {
            f.name: getattr(self.optimizer, f.name)
            for f in fields(self.optimizer)
            if f.name in accepted
            and f.name != "name"
            and (f.default is not None or getattr(self.optimizer, f.name) is not None)
            and not (f.name == "decay" and not self.optimizer.decay)
        }


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
    thorough: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Judge an implementation against a rule, or ``tf_impl`` against ``reference``.

    Args:
        target: an ``OptimizerV2`` subclass, or where one is: ``"package.module:Class"``
            or ``"path/to/file.py:Class"``. ``None`` judges ``tf_impl``.
        against: the rule: a name, a class of ``reference``, or an instance.
        names: without a target, the optimizers to judge; empty means all.
        hyperparameters: values for both sides, as ``{"epsilon": 1e-3}``.
        modes: among ``"eager"``, ``"function"``, ``"xla"``; default all.
        dtypes: among ``"float16"``, ``"bfloat16"``, ``"float32"``, ``"float64"``.
        devices: among ``"CPU"``, ``"GPU"``; default those that the machine has.
        strategies: among ``"none"``, ``"mirrored"``.
        quick: float32, eagerly and in a function, one program.
        strict: accept the ideal convention alone. Default: for ``tf_impl``.
        seed: of the scenarios.
        jobs: processes that share the runs; more than one needs a target by name.
        thorough: on failure in float32, search long for what is wrong.
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
    ways = (modes, dtypes, devices, strategies, quick)
    cases = _cases(request, ways)
    port = cases[0].port
    notes = []
    if "GPU" not in port.devices():
        if devices and "GPU" in devices:
            raise ValueError("device GPU was asked for; TensorFlow sees none here")
        notes.append("GPU: none here")
    results: dict[int, list[Result]] = {}
    for index, found in _run(cases, request, ways, (seed, strict, thorough), jobs):
        results[index] = found
        if progress:
            progress(len(results), len(cases), cases[index].summary)
    versions = {
        "python": machine.python_version(),
        "numpy": np.__version__,
        **port.versions(),
    }
    ordered = [result for index in range(len(cases)) for result in results[index]]
    return Report(ordered, seed, versions, notes)


def _cases(request: tuple, ways: tuple) -> list[Case]:
    modes = ways[0]
    cases = []
    for port, optimizer, label in _subjects(*request):
        _allowed("mode", modes, port.modes())
        for setting, whole in _settings(port, *ways):
            must_run = request[0] is None
            cases.append(Case(port, optimizer, label, setting, whole, must_run))
    return cases


def _run(
    cases: list[Case],
    request: tuple,
    ways: tuple,
    judging: tuple[int, bool, bool],
    jobs: int,
) -> Iterator[tuple[int, list[Result]]]:
    if jobs == 1:
        for index, case in enumerate(cases):
            yield index, _results(case, *judging)
        return
    with ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), _begin_job, (request, ways)
    ) as pool:
        running = {
            pool.submit(_job, index, judging): index for index in range(len(cases))
        }
        for done in as_completed(running):
            yield running[done], done.result()


_cases_of_job: list[Case] = []


def _begin_job(request: tuple, ways: tuple) -> None:
    from tf_impl.port import two_logical_cpus

    two_logical_cpus()
    _cases_of_job.extend(_cases(request, ways))


def _job(index: int, judging: tuple[int, bool, bool]) -> list[Result]:
    return _results(_cases_of_job[index], *judging)


def assert_conforms(target: Any, against: Any, **options: Any) -> Report:
    """``check``, for a test: what failed is the message of the ``AssertionError``.

    Returns:
        the report, where the target conforms.
    """
    report = check(target, against, **options)
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
) -> Iterator[tuple[Port, Optimizer, str]]:
    from tf_impl.port import OptimizerV2Port

    if target is None:
        import tf_impl

        if against is not None:
            raise ValueError("against needs a target to judge")
        for name in names or OPTIMIZERS:
            cls = rule_class(name)
            port = OptimizerV2Port(tf_impl.OPTIMIZERS[cls.__name__])
            examples = ({},) if hyperparameters else cls.examples
            for options in examples:
                given = {**options, **hyperparameters}
                yield port, _instance(cls, given), _label(cls.__name__, given)
        return
    if against is None:
        raise ValueError(
            "a target needs a rule to be judged against: one of "
            f"{', '.join(OPTIMIZERS)}"
        )
    try:
        port = OptimizerV2Port(load(target))
    except TypeError as error:
        raise ValueError(str(error)) from None
    if isinstance(against, Optimizer):
        optimizer = replace(against, **hyperparameters)
    else:
        cls = rule_class(against)
        optimizer = _instance(cls, hyperparameters)
    unknown = set(hyperparameters) - port.accepts()
    if unknown:
        raise ValueError(
            f"{port.name} does not take {', '.join(sorted(unknown))}; it takes "
            f"{', '.join(sorted(port.accepts() - {'name'}))}"
        )
    yield port, optimizer, _label(port.name, hyperparameters)


def rule_class(name: str | type[Optimizer]) -> type[Optimizer]:
    """The class of ``reference`` called ``name``, in whatever case.

    Raises:
        ValueError: there is none.
    """
    if isinstance(name, type):
        return name
    by_name = {known.lower(): cls for known, cls in OPTIMIZERS.items()}
    if name.lower() not in by_name:
        raise ValueError(
            f"no optimizer is called {name!r}; there are {', '.join(OPTIMIZERS)}"
        )
    return by_name[name.lower()]


def load(target: Any) -> Any:
    """The class at ``"package.module:Class"`` or ``"path/to/file.py:Class"``.

    Raises:
        ValueError: the text has not this form, or nothing is there.
    """
    if not isinstance(target, str):
        return target
    place, colon, name = target.rpartition(":")
    if not colon or not name:
        raise ValueError(
            f"a target is package.module:Class or path/to/file.py:Class, got {target!r}"
        )
    if place.endswith(".py") and not Path(place).is_file():
        raise ValueError(f"there is no file {place}")
    try:
        module = _imported(place)
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise ValueError(f"cannot import {place}: {what}") from error
    if not hasattr(module, name):
        raise ValueError(f"{place} has no {name}")
    return getattr(module, name)


def _imported(place: str) -> Any:
    """The file, the module, or the attribute of a module that ``place`` names."""
    if place.endswith(".py"):
        path = Path(place).resolve()
        sys.path.append(str(path.parent))
        spec = importlib.util.spec_from_file_location(f"target_{path.stem}", path)
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[module.__name__] = module
        spec.loader.exec_module(module)
        return module
    try:
        return importlib.import_module(place)
    except ModuleNotFoundError:
        parent, dot, last = place.rpartition(".")
        if not dot:
            raise
        outer = _imported(parent)
        if not hasattr(outer, last):
            raise
        return getattr(outer, last)


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
        option.replace("_regularization_strength", "").replace("learning_rate", "lr")
        if value is True
        else f"{option.replace('learning_rate', 'lr')}={value}"
        for option, value in options.items()
        if not option.endswith("_regularization_strength")
    ]
    if any(option.startswith("l1_") for option in options):
        words.insert(0, "regularised")
    return f"{name}({', '.join(words)})" if words else name


def _settings(
    port: Port,
    modes: Sequence[str] | None,
    dtypes: Sequence[str] | None,
    devices: Sequence[str] | None,
    strategies: Sequence[str] | None,
    quick: bool,
) -> Iterator[tuple[Setting, bool]]:
    """The settings to run, and whether with all programs or the first alone."""
    strategies = strategies or (("none",) if quick else STRATEGIES)
    modes = modes or (["eager", "function"] if quick else port.modes())
    for dtype in dtypes or (["float32"] if quick else DTYPES):
        format = FORMATS[dtype]
        for device in devices or port.devices():
            for mode in modes:
                if "none" in strategies:
                    setting = Setting(format, mode, device)
                    yield setting, not quick and format is FLOAT32
        if "mirrored" in strategies and (format is FLOAT32 or len(strategies) == 1):
            yield Setting(format, "function", "CPU", "mirrored"), False


def _results(case: Case, seed: int, strict: bool, thorough: bool) -> list[Result]:
    setting = case.setting
    runs, notes, refused = _runs(case, seed)
    hidden = _hidden_slots(case.optimizer, [run.recording for run in runs])
    if hidden:
        notes.append(f"not seen, checked through the weights: {', '.join(hidden)}")
    found, ideally = _best_conventions(case, runs, strict)
    limits = (case.optimizer.clipvalue, case.optimizer.clipnorm)
    clips = any(x is not None for x in (*limits, case.optimizer.global_clipnorm))
    for kind, message in refused.items():
        if kind not in found and (case.must_run or not found):
            failure = Failure("start", "run", 1, message=message)
            found[kind] = ideal(setting.dtype), Score(failure=failure)
    long_enough = [
        (run.recording, run.optimizer)
        for run in runs
        if len(run.recording.snapshots) > 1
    ]
    results = []
    for kind, (convention, score) in found.items():
        explanations: list[Explanation] = []
        if score.failure and setting.dtype is FLOAT32 and not (hidden or clips):
            seen = [r for r in long_enough if _has_kind(r[0].program, kind)]
            if seen:
                explanations = diagnose(
                    seen,
                    convention,
                    setting,
                    case.port.platform(setting),
                    {kind},
                    thorough=thorough,
                )
        results.append(
            Result(
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
                cost=_cost(convention, ideally.get(kind)),
                failure=score.failure,
                explanations=tuple(explanations),
                notes=tuple(notes),
            )
        )
    return results


@dataclass(frozen=True)
class _Run:
    recording: Recording
    optimizer: Optimizer
    formats: Mapping[str, Any]


def _runs(case: Case, seed: int) -> tuple[list[_Run], list[str], dict[str, str]]:
    """All programs; what was refused, for people, and for each kind of gradient."""
    runs: list[_Run] = []
    notes: list[str] = []
    refused: dict[str, str] = {}
    waiting = programs(case.optimizer, case.setting, seed, quick=not case.whole)
    while waiting:
        program = waiting.pop(0)
        kinds = {weight.kind for weight in program.weights}
        try:
            run = _record(case, program)
            stopped = run.recording.crash is not None and run.recording.crash[0] == 1
        except Refused as refusal:
            run, stopped = None, True
            message = str(refusal)
        if stopped and len(kinds) > 1:
            waiting[:0] = [_of_kind(program, kind) for kind in sorted(kinds)]
        elif run is not None:
            runs.append(run)
        else:
            refused |= dict.fromkeys(kinds, message)
            kind = f"{'/'.join(kinds)}, {case.setting.dtype.name} {case.setting.mode}"
            notes.append(f"refused {kind}: {message}")
    return runs, list(dict.fromkeys(notes)), refused


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
    accepted = case.port.accepts()
    set_here = {n: v for n, v in program.hyperparameters.items() if n in accepted}
    optimizer = replace(case.optimizer, **set_here)
    starts = [weight.start for weight in program.weights]
    session = case.port.start(
        starts,
        {**case.hyperparameters(), **set_here},
        case.setting,
        optimizer.slots,
    )
    formats: Mapping[str, Any] = {}
    if program.iterations:
        state = settled_state(optimizer, program, case.setting.dtype)
        session.write(Snapshot(starts, state))
    snapshots = [session.read()]
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
