"""What the check found: a table for a person, a dictionary for a machine."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .diagnose import Explanation
from .judge import Failure


@dataclass(frozen=True)
class Result:
    """One optimizer, kind of gradient, dtype and way of running.

    Attributes:
        worst_ratio: worst error as a fraction of the bound, over all slots.
        ratios: the same by slot.
        undecidable: elements for which the rule itself may go either way.
        convention: where the implementation forms its coefficients.
        cost: what that costs in accuracy; empty for the ideal convention.
        failure: the first element that is wrong.
        explanations: what may be wrong, best first; sought in float32 alone.
        notes: what was refused, or could not be seen.
    """

    optimizer: str
    gradient: str
    dtype: str
    mode: str
    device: str
    strategy: str
    conforms: bool
    worst_ratio: float
    ratios: Mapping[str, float]
    undecidable: int
    elements: int
    convention: str = "ideal"
    cost: str = ""
    failure: Failure | None = None
    explanations: tuple[Explanation, ...] = ()
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "optimizer": self.optimizer,
            "gradient": self.gradient,
            "dtype": self.dtype,
            "mode": self.mode,
            "device": self.device,
            "strategy": self.strategy,
            "conforms": self.conforms,
            "worst_ratio": _plain(self.worst_ratio),
            "ratios": {slot: _plain(ratio) for slot, ratio in self.ratios.items()},
            "undecidable": self.undecidable,
            "elements": self.elements,
            "convention": self.convention,
            "cost": self.cost,
            "failure": self.failure.to_dict() if self.failure else None,
            "explanations": [e.to_dict() for e in self.explanations],
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class Report:
    """All results of one check."""

    results: Sequence[Result]
    seed: int
    versions: Mapping[str, str]
    notes: Sequence[str] = field(default=())

    @property
    def conforms(self) -> bool:
        return bool(self.results) and all(r.conforms for r in self.results)

    @property
    def failures(self) -> list[Result]:
        return [r for r in self.results if not r.conforms]

    def to_dict(self) -> dict[str, Any]:
        return {
            "conforms": self.conforms,
            "results": [r.to_dict() for r in self.results],
            "seed": self.seed,
            "versions": dict(self.versions),
            "notes": list(self.notes),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1, allow_nan=False)

    def table(self) -> str:
        """Rows: optimizer and gradient; columns: dtype and mode."""
        columns = list(dict.fromkeys(_column(r) for r in self.results))
        rows: dict[tuple[str, str], dict[tuple[str, str], Result]] = {}
        for r in self.results:
            rows.setdefault((r.optimizer, r.gradient), {})[_column(r)] = r
        cells = [
            ["", "", *(dtype for dtype, _ in columns), ""],
            ["optimizer", "gradient", *(mode for _, mode in columns), "undecidable"],
        ]
        for (name, gradient), found in rows.items():
            undecidable = sum(r.undecidable for r in found.values())
            elements = sum(r.elements for r in found.values())
            cells.append(
                [
                    name,
                    gradient,
                    *(_cell(found.get(column)) for column in columns),
                    f"{undecidable} of {elements}",
                ]
            )
        return _aligned(cells)

    def __str__(self) -> str:
        lines = [self.table(), ""]
        for (sentence, cost), names in self._conventions().items():
            lines.append(f"{', '.join(names)}: {sentence}. {cost}")
        for note, names in self._notes().items():
            lines.append(f"{', '.join(names)}: {note}")
        lines += self.notes
        shown: set[str] = set()
        for r in self.failures:
            if r.optimizer + r.gradient not in shown:
                shown.add(r.optimizer + r.gradient)
                lines += [
                    "",
                    f"FAIL {r.optimizer}, {r.gradient}, {r.dtype}, {r.mode}, {r.device}"
                    + (f", {r.strategy}" if r.strategy != "none" else ""),
                    _indented(str(r.failure)),
                    *(f"  likely cause: {e}" for e in r.explanations[:1]),
                ]
        good = sum(r.conforms for r in self.results)
        lines += ["", f"{good} of {len(self.results)} conform"]
        return "\n".join(lines)

    def _notes(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for r in self.results:
            for note in r.notes:
                names = found.setdefault(note, [])
                if r.optimizer not in names:
                    names.append(r.optimizer)
        return found

    def _conventions(self) -> dict[tuple[str, str], list[str]]:
        found: dict[tuple[str, str], list[str]] = {}
        for r in self.results:
            if r.convention != "ideal" and r.conforms:
                who = f"{r.optimizer} {r.dtype} {r.gradient}"
                names = found.setdefault((r.convention, r.cost), [])
                if who not in names:
                    names.append(who)
        return found


def _column(result: Result) -> tuple[str, str]:
    mode = result.mode
    if result.strategy != "none":
        mode = f"{mode}+{result.strategy}"
    if result.device != "CPU":
        mode = f"{mode}@{result.device}"
    return result.dtype, mode


def _cell(result: Result | None) -> str:
    if result is None:
        return "-"
    if not result.conforms:
        return "FAIL"
    return f"{result.worst_ratio:.2f}" + ("*" if result.convention != "ideal" else "")


def _plain(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)


def _aligned(cells: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i < 2 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    )


def _indented(text: str) -> str:
    return "\n".join("  " + line for line in text.splitlines())
