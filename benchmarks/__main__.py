"""Command line: `python -m benchmarks [NAME ...]`."""

from __future__ import annotations

import argparse
import fnmatch
import gc
import json
import os
import sys
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.cases import Case, Measurement, all_cases

MET, MISSED, MISUSE = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, return the exit status.

    0: every target is met; 1: some target is not; 2: misuse.
    """
    options = _parser().parse_args(arguments)
    cases = list(all_cases())
    if options.list:
        print("\n".join(case.name for case in cases))
        return MET
    unknown = [
        name for name in options.names if not any(_matches(c, [name]) for c in cases)
    ]
    if unknown:
        print(
            f"python -m benchmarks: no benchmark is named {unknown[0]!r}; "
            "--list shows all names",
            file=sys.stderr,
        )
        return MISUSE
    chosen = [case for case in cases if _matches(case, options.names)]
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    results = []
    start = time.monotonic()
    for number, case in enumerate(chosen, 1):
        progress = f"[{number}/{len(chosen)}] {case.name}"
        print(
            f"{progress:40} {time.monotonic() - start:4.0f} s so far",
            file=sys.stderr,
            end="\r" if sys.stderr.isatty() else "\n",
            flush=True,
        )
        results.append((case, case.measure(0.3 if options.quick else 2.0)))
        gc.collect()  # the tables of one case leave no room for those of the next
    print(_table(results))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump([_record(*result) for result in results], file, indent=1)
            file.write("\n")
    return MET if all(_met(*result) for result in results) else MISSED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Compare the speed of reference and tf_impl with named rivals. "
        "Both take turns in one run: ratios count, times depend on the machine. "
        "Exit status: 0 when every target is met, 1 when not, 2 on misuse.",
        epilog="example: python -m benchmarks dense 'small/*/first' --json times.json",
    )
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="a name, its beginning up to a slash, or a pattern; default: all",
    )
    parser.add_argument("--json", metavar="FILE", help="also write the results here")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="fewer repeats: coarser, in a third the time",
    )
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    return parser


def _matches(case: Case, names: Sequence[str]) -> bool:
    return not names or any(
        fnmatch.fnmatchcase(case.name, name)
        or case.name.startswith(name.rstrip("/") + "/")
        for name in names
    )


def _met(case: Case, measurement: Measurement) -> bool:
    return case.target is None or measurement.ratio <= case.target


def _record(case: Case, measurement: Measurement) -> dict[str, Any]:
    return {
        "name": case.name,
        "rival": case.rival,
        "ours_ms": measurement.ours_ms,
        "rival_ms": measurement.rival_ms,
        "ratio": measurement.ratio,
        "target": case.target,
        "met": _met(case, measurement),
    }


def _table(results: Sequence[tuple[Case, Measurement]]) -> str:
    rows: list[tuple[str, ...]] = [
        ("name", "rival", "ours ms", "rival ms", "ratio", "target", "")
    ]
    for case, measurement in results:
        times = [
            "" if time is None else f"{time:.2f}"
            for time in (measurement.ours_ms, measurement.rival_ms)
        ]
        ratio = f"{measurement.ratio:.3f}"
        target = "" if case.target is None else f"{case.target:.2f}"
        verdict = "met" if _met(case, measurement) else "MISSED"
        verdict = verdict if target else ""
        rows.append((case.name, case.rival, *times, ratio, target, verdict))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if 2 <= column <= 5 else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


if __name__ == "__main__":
    sys.exit(main())
