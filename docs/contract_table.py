"""The tables of `docs/contract.md`: which lines of the contract a library breaks.

    python docs/contract_table.py tf_keras tf_impl

examines every optimizer of these libraries (`tensorflow_addons` needs a TensorFlow that
it is made for, 2.15 at most) and writes their sections of the page anew.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

PAGE = Path(__file__).with_name("contract.md")
LIBRARIES = ("tf_keras", "tensorflow_addons", "tf_impl")
SIGNS = {"held": "", "broken": "broken", "not applicable": "n/a"}


KERAS = ("SGD", "Adagrad", "Adadelta", "RMSprop", "Adam", "Adamax", "Nadam", "Ftrl")
ADDONS = (
    "AdaBelief",
    "COCOB",
    "ConditionalGradient",
    "LAMB",
    "LazyAdam",
    "NovoGrad",
    "ProximalAdagrad",
    "RectifiedAdam",
    "Yogi",
)


def classes(library: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield the optimizers of a library, with the arguments that they need."""
    from tf_impl.legacy_keras import keras

    legacy = keras.optimizers.legacy
    if library == "tf_keras":
        for name in KERAS:
            yield getattr(legacy, name), {}
    elif library == "tf_impl":
        import tf_impl

        for cls in tf_impl.OPTIMIZERS.values():
            yield cls, {}
    else:
        import tensorflow_addons

        addons = tensorflow_addons.optimizers
        for name in ADDONS:
            yield getattr(addons, name), {}
        for name in ("AdamW", "SGDW"):
            yield getattr(addons, name), {"weight_decay": 0.125}
        for name in ("Lookahead", "MovingAverage", "SWA"):
            yield getattr(addons, name), {"optimizer": legacy.SGD(0.5)}


def section(library: str) -> str:
    """Return the tables of a library, as Markdown."""
    from tf_impl.contract import LINES, contract

    found = []
    for cls, arguments in classes(library):
        print(cls.__name__, file=sys.stderr)
        found.append(contract(cls, arguments))
    versions = ", ".join(f"{name} {x}" for name, x in found[0].versions.items())
    if library == "tensorflow_addons":
        versions += f", tensorflow_addons {sys.modules[library].__version__}"
    by_name = [{line.name: line for line in each.lines} for each in found]
    names = [definition.name for definition in LINES]
    uneven = [n for n in names if any(lines[n].verdict != "held" for lines in by_name)]
    parts = [f"With {versions}; {len(found)} classes, {len(names)} lines."]
    if not any(each.broken for each in found):
        parts.append(f"Nothing is broken: {', '.join(x.optimizer for x in found)}.")
    elif uneven:
        header = ["line", *(each.optimizer for each in found)]
        rows = [[n, *(SIGNS[lines[n].verdict] for lines in by_name)] for n in uneven]
        parts.append(_table([header, *rows]))
        parts.append("All other lines are held by all. What was found:")
    noted = []
    for name in uneven:
        seen: dict[str, list[str]] = {}
        for each, lines in zip(found, by_name, strict=True):
            if lines[name].verdict != "held":
                text = f"{SIGNS[lines[name].verdict]}: {_plain(lines[name].found)}"
                seen.setdefault(text, []).append(each.optimizer)
        noted += [f"* {name}"]
        noted += [f"  * {', '.join(who)}: {text}" for text, who in seen.items()]
    return "\n\n".join([*parts, "\n".join(noted)]).strip()


def _plain(text: str) -> str:
    return re.sub(r"<[\w.]+\.(\w+) object at 0x\w+>", r"a \1", text).replace("|", "\\|")


def _table(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


def promised() -> str:
    """Return the list of all lines and why each matters."""
    from tf_impl.contract import LINES

    return "\n".join(f"* **{line.name}**: {line.why}" for line in LINES)


def put(page: str, name: str, text: str) -> str:
    """Return the page with `text` between the marks of a section."""
    marks = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, start, rest = page.partition(marks[0])
    _, end, after = rest.partition(marks[1])
    if not start or not end:
        raise ValueError(f"the page has no section {name}")
    return f"{before}{marks[0]}\n{text}\n{marks[1]}{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("libraries", nargs="+", choices=LIBRARIES)
    options = parser.parse_args()
    from tf_impl.port import two_logical_cpus

    two_logical_cpus()
    page = put(PAGE.read_text("utf-8"), "promised", promised())
    for library in options.libraries:
        page = put(page, library, section(library))
        PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
