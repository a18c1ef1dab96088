"""Report cards: every optimizer of a library that has a rule here, judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatch
from typing import Any

from .. import OPTIMIZERS
from ..dialects import DIALECTS, LIBRARIES, Dialect, lines_of
from .check import check
from .findings import FINDINGS, Finding
from .ports import NotInstalled, port_of
from .report import Report, Result


@dataclass(frozen=True)
class Entry:
    """One optimizer of a library with one set of options.

    Attributes:
        line: the line of the map.
        label: its name with the arguments it was given, as its users write them.
        report: what the check found.
    """

    line: Dialect
    label: str
    report: Report

    @property
    def rule(self) -> str:
        shown = ", ".join(f"{n}={v}" for n, v in self.line.options.items())
        return f"{self.line.rule}({shown})" if shown else self.line.rule

    def results(self, gradient: str) -> list[Result]:
        return [r for r in self.report.results if r.gradient == gradient]

    def verdict(self, gradient: str) -> str:
        """``conforms``, ``conforms as ...``, ``differs in ...`` or ``refuses``."""
        results = self.results(gradient)
        if not results:
            return "refuses"
        wrong = [r for r in results if not r.conforms]
        if not wrong:
            same = self.line.rule.lower() == self.line.name.lower()
            return "conforms" if same else f"conforms as {self.rule}"
        return f"differs {_where(wrong, results)}"

    @property
    def conventions(self) -> list[str]:
        seen = [
            f"{r.dtype}: {r.convention}"
            for r in self.report.results
            if r.conforms and r.convention != "ideal"
        ]
        return list(dict.fromkeys(seen))


@dataclass(frozen=True)
class Card:
    """What was found in one library.

    Attributes:
        library: a key of ``LIBRARIES``.
        entries: the optimizers that have a rule here.
        without: those that are in the map without one, with what they do otherwise.
        versions: of what was run.
        missing: why nothing was run; empty where something was.
        quick: with one set of options, in float32, in two modes, on one program.
    """

    library: str
    entries: Sequence[Entry] = ()
    without: Sequence[Dialect] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""
    quick: bool = False

    def findings(self) -> list[tuple[Finding | None, list[tuple[Entry, Result]]]]:
        """What differs, by its explanation; unexplained last."""
        found: dict[int, list[tuple[Entry, Result]]] = {}
        for entry in self.entries:
            for result in entry.report.failures:
                found.setdefault(_explained(entry, result), []).append((entry, result))
        return [
            (FINDINGS[i] if i < len(FINDINGS) else None, found[i])
            for i in sorted(found)
        ]

    @property
    def explained(self) -> bool:
        """Whether all that differs is a known finding."""
        return all(finding is not None for finding, _ in self.findings())

    def to_dict(self) -> dict[str, Any]:
        return {
            "library": self.library,
            "missing": self.missing,
            "versions": dict(self.versions),
            "entries": [
                {
                    "optimizer": entry.label,
                    "rule": entry.rule,
                    "dense": entry.verdict("dense"),
                    "sparse": entry.verdict("sparse"),
                    "conventions": entry.conventions,
                    "results": [r.to_dict() for r in entry.report.results],
                }
                for entry in self.entries
            ],
            "findings": [
                {
                    "sentence": finding.sentence if finding else "not explained",
                    "seen": sorted({_seen(*pair) for pair in seen}),
                    "reproduction": finding.code if finding else "",
                }
                for finding, seen in self.findings()
            ],
            "without a rule": {x.name: x.differs for x in self.without},
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def __str__(self) -> str:
        if self.missing:
            return f"{self.library}: {self.missing}"
        shown = ", ".join(f"{name} {v}" for name, v in self.versions.items())
        rows = [("optimizer", "rule", "dense", "sparse")]
        rows += [_row(entry) for entry in self.entries]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [f"{self.library} ({shown})", ""]
        lines += [
            "  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        for finding, seen in self.findings():
            what = finding.sentence if finding else "not explained"
            lines += ["", f"{what}:", *(f"  {s}" for s in _all_seen(seen))]
        if self.without:
            lines += ["", "no rule here:"]
            lines += [f"  {x.name}: {x.differs}" for x in self.without]
        return "\n".join(lines)

    def markdown(self) -> str:
        """The card as a page, with a reproduction of each finding."""
        shown = ", ".join(f"{name} {v}" for name, v in self.versions.items())
        lines = [
            f"# {self.library}",
            "",
            f"Made by `optimizer-oracle report {self.library}"
            + " --quick" * self.quick
            + f" --markdown FILE` with {shown}.",
            "",
            "| optimizer | rule here | dense | sparse |",
            "|---|---|---|---|",
        ]
        lines += [
            f"| {' | '.join(map(_cell, _row(entry)))} |" for entry in self.entries
        ]
        if self.without:
            lines += ["", "Without a rule here:", ""]
            lines += [f"* {x.name}: {x.differs}." for x in self.without]
        lines += ["", "## Findings", ""]
        for finding, seen in self.findings():
            what = finding.sentence if finding else "Not explained"
            lines += [f"**{what}.** Seen in:", ""]
            lines += [f"* {s}" for s in _all_seen(seen)]
            if finding:
                lines += ["", "```python", finding.code.strip(), "```"]
            lines.append("")
        if not self.findings():
            lines += ["None.", ""]
        lines += ["## Conventions", ""]
        lines += [
            f"* {', '.join(names)}: {convention}."
            for convention, names in self._conventions().items()
        ]
        return "\n".join(lines).rstrip() + "\n"

    def _conventions(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for entry in self.entries:
            for convention in entry.conventions:
                found.setdefault(convention, []).append(entry.label)
        return found


def report_card(
    library: str,
    progress: Callable[[int, int, str], None] | None = None,
    *,
    quick: bool = False,
) -> Card:
    """Judge every optimizer of a library that has a rule here.

    Each runs through all programs in every dtype; in modes that share their code with
    the first, through one program in float32.

    Args:
        library: a key of ``LIBRARIES``.
        progress: told of each optimizer.
        quick: one set of options for each, float32, two modes, one program.

    Raises:
        ValueError: no such library.
    """
    if library not in LIBRARIES:
        known = ", ".join(LIBRARIES)
        raise ValueError(f"a library is one of {known}, got {library!r}")
    lines = [line for line in DIALECTS if line.library == library]
    entries: list[Entry] = []
    try:
        plan = list(_plan([x for x in lines if x.rule], 1 if quick else 3))
    except NotInstalled as missing:
        return Card(library, missing=str(missing))
    for done, (line, options) in enumerate(plan):
        if progress:
            progress(done, len(plan), f"{line.target} {options or ''}")
        entries.append(_judged(line, options, quick))
    if progress:
        progress(len(plan), len(plan), "")
    versions = entries[0].report.versions if entries else {}
    without = [line for line in lines if not line.rule]
    return Card(library, entries, without, versions, quick=quick)


def _judged(line: Dialect, options: Mapping[str, Any], quick: bool) -> Entry:
    port = port_of(line)
    optimizer = OPTIMIZERS[line.rule](**{**line.options, **options})
    constant, first = line.constant_rate, port.modes()[:1]
    report = check(
        port,
        optimizer,
        modes=None if port.every_pair or quick else first,
        strategies=["none"],
        quick=quick,
        constant_rate=constant,
        thorough=None,
    )
    if not (quick or port.every_pair) and (others := port.modes()[1:]):
        rest = check(port, optimizer, modes=others, quick=True, thorough=None)
        report = replace(report, results=[*report.results, *rest.results])
    return Entry(line, label(line, optimizer, {*options}), report)


def label(line: Dialect, optimizer: Any, shown: set[str]) -> str:
    """The name of an optimizer with its arguments, as its users write them.

    Shown are those that are named and those that tell lines of one optimizer apart.
    """
    port = port_of(line)
    for other in lines_of(line.target):
        shown = shown | {*other.options, *other.instance}
    takes = shown & port.accepts()
    values = {
        f.name: value
        for f in fields(optimizer)
        if f.name in takes and (value := getattr(optimizer, f.name)) is not None
    }
    arguments = ", ".join(f"{n}={v}" for n, v in port.given(values).items())
    return f"{line.name}({arguments})" if arguments else line.name


def _plan(
    lines: Sequence[Dialect], most: int
) -> Iterator[tuple[Dialect, dict[str, Any]]]:
    """Each line with sets of options that its rule has as examples, up to ``most``."""
    for line in lines:
        port = port_of(line)
        takes = port.accepts()
        plain = True
        for example in OPTIMIZERS[line.rule].examples[:most]:
            example = {**line.instance, **example}
            fits = all(line.options.get(n, v) == v for n, v in example.items())
            if fits and set(example) <= takes | set(line.options):
                options = {n: v for n, v in example.items() if n not in line.options}
                plain = plain and options != line.instance
                yield line, options
        if plain:
            yield line, dict(line.instance)


def _row(entry: Entry) -> tuple[str, str, str, str]:
    verdicts = (entry.verdict("dense"), entry.verdict("sparse"))
    return (entry.label, entry.rule, *verdicts)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _where(wrong: Sequence[Result], results: Sequence[Result]) -> str:
    if len(wrong) == len(results):
        return "everywhere"
    if len(wrong) > 3:
        return f"in {len(wrong)} of {len(results)} settings"
    return "in " + ", ".join(f"{r.dtype} {r.mode}" for r in wrong)


def _first(result: Result) -> str:
    failure = result.failure
    assert failure
    if failure.message:
        return f"step {failure.step}: {failure.message}"
    return (
        f"'{failure.part or failure.program}', step {failure.step}, {failure.slot}: "
        f"{failure.came:.6g} for {failure.due:.6g}"
    )


def _seen(entry: Entry, result: Result) -> str:
    return (
        f"{entry.label}, {result.gradient}, {result.dtype} {result.mode}: "
        f"{_first(result)}"
    )


def _all_seen(seen: Sequence[tuple[Entry, Result]]) -> list[str]:
    """One line for each optimizer and kind of gradient: the first setting it fails."""
    first: dict[tuple[str, str], str] = {}
    for entry, result in seen:
        first.setdefault((entry.label, result.gradient), _seen(entry, result))
    return list(first.values())


def _explained(entry: Entry, result: Result) -> int:
    """The position of the finding that explains a failure; past the end for none."""
    for i, finding in enumerate(FINDINGS):
        if (
            entry.line.library in finding.libraries
            and any(fnmatch(entry.label, name) for name in finding.optimizers)
            and result.gradient in finding.gradients
            and (not finding.modes or result.mode in finding.modes)
            and (not finding.dtypes or result.dtype in finding.dtypes)
            and finding.words in _first(result)
        ):
            return i
    return len(FINDINGS)
