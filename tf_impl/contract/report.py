"""What an examination found: a table for a person, a dictionary for a machine."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

HELD, BROKEN, NOT_APPLICABLE = "held", "broken", "not applicable"


@dataclass(frozen=True)
class Line:
    """One line of the contract.

    Attributes:
        name: what is promised.
        verdict: `"held"`, `"broken"` or `"not applicable"`.
        why: why it matters, in a sentence.
        found: what was seen: the failure, why the line does not apply, or a remark.
        reproduction: a program that fails where the line is broken; else empty.
    """

    name: str
    verdict: str
    why: str
    found: str = ""
    reproduction: str = ""


@dataclass(frozen=True)
class Contract:
    """All lines of the contract, for one class."""

    optimizer: str
    lines: Sequence[Line]
    versions: Mapping[str, str]

    @property
    def held(self) -> bool:
        """Whether no line is broken."""
        return not self.broken

    @property
    def broken(self) -> list[Line]:
        return [line for line in self.lines if line.verdict == BROKEN]

    def to_dict(self) -> dict[str, Any]:
        return {
            "optimizer": self.optimizer,
            "held": self.held,
            "lines": [asdict(line) for line in self.lines],
            "versions": dict(self.versions),
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1)

    def table(self) -> str:
        """One row for each line: what is promised, the verdict, what was seen."""
        cells = [
            ("line", "", "found"),
            *((x.name, x.verdict, x.found) for x in self.lines),
        ]
        wide = [max(len(row[i]) for row in cells) for i in range(2)]
        return "\n".join(
            f"{name:{wide[0]}}  {verdict:{wide[1]}}  {found}".rstrip()
            for name, verdict, found in cells
        )

    def __str__(self) -> str:
        parts = [self.table()]
        for line in self.broken:
            parts += [
                "",
                f"BROKEN {line.name}: {line.found}",
                f"  {line.why}",
                textwrap.indent(line.reproduction, "    "),
            ]
        counts = [f"{sum(x.verdict == v for x in self.lines)} {v}" for v in VERDICTS]
        versions = ", ".join(f"{name} {v}" for name, v in self.versions.items())
        return "\n".join(
            [*parts, "", f"{self.optimizer}: {', '.join(counts)}", versions]
        )


VERDICTS = (HELD, BROKEN, NOT_APPLICABLE)
