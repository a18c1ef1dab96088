"""The map of dialects for people: side by side, and from one library to another."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import product
from typing import Any

import numpy as np

from .. import OPTIMIZERS
from ..dialects import DIALECTS, Dialect
from ..optimizer import Arithmetic, Optimizer, State
from .check import changes_rate, rule_class
from .convention import ideal
from .judge import Recording, judge
from .port import Setting, Snapshot
from .ports import NotInstalled, port_of
from .ports.base import NamedPort
from .rounding import FLOAT64, IEEE
from .scenarios import Program, programs
from .simulate import simulate

SEEN = 2.0**-20
"""The relative difference that an example must show; float64 rounds at 2**-53."""

GRADIENTS = (1.0, 0.0, -0.5, 1e-3, 1e-7)
"""The gradients of which examples are made."""


def side_by_side(name: str) -> str:
    """The optimizers of this name, and those that follow the rule of this name.

    Raises:
        ValueError: the map has none.
    """
    wanted = name.lower()
    lines = [x for x in DIALECTS if wanted in (x.name.lower(), x.rule.lower())]
    if not lines:
        known = sorted({line.name.lower() for line in DIALECTS})
        raise ValueError(f"the map has no {name!r}; it has {', '.join(known)}")
    cards = [_card(line) for line in lines]
    labels = list(dict.fromkeys(label for card in cards for label in card))
    cells = [[label, *(card.get(label, "") for card in cards)] for label in labels]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    rows = [
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]
    notes = [f"{line.target}: {line.differs}" for line in lines if line.differs]
    return "\n".join([*rows, "", *dict.fromkeys(notes)]).rstrip()


def _card(line: Dialect) -> dict[str, str]:
    card = {"": line.target, "rule": line.rule or "none here"}
    if line.options:
        card["with"] = _listed(line.options)
    if line.theirs:
        card["there"] = _listed(line.theirs)
    if not line.rule:
        return card
    try:
        port = port_of(line)
    except NotInstalled as missing:
        return {**card, "learning_rate": str(missing)}
    for name in _numbers(line):
        if name in port.places:
            card[name] = _with_default(port, port.places[name])
    return card


def _numbers(line: Dialect) -> list[str]:
    """The hyperparameters and options of a rule, and its weight decay if it has one."""
    cls = OPTIMIZERS[line.rule]
    of_the_driver = {f.name for f in fields(Optimizer)} - {"learning_rate"}
    decays = "weight_decay" in line.instance or any(
        f.name == "weight_decay" and f.default is not None for f in fields(cls)
    )
    found = [f.name for f in fields(cls) if f.name not in of_the_driver]
    return [*found, *["weight_decay"] * decays]


def _with_default(port: NamedPort, place: str) -> str:
    default = port.default(place)
    return place if default is inspect.Parameter.empty else f"{place}={default}"


def _listed(options: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in options.items())


@dataclass(frozen=True)
class Conversion:
    """What makes an optimizer of one library equal one of another.

    Attributes:
        source, target: as ``"torch:Adam"``.
        arguments: for the target; ``None`` where none make them equal.
        remark: what holds only in part, or the term that differs.
        example: where none do, a smallest run on which they part.
    """

    source: str
    target: str
    arguments: Mapping[str, Any] | None
    remark: str = ""
    example: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def __str__(self) -> str:
        if self.arguments is None:
            head = f"no {self.target} equals {self.source}"
        else:
            name = self.target.partition(":")[2]
            shown = ", ".join(f"{n}={v!r}" for n, v in self.arguments.items())
            head = f"{name}({shown})"
        return "\n".join(filter(None, (head, self.remark, self.example)))


def convert(source: str, target: str, given: Mapping[str, Any]) -> Conversion:
    """The arguments that make ``target`` equal ``source`` with those that are given.

    Equal means: within the rounding bound of float64, dense, on every scenario. Sparse
    gradients are compared where both take them.

    Args:
        source, target: as ``"tf_keras:Adam"``.
        given: arguments of the source, under its names or ours; the others are its
            defaults.

    Raises:
        ValueError: a name or an argument that is not known, or a missing library.
    """
    optimizer, followed = _as_rule(source, given)
    nearest: list[Optimizer] = []
    remarks = []
    for line in _lines(target):
        port = port_of(line)
        other = _counterpart(optimizer, followed, line, port) if line.rule else None
        remarks.append(line.differs)
        if other is None:
            continue
        nearest.append(other)
        equal, while_constant = _equal(optimizer, other)
        if while_constant:
            names = [n for n in _numbers(line) if n in port.places]
            values = {n: getattr(other, n) for n in names}
            remarks = []
            if not equal or followed.constant_rate or line.constant_rate:
                remarks.append("equal while the learning rate is constant")
            if not _equal_sparse(optimizer, other):
                remarks.append(
                    f"for dense gradients: sparse ones change {optimizer.policy} there "
                    f"and {other.policy} here"
                )
            remark = "; ".join(remarks)
            return Conversion(source, target, port.given(values), remark)
    if nearest:
        remarks += [followed.differs, _rules_of(source, optimizer, nearest[0])]
    remark = next(filter(None, remarks), "")
    example = _smallest_example(optimizer, nearest[0]) if nearest else ""
    return Conversion(source, target, None, remark, example)


def _rules_of(source: str, optimizer: Optimizer, nearest: Optimizer) -> str:
    """The names of two rules, which say what differs; nothing where they are one."""
    theirs, ours = (o.rule.function.__name__ for o in (optimizer, nearest))
    return f"it follows {ours}, {source} {theirs}" if ours != theirs else ""


def _lines(target: str) -> list[Dialect]:
    lines = [line for line in DIALECTS if line.target == target]
    if not lines:
        raise ValueError(
            f"the map has no {target}; it has {', '.join(x.target for x in DIALECTS)}"
        )
    return lines


def _as_rule(source: str, given: Mapping[str, Any]) -> tuple[Optimizer, Dialect]:
    """The rule that an optimizer follows with these arguments."""
    lines = _lines(source)
    for line in lines:
        if not line.rule:
            continue
        port = port_of(line)
        values = {
            ours: port.default(place)
            for ours, place in port.places.items()
            if ours in _numbers(line)
        }
        theirs = {n: v for n, v in given.items() if n not in values}
        if unknown := set(theirs) - set(port.parameters):
            raise ValueError(
                f"{source} does not take {', '.join(sorted(unknown))}; it takes "
                f"{', '.join(port.parameters)}"
            )
        values |= port.ours(theirs) | {n: given[n] for n in given if n in values}
        if missing := [n for n, v in values.items() if v is inspect.Parameter.empty]:
            raise ValueError(
                f"{source} has no default for {', '.join(missing)}: use --set"
            )
        values = {n: v for n, v in values.items() if v is not None}
        if all(values.get(n, value) == value for n, value in line.options.items()):
            return rule_class(line.rule)(**{**values, **line.options}), line
    raise ValueError(f"no rule here says what {source} does: {lines[0].differs}")


def _counterpart(
    optimizer: Optimizer, followed: Dialect, line: Dialect, port: NamedPort
) -> Optimizer | None:
    """The rule of a line, with the numbers of ``optimizer`` as far as it takes them."""
    cls = rule_class(line.rule)
    ours = _numbers(followed)
    values = {
        name: value
        for name in _numbers(line)
        if name in ours
        and name in port.places
        and (value := getattr(optimizer, name)) is not None
    }
    if "weight_decay" in _numbers(line):
        values.setdefault("weight_decay", 0.0)
    if any(values.get(name, value) != value for name, value in line.options.items()):
        return None
    try:
        return cls(**{**values, **line.options})
    except (TypeError, ValueError):
        return None


def _equal(optimizer: Optimizer, other: Optimizer) -> tuple[bool, bool]:
    """Whether two rules are equal, always and while the learning rate is constant."""
    always = constant = True
    for program in programs(optimizer, Setting(FLOAT64), 0):
        if program.iterations:
            continue
        dense = tuple(w for w in program.weights if w.kind == "dense")
        same = _agree(optimizer, other, replace(program, weights=dense))
        always &= same
        constant &= same or changes_rate(program)
    return always, constant


def _equal_sparse(optimizer: Optimizer, other: Optimizer) -> bool:
    whole = programs(optimizer, Setting(FLOAT64), 0, quick=True)[0]
    sparse = tuple(w for w in whole.weights if w.kind == "sparse")
    return _agree(optimizer, other, replace(whole, weights=sparse))


def _agree(optimizer: Optimizer, other: Optimizer, program: Program) -> bool:
    """Whether a run of one lies within the bound of the other, by its weights alone."""
    given = program.hyperparameters
    run = simulate(replace(optimizer, **given), program, FLOAT64)
    nothing: tuple[dict, ...] = ({},) * len(program.weights)
    seen = [
        Snapshot(snapshot.weights, State(step, nothing))
        for step, snapshot in enumerate(run.snapshots)
    ]
    scores = judge(
        Recording(program, seen),
        replace(other, **given),
        ideal(FLOAT64),
        Setting(FLOAT64),
        IEEE,
        to_the_end=False,
    )
    return all(score.conforms for score in scores.values())


def _smallest_example(optimizer: Optimizer, other: Optimizer) -> str:
    """The shortest run of one weight, from 1, on which two rules part most."""
    for length in range(1, 5):
        found = []
        for gradients in product(GRADIENTS, repeat=length):
            pair = [_weight_after(rule, gradients) for rule in (optimizer, other)]
            moved = max(abs(w - 1) for w in pair)
            apart = abs(pair[0] - pair[1])
            if moved and apart > SEEN * moved:
                found.append((apart / moved, gradients, pair))
        if found:
            _, gradients, pair = max(found)
            shown = ", ".join(f"{g:g}" for g in gradients)
            return (
                f"from w = 1 with the gradient{'s' * (length > 1)} {shown} they are at "
                f"w = {pair[0]:.12g} and w = {pair[1]:.12g}"
            )
    return _example_of_rate(optimizer, other)


def _example_of_rate(optimizer: Optimizer, other: Optimizer) -> str:
    """They part once the learning rate changes: here after the first step."""
    pair = []
    for rule in (optimizer, other):
        w, state = rule.run(np.ones(1), [np.ones(1)])
        half = rule.coefficients(0, Arithmetic())["learning_rate"] / 2
        slower = replace(rule, learning_rate=half)
        pair.append(float(slower.step(w, np.ones(1), state)[0][0]))
    if pair[0] == pair[1]:
        return ""
    return (
        "from w = 1 with the gradients 1, 1, and half the learning rate at the second, "
        f"they are at w = {pair[0]:.12g} and w = {pair[1]:.12g}"
    )


def _weight_after(optimizer: Optimizer, gradients: Sequence[float]) -> float:
    w, _ = optimizer.run(np.ones(1), [np.array([g]) for g in gradients])
    return float(w[0])
