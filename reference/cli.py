"""``optimizer-oracle``: list, explain, check."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from . import OPTIMIZERS, WRAPPERS, __version__
from .optimizer import Optimizer

CONFORMS, DIFFERS, MISUSE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status.

    0: done, and all conform; 1: something does not conform; 2: misuse.
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return options.run(options)
    except ValueError as error:
        print(f"optimizer-oracle: {error}", file=sys.stderr)
        return MISUSE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CONFORMS


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="optimizer-oracle",
        description="Does this optimizer do what its equations say?",
        epilog="example: optimizer-oracle check Adam --quick",
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Any, summary: str, example: str) -> Any:
        added = commands.add_parser(
            name,
            help=summary,
            description=summary[0].upper() + summary[1:] + ".",
            epilog=f"example: optimizer-oracle {example}",
        )
        added.set_defaults(run=run)
        return added

    listing = command("list", _list, "list the optimizers that are specified", "list")
    listing.add_argument("--json", action="store_true", help="as JSON")

    explaining = command(
        "explain",
        _explain,
        "show a rule, its documentation, and one step with every named value",
        "explain Adam --set amsgrad=true",
    )
    explaining.add_argument("name", metavar="NAME")
    _add_set(explaining)

    scoring = command(
        "mutants",
        _mutants,
        "count the wrong versions of each rule that the scenarios tell from it",
        "mutants Adam --json score.json",
    )
    scoring.add_argument("names", nargs="*", metavar="NAME", help="default: all")
    scoring.add_argument("--seed", type=int, default=0, help="of the inputs; default 0")
    scoring.add_argument("--json", metavar="FILE", help="write the score; - is stdout")

    exercising = command(
        "exercise",
        _exercise,
        "show a rule with one wrong line, to be found",
        "exercise Adam --seed 3",
    )
    exercising.add_argument("names", nargs="*", metavar="NAME", help="default: any")
    exercising.add_argument("--seed", type=int, default=0, help="which; default 0")
    exercising.add_argument("--answer", action="store_true", help="explain it")

    diagnosing = command(
        "diagnose",
        _diagnose,
        "search for what is wrong with an implementation",
        "diagnose path/to/my_adam.py:MyAdam --against Adam",
    )
    diagnosing.add_argument("targets", nargs=1, metavar="TARGET")
    diagnosing.add_argument("--against", metavar="NAME", required=True)
    _add_set(diagnosing)
    diagnosing.add_argument("--seed", type=int, default=0, help="default 0")
    diagnosing.add_argument("--json", metavar="FILE", help="- is stdout")

    listing_dialects = command(
        "dialects",
        _dialects,
        "show what an optimizer is in other libraries, side by side",
        "dialects adam",
    )
    listing_dialects.add_argument("name", metavar="NAME")

    converting = command(
        "convert",
        _convert,
        "find the arguments that make an optimizer of one library equal another's",
        "convert tf_keras:Adam torch:Adam --set epsilon=1e-7",
    )
    converting.add_argument("source", metavar="SOURCE", help="as tf_keras:Adam")
    converting.add_argument("target", metavar="TARGET", help="as torch:Adam")
    _add_set(converting)
    converting.add_argument("--json", metavar="FILE", help="- is stdout")

    reporting = command(
        "report",
        _report,
        "judge every optimizer of installed libraries that has a rule here",
        "report torch --markdown torch.md",
    )
    reporting.add_argument(
        "libraries",
        nargs="*",
        metavar="LIBRARY",
        help="torch, optax, keras, tf_keras, tf_keras.legacy or addons; default all",
    )
    reporting.add_argument(
        "--quick", action="store_true", help="one set of options, float32, one program"
    )
    reporting.add_argument("--json", metavar="FILE", help="- is stdout")
    reporting.add_argument(
        "--markdown", metavar="FILE", help="a page; in a folder, one for each library"
    )

    examining = command(
        "contract",
        _contract,
        "examine an OptimizerV2 subclass without a rule: hooks, config, XLA, replicas",
        "contract path/to/my_adam.py:MyAdam",
    )
    examining.add_argument(
        "targets",
        nargs=1,
        metavar="TARGET",
        help="package.module:Class or path/to/file.py:Class",
    )
    _add_set(examining)
    examining.add_argument("--json", metavar="FILE", help="- is stdout")

    checking = command(
        "check",
        _check,
        "judge an implementation step for step against the rule",
        "check my_package.optimizers:MyAdam --against Adam --set epsilon=1e-3",
    )
    checking.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help="optimizers of tf_impl (default: all); raw_ops: TensorFlow's operations; "
        "or one of torch:Adam, optax:adam, keras:Adam, tf_keras:Adam, "
        "package.module:Class, path/to/file.py:Class",
    )
    checking.add_argument(
        "--against",
        metavar="NAME",
        help="the rule for the target; optional where the map of dialects names it",
    )
    _add_set(checking)
    checking.add_argument(
        "--mode",
        action="append",
        choices=["eager", "function", "xla", "jit", "loop", "foreach", "fused"],
        help="eager, function, xla; torch: loop, foreach, fused; optax: eager, jit",
    )
    checking.add_argument(
        "--dtype",
        action="append",
        choices=["float16", "bfloat16", "float32", "float64"],
    )
    checking.add_argument("--device", action="append", choices=["CPU", "GPU"])
    checking.add_argument(
        "--strategy",
        action="append",
        choices=["none", "mirrored"],
        help="mirrored: two logical CPUs",
    )
    checking.add_argument(
        "--quick", action="store_true", help="float32, two modes, one program"
    )
    checking.add_argument(
        "--strict",
        action="store_true",
        help="accept only coefficients formed in float64 from real hyperparameters",
    )
    checking.add_argument("--scenario", metavar="NAME", help="this one alone")
    checking.add_argument(
        "--seed", type=int, default=0, help="of the inputs; default 0"
    )
    checking.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        help="processes that share the runs; default 1 for a target, else one a core",
    )
    checking.add_argument(
        "--json", metavar="FILE", help="write the report; - is stdout"
    )
    return parser


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def _add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a hyperparameter or option, as epsilon=1e-3 or amsgrad=true",
    )


def _settings(pairs: Sequence[str]) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise ValueError(f"--set takes NAME=VALUE, got {pair!r}")
        words = {"true": True, "false": False, "none": None}
        if text.lower() in words:
            settings[name] = words[text.lower()]
            continue
        try:
            settings[name] = float(text)
        except ValueError:
            settings[name] = text
    return settings


def _list(options: argparse.Namespace) -> int:
    if options.json:
        described = [_described(name, cls) for name, cls in OPTIMIZERS.items()]
        described += [_described_wrapper(cls) for cls in WRAPPERS.values()]
        print(json.dumps(described, indent=1))
        return CONFORMS
    rows: list[tuple[str, ...]] = [
        ("optimizer", "slots", "sparse gradient changes", "from", "paper")
    ]
    for cls in OPTIMIZERS.values():
        rows += dict.fromkeys(_row(cls(**example)) for example in cls.examples)
    for wrapper in WRAPPERS.values():
        one = _described_wrapper(wrapper)
        slots = ", ".join(one["slots"]) or "-"
        rows.append((one["name"], slots, one["sparse"][0], one["home"], one["paper"]))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (cell.ljust(w) for cell, w in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip())
    return CONFORMS


def _row(optimizer: Optimizer) -> tuple[str, ...]:
    cls = type(optimizer)
    return (
        cls.__name__,
        ", ".join(_slots(optimizer)) or "-",
        str(optimizer.policy),
        cls.home.removeprefix("tf.keras.optimizers."),
        cls.paper,
    )


def _slots(optimizer: Optimizer) -> list[str]:
    shared = optimizer.shared.slots.values() if optimizer.shared else ()
    return [*optimizer.slots, *(slot.name for slot in shared)]


def _described(name: str, cls: type[Optimizer]) -> dict[str, Any]:
    examples = [cls(**options) for options in cls.examples]
    return {
        "name": name,
        "paper": cls.paper,
        "slots": list(dict.fromkeys(s for e in examples for s in _slots(e))),
        "sparse": list(dict.fromkeys(str(e.policy) for e in examples)),
        "home": cls.home,
    }


def _described_wrapper(cls: Any) -> dict[str, Any]:
    return {
        "name": cls.__name__,
        "paper": cls.paper,
        "slots": list(getattr(cls, "adds", ())),
        "sparse": ["as the optimizer inside"],
        "home": cls.home,
    }


def _explain(options: argparse.Namespace) -> int:
    from .conformance.check import _instance, rule_class
    from .conformance.explain import explain, explain_wrapper

    cls = rule_class(options.name)
    if issubclass(cls, Optimizer):
        print(explain(_instance(cls, _settings(options.set))))
    else:
        print(explain_wrapper(cls))
    return CONFORMS


def _check(options: argparse.Namespace) -> int:
    if options.targets == ["raw_ops"]:
        return _check_raw_ops(options)
    is_target = options.against or any(":" in target for target in options.targets)
    if is_target and len(options.targets) != 1:
        raise ValueError(
            f"one target is checked at a time, got {len(options.targets)}: "
            "package.module:Class or path/to/file.py:Class"
        )
    _writable(options.json)
    _prepare_frameworks()
    if not is_target:
        _need_tensorflow()
    from .conformance.check import check

    report = check(
        options.targets[0] if is_target else None,
        options.against,
        names=() if is_target else options.targets,
        hyperparameters=_settings(options.set),
        modes=options.mode,
        dtypes=options.dtype,
        devices=options.device,
        strategies=options.strategy,
        quick=options.quick,
        strict=True if options.strict else None,
        seed=options.seed,
        jobs=options.jobs or (1 if is_target else min(os.cpu_count() or 1, 4)),
        scenario=options.scenario,
        progress=_Bar(sys.stderr),
    )
    if options.json != "-":
        print(report)
    _write(options.json, report.to_json())
    return CONFORMS if report.conforms else DIFFERS


def _check_raw_ops(options: argparse.Namespace) -> int:
    for name in ("against", "set", "device", "strategy", "strict", "jobs"):
        if getattr(options, name):
            raise ValueError(f"check raw_ops takes no --{name}")
    _writable(options.json)
    _prepare_frameworks()
    _need_tensorflow()
    from tf_impl.raw_ops import DTYPES, MODES, check_raw_ops

    report = check_raw_ops(
        dtypes=options.dtype or DTYPES,
        modes=options.mode or MODES,
        quick=options.quick,
        seed=options.seed,
        progress=_Bar(sys.stderr),
    )
    if options.json != "-":
        print(report)
    _write(options.json, report.to_json())
    return CONFORMS if report.explained else DIFFERS


def _diagnose(options: argparse.Namespace) -> int:
    _writable(options.json)
    _prepare_frameworks()
    from .conformance.check import check
    from .conformance.ports import load, port_for

    target = load(options.targets[0])
    report = check(
        target,
        options.against,
        hyperparameters=_settings(options.set),
        modes=port_for(target).modes()[:1],
        dtypes=["float32"],
        devices=["CPU"],
        strategies=["none"],
        seed=options.seed,
        thorough=True,
        progress=_Bar(sys.stderr),
    )
    found = {r.gradient: r.explanations for r in report.failures}
    if options.json != "-":
        for r in report.failures:
            print(f"{r.optimizer}, {r.gradient} gradients: {r.failure}")
            for number, explanation in enumerate(r.explanations, 1):
                print(f"  {number}. {explanation}")
            if not any(e.reproduces == "everything" for e in r.explanations):
                print("  no single cause found")
        if report.conforms:
            print(f"{report.results[0].optimizer} conforms")
    explanations = {e: None for each in found.values() for e in each}
    shown = [explanation.to_dict() for explanation in explanations]
    _write(options.json, json.dumps({"explanations": shown}, indent=1))
    return CONFORMS if report.conforms else DIFFERS


def _contract(options: argparse.Namespace) -> int:
    _writable(options.json)
    _prepare_frameworks()
    from .conformance.contract import examine

    found = examine(options.targets[0], _settings(options.set), _Bar(sys.stderr))
    if options.json != "-":
        print(found.text)
    _write(options.json, found.json)
    return CONFORMS if found.held else DIFFERS


def _dialects(options: argparse.Namespace) -> int:
    _prepare_frameworks()
    from .conformance.dialects import side_by_side

    print(side_by_side(options.name))
    return CONFORMS


def _convert(options: argparse.Namespace) -> int:
    _writable(options.json)
    _prepare_frameworks()
    from .conformance.dialects import convert

    found = convert(options.source, options.target, _settings(options.set))
    if options.json != "-":
        print(found)
    _write(options.json, json.dumps(found.to_dict(), indent=1))
    return DIFFERS if found.arguments is None else CONFORMS


def _report(options: argparse.Namespace) -> int:
    _writable(options.json)
    _writable(options.markdown)
    _prepare_frameworks()
    from .conformance.cards import report_card
    from .dialects import LIBRARIES

    libraries = options.libraries or list(LIBRARIES)
    folder = options.markdown and os.path.isdir(options.markdown)
    if options.markdown and not folder and len(libraries) > 1:
        raise ValueError("several pages need a folder that exists after --markdown")
    cards = [
        report_card(library, _Bar(sys.stderr), quick=options.quick)
        for library in libraries
    ]
    for card in cards:
        if options.json != "-":
            print(card, end="\n\n")
        if options.markdown and not card.missing:
            name = os.path.join(options.markdown, f"{card.library}.md")
            _write(name if folder else options.markdown, card.markdown().rstrip())
    _write(options.json, json.dumps([card.to_dict() for card in cards], indent=1))
    return CONFORMS if all(card.explained for card in cards) else DIFFERS


def _exercise(options: argparse.Namespace) -> int:
    from .conformance.check import optimizer_class
    from .conformance.exercise import exercise

    classes = [optimizer_class(name) for name in options.names or OPTIMIZERS]
    print(exercise(classes, options.seed, answer=options.answer))
    return CONFORMS


def _mutants(options: argparse.Namespace) -> int:
    from .conformance.check import optimizer_class
    from .conformance.score import score

    _writable(options.json)
    classes = [optimizer_class(name) for name in options.names or OPTIMIZERS]
    bar = _Bar(sys.stderr)
    scores = {}
    for done, cls in enumerate(classes):
        bar(done, len(classes), cls.__name__)
        scores[cls.__name__] = score(cls, options.seed)
    bar(len(classes), len(classes), "")
    if options.json != "-":
        print("optimizer  mutants  killed  equivalent  surviving")
        for name, s in scores.items():
            counts = (s.mutants, s.killed, len(s.equivalent), len(s.surviving))
            print(f"{name:9}  {counts[0]:7}  {counts[1]:6}  {counts[2]:10}", end="")
            print(f"  {counts[3]:9}")
            for scenario, count in s.alone.most_common():
                print(f"  {count:4} told by '{scenario}' alone")
            for survivor in s.to_dict()["survivors"]:
                print(f"  survives: {survivor}")
    shown = {name: s.to_dict() for name, s in scores.items()}
    _write(options.json, json.dumps(shown, indent=1))
    return DIFFERS if any(s.surviving for s in scores.values()) else CONFORMS


def _prepare_frameworks() -> None:
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    sys.path.insert(0, os.getcwd())


def _need_tensorflow() -> None:
    try:
        import tf_impl  # noqa: F401
    except ImportError as error:
        raise ValueError(
            f"the check needs TensorFlow and tf-keras ({error}); "
            "install optimizer-oracle[tf]"
        ) from error


def _writable(path: str | None) -> None:
    if path and path != "-":
        folder = os.path.dirname(os.path.abspath(path))
        if not os.path.isdir(folder):
            raise ValueError(f"cannot write {path}: there is no folder {folder}")


def _write(path: str | None, text: str) -> None:
    if path == "-":
        print(text)
    elif path:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + "\n")


class _Bar:
    """Progress on a terminal: one line, redrawn; elsewhere a line every ten seconds."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self.start = self.last = time.monotonic()

    def __call__(self, done: int, total: int, what: str) -> None:
        now = time.monotonic()
        line = f"{done}/{total} {now - self.start:.0f} s {what}"
        if self.stream.isatty():
            width = 30
            filled = width * done // max(total, 1)
            end = "\n" if done == total else ""
            bar = "#" * filled + "." * (width - filled)
            self.stream.write(f"\r\033[K[{bar}] {line}{end}")
        elif now - self.last >= 10 or done == total:
            self.last = now
            self.stream.write(line + "\n")
        self.stream.flush()


if __name__ == "__main__":
    sys.exit(main())
