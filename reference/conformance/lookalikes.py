"""Rules that pass for another: other conventions, and terms with a number to be found.

An edit of one place does not reach these. Each is a pattern of text in the lines of a
rule and what stands there instead, so that one entry serves every rule that has those
lines.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from ..optimizer import Optimizer
from ..rule import Rule, SharedRule
from .mutants import Mutant, functions_of, mutant, parsed

UNKNOWN = "unknown"
"""The name of a number to be found."""


@dataclass(frozen=True)
class Lookalike:
    """Another form of some lines.

    Attributes:
        sentence: what is wrong with it.
        change: what stands where, as regular expression and replacement.
        needs, lacks: patterns that must, and must not, occur in the rule.
    """

    sentence: str
    change: dict[str, str]
    needs: str = ""
    lacks: str = "$^"


_ROOT = r"np\.sqrt\((?P<x>\w+)\) \+ epsilon"
_CORRECTED = r"= \w+ / \(1 - beta_2 \*\* t\)"
_STEP = r"learning_rate \* np\.sqrt\(1 - beta_2 \*\* t\) / \(1 - beta_1 \*\* t\)"
_C1, _C2 = "(1 - beta_1 ** t)", "(1 - beta_2 ** t)"
_VELOCITY = r"^a = momentum \* a - learning_rate \* g$"
_CLASSICAL = r"^w = w \+ a$"
_NESTEROV = r"^w = w \+ momentum \* a - learning_rate \* g$"
_STEPS = r"^a = momentum \* a \+ learning_rate \* g / (?P<d>.+)$"

LOOKALIKES = (
    Lookalike(
        "epsilon is added to the bias-corrected root, not to the raw one (algorithm 1 "
        "of Adam's paper, torch, optax)",
        {_ROOT: rf"np.sqrt(\g<x>) + np.sqrt{_C2} * epsilon"},
        needs=_STEP,
    ),
    Lookalike(
        "epsilon is added to the raw root, not to the bias-corrected one (Adam's "
        "epsilon hat)",
        {_ROOT: rf"np.sqrt(\g<x>) + epsilon / np.sqrt{_C2}"},
        needs=_CORRECTED,
    ),
    Lookalike(
        "epsilon is under the square root, added to the bias-corrected second moment",
        {_ROOT: rf"np.sqrt(\g<x> + {_C2} * epsilon)"},
        needs=_STEP,
    ),
    Lookalike(
        "epsilon is under the square root, added to the raw second moment",
        {_ROOT: rf"np.sqrt(\g<x> + epsilon / {_C2})"},
        needs=_CORRECTED,
    ),
    Lookalike(
        "epsilon is a lower limit of the square root, not added to it",
        {_ROOT: r"np.maximum(np.sqrt(\g<x>), epsilon)"},
    ),
    Lookalike(
        "epsilon is added inside the square root and outside as well",
        {_ROOT: r"np.sqrt(\g<x> + epsilon) + epsilon"},
    ),
    Lookalike(
        "epsilon is squared and under the square root",
        {_ROOT: r"np.sqrt(\g<x> + epsilon ** 2)"},
    ),
    Lookalike(
        "epsilon is squared",
        {r"np\.sqrt\((?P<x>\w+) \+ epsilon\)": r"np.sqrt(\g<x> + epsilon ** 2)"},
    ),
    Lookalike(
        "epsilon accumulates in the second moment",
        {r"^(?P<v>[vnr]) = (?P<sum>.*g \*\* 2)$": r"\g<v> = \g<sum> + epsilon"},
        needs="epsilon",
    ),
    Lookalike(
        "epsilon accumulates in the second moment instead of being added to its root",
        {
            r"^(?P<v>[vnr]) = (?P<sum>.*g \*\* 2)$": r"\g<v> = \g<sum> + epsilon",
            _ROOT: r"np.sqrt(\g<x>)",
        },
    ),
    Lookalike(
        "the moments are multiplied by their bias corrections, not divided",
        {_STEP: f"learning_rate * {_C1} / np.sqrt{_C2}"},
    ),
    Lookalike(
        "the moments are multiplied by their bias corrections, not divided, and "
        "epsilon is added after that",
        {
            _STEP: f"learning_rate * {_C1} / np.sqrt{_C2}",
            _ROOT: rf"np.sqrt(\g<x>) + epsilon / np.sqrt{_C2}",
        },
    ),
    Lookalike(
        "the bias corrections are `beta ** t` instead of `1 - beta ** t`",
        {_STEP: "learning_rate * np.sqrt(beta_2 ** t) / beta_1 ** t"},
    ),
    Lookalike(
        "the bias corrections are `beta ** t` instead of `1 - beta ** t`, and epsilon "
        "is added after that",
        {
            _STEP: "learning_rate * np.sqrt(beta_2 ** t) / beta_1 ** t",
            _ROOT: r"np.sqrt(\g<x>) + epsilon * np.sqrt(beta_2 ** t)",
        },
    ),
    Lookalike(
        "the maximum is taken of the bias-corrected second moment",
        {
            r"^v_hat = np\.maximum\(v_hat, v\)$": (
                f"v_hat = np.maximum(v_hat, v / {_C2})"
            ),
            _STEP: f"learning_rate / {_C1}",
        },
    ),
    Lookalike(
        "the maximum is kept as the second moment too",
        {r"^return \(w, m, v, v_hat\)$": "return (w, m, v_hat, v_hat)"},
    ),
    Lookalike(
        "the infinity norm is corrected for bias, which it does not have",
        {r"\(u \+ epsilon\)": f"(u / {_C2} + epsilon)"},
    ),
    Lookalike(
        "the learning rate is outside the velocity, not in it (torch, optax)",
        {
            _VELOCITY: "a = momentum * a + g",
            _CLASSICAL: "w = w - learning_rate * a",
        },
    ),
    Lookalike(
        "the learning rate is outside the velocity, not in it (torch, optax)",
        {
            _VELOCITY: "a = momentum * a + g",
            _NESTEROV: "w = w - learning_rate * (g + momentum * a)",
        },
    ),
    Lookalike(
        "the learning rate is outside the velocity, not in it",
        {
            _VELOCITY: "a = momentum * a - g",
            _CLASSICAL: "w = w + learning_rate * a",
        },
    ),
    Lookalike(
        "the learning rate is outside the velocity, not in it",
        {
            _VELOCITY: "a = momentum * a - g",
            _NESTEROV: "w = w + learning_rate * (momentum * a - g)",
        },
    ),
    Lookalike(
        "the learning rate is outside the velocity, not in it (torch, optax)",
        {
            _STEPS: r"a = momentum * a + g / \g<d>",
            r"^w = w - a$": "w = w - learning_rate * a",
        },
    ),
    Lookalike(
        "the velocity has the opposite sign",
        {
            _VELOCITY: "a = momentum * a + learning_rate * g",
            _CLASSICAL: "w = w - a",
        },
    ),
    Lookalike(
        "the velocity has the opposite sign",
        {
            _VELOCITY: "a = momentum * a + learning_rate * g",
            _NESTEROV: "w = w - momentum * a - learning_rate * g",
        },
    ),
    Lookalike(
        "the velocity is an average, `momentum * a - (1 - momentum) * g`, not a sum",
        {_VELOCITY: "a = momentum * a - (1 - momentum) * learning_rate * g"},
    ),
    Lookalike(
        "the velocity is an average, `momentum * a + (1 - momentum) * g`, and the "
        "learning rate is outside",
        {
            _VELOCITY: "a = momentum * a + (1 - momentum) * g",
            _CLASSICAL: "w = w - learning_rate * a",
        },
    ),
    Lookalike(
        "the velocity is an average of steps, not a sum",
        {
            _STEPS: r"a = momentum * a + (1 - momentum) * learning_rate * g / \g<d>",
        },
    ),
    Lookalike(
        "the velocity is looked ahead twice: `w + (1 + momentum) * a`",
        {_NESTEROV: "w = w + (1 + momentum) * a"},
    ),
    Lookalike(
        "Nesterov's form is used",
        {_CLASSICAL: "w = w + momentum * a - learning_rate * g"},
    ),
    Lookalike(
        "Nesterov's form is used",
        {
            r"^w = w - a$": r"w = w - momentum * a - (a - momentum * old_a)",
            _STEPS: r"a = momentum * a + learning_rate * g / \g<d>",
        },
    ),
    Lookalike(
        "the old velocity moves the weights",
        {_CLASSICAL: "w = w + old_a"},
    ),
    Lookalike(
        "the running average of squared steps contains the learning rate",
        {
            r"^d = rho \* d \+ \(1 - rho\) \* u \*\* 2$": (
                "d = rho * d + (1 - rho) * (learning_rate * u) ** 2"
            )
        },
    ),
    Lookalike(
        "the momentum is not warmed up by a schedule: `mu` is `beta_1`",
        {r"^mu = .*$": "mu = beta_1", r"^mu_next = .*$": "mu_next = beta_1"},
    ),
    Lookalike(
        "the product of momenta contains the present one twice",
        {r"\(1 - P \* mu_next\)": "(1 - P * mu * mu_next)"},
    ),
    Lookalike(
        "the accumulator is made of the gradient with its shrinkage",
        {r"^n = n \+ g \*\* 2$": "n = n + g_shrunk ** 2"},
        needs="g_shrunk = ",
    ),
)


def lookalikes(optimizer: Optimizer) -> Iterator[Mutant]:
    """The other forms that a rule may have."""
    for rule in functions_of(optimizer).values():
        tree = parsed(rule)
        lines = [ast.unparse(statement) for statement in tree.body]
        for one in LOOKALIKES:
            new = _changed(one, lines)
            if new is not None:
                yield _from_lines(optimizer, rule, tree, lines, new, one.sentence)
        for sentence, new in _more_terms(optimizer, rule, lines):
            yield _from_lines(optimizer, rule, tree, lines, new, sentence)


def _changed(one: Lookalike, lines: list[str]) -> list[str] | None:
    text = "\n".join(lines)
    if not re.search(one.needs, text) or re.search(one.lacks, text):
        return None
    new = list(lines)
    for pattern, replacement in one.change.items():
        found = [i for i, line in enumerate(new) if re.search(pattern, line)]
        if not found:
            return None
        for i in found:
            new[i] = re.sub(pattern, replacement, new[i])
    return new


def _from_lines(
    optimizer: Optimizer,
    rule: Rule | SharedRule,
    tree: ast.FunctionDef,
    lines: list[str],
    new: list[str],
    sentence: str,
    more: tuple[str, ...] = (),
) -> Mutant:
    changed = copy.copy(tree)
    changed.body = ast.parse("\n".join(new)).body
    names = {node.id for node in ast.walk(changed) if isinstance(node, ast.Name)}
    known = {argument.arg for argument in tree.args.args}
    needed = [n for n in ("t", "learning_rate", *more) if n in names - known]
    changed.args = copy.copy(tree.args)
    changed.args.args = [*tree.args.args, *map(ast.arg, needed)]
    differing = [i for i, line in enumerate(new) if line not in lines]
    line = min(differing[0] + 1, len(lines)) if differing else 0
    made = mutant(optimizer, rule, 0, sentence, changed)
    edit = "; ".join(new[i].replace("old_", "old ") for i in differing)
    return replace(made, line=line, edit=edit)


def _more_terms(
    optimizer: Optimizer, rule: Rule | SharedRule, lines: list[str]
) -> Iterator[tuple[str, list[str]]]:
    """Factors that do not belong, the gradient changed on its way in."""
    if "g" not in rule.parameters:
        return
    for change, sentence in (
        ("np.sign(g)", "only the sign of the gradient is used"),
        ("g ** 2", "the gradient is squared"),
    ):
        yield sentence, [f"g = {change}", *lines]
    coefficients = [
        name
        for name in rule.parameters
        if name in optimizer.hyperparameters() and name != "epsilon"
    ]
    for i, line in enumerate(lines):
        target, equals, value = line.partition(" = ")
        if not equals:
            continue
        terms = _terms(value)
        for term in terms:
            for name in coefficients:
                for factor in (name, f"(1 - {name})"):
                    new = value.replace(term, f"{factor} * ({term})", 1)
                    what = f"the factor `{factor}` is too much on `{term}`"
                    yield what, [*lines[:i], f"{target} = {new}", *lines[i + 1 :]]


def _terms(value: str) -> list[str]:
    """The summands of an expression."""
    node: Any = ast.parse(value, mode="eval").body
    terms = []
    while isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        terms.append(ast.unparse(node.right))
        node = node.left
    return [*terms, ast.unparse(node)]


@dataclass(frozen=True)
class Open:
    """A wrong version with a number that is still to be found.

    Attributes:
        sentence: what is wrong, with ``{}`` for the number.
        mutant: the version, whose rules read ``UNKNOWN``.
        starts: where to begin the search.
        lines, present: the lines of the version and of the rule.
    """

    sentence: str
    mutant: Mutant
    starts: tuple[float, ...]
    rule: Rule | SharedRule
    lines: list[str]
    present: list[str]

    def settled(self, value: float) -> Mutant:
        """The version with that number."""
        number = f"{value:.9g}"
        text = number if value >= 0 else f"({number})"
        lines = [re.sub(rf"\b{UNKNOWN}\b", text, line) for line in self.lines]
        sentence = self.sentence.format(number)
        return _from_lines(
            self.mutant.driver,
            self.rule,
            parsed(self.rule),
            self.present,
            lines,
            sentence,
        )


def unknowns(optimizer: Optimizer) -> Iterator[Open]:
    """Versions with a number to be found: a constant, a decay, a factor."""
    for rule in functions_of(optimizer).values():
        tree = parsed(rule)
        lines = [ast.unparse(statement) for statement in tree.body]
        for sentence, starts, new in _with_numbers(optimizer, rule, lines):
            made = _from_lines(optimizer, rule, tree, lines, new, sentence, (UNKNOWN,))
            yield Open(sentence, made, starts, rule, new, lines)


def _with_numbers(
    optimizer: Optimizer, rule: Rule | SharedRule, lines: list[str]
) -> Iterator[tuple[str, tuple[float, ...], list[str]]]:
    for name in rule.parameters:
        value = _number(optimizer, name)
        if value is None:
            continue
        starts = (
            tuple(value * 10.0**k for k in (0, -1, 1, -2, 2, -3, 3))
            if value
            else (
                0.0,
                *(10.0**-k for k in range(8)),
            )
        )
        everywhere = [_renamed(line, name, UNKNOWN) for line in lines]
        yield f"{name} is {{}}, whatever is given", starts, everywhere
        for i, line in enumerate(lines):
            here = _renamed(line, name, UNKNOWN)
            if here != line and everywhere[:i] + everywhere[i + 1 :] != (
                lines[:i] + lines[i + 1 :]
            ):
                new = [*lines[:i], here, *lines[i + 1 :]]
                yield f"{name} is {{}} in this line, whatever is given", starts, new
        scaled = [_renamed(line, name, f"({UNKNOWN} * {name})") for line in lines]
        factors = (1.0, 0.5, 2.0, 0.1, 10.0, 0.01, 100.0)
        yield f"{name} is multiplied by {{}}", factors, scaled
    if "g" not in rule.parameters:
        return
    for sentence, change, right in (
        ("an L2 term is added to the gradient: `g + {} * w`", "g + unknown * w", 0.0),
        ("the gradient is multiplied by {}", "unknown * g", 1.0),
        ("`{}` is added to the gradient", "g + unknown", 0.0),
        ("the gradient is multiplied by `1 + {} * w`", "g * (1 + unknown * w)", 0.0),
        (
            "the gradient is raised to the power {}",
            "np.sign(g) * np.abs(g) ** unknown",
            1.0,
        ),
    ):
        yield sentence, (right, right + 0.01), [f"g = {change}", *lines]
    for limit in (1.0, 0.5, 5.0, 10.0, 0.1, 100.0):
        change = f"np.maximum(np.minimum(g, {UNKNOWN}), -{UNKNOWN})"
        sentence = "each element of the gradient is clipped to `{}`"
        yield sentence, (limit, limit), [f"g = {change}", *lines]
    final = next((i for i, line in enumerate(lines) if line.startswith("return")), None)
    if final is None:
        return
    for sentence, change in (
        (
            "the weight decays: `- learning_rate * {} * w`",
            f"w - learning_rate * {UNKNOWN} * old_w",
        ),
        (
            "the weight decays, not times the learning rate: `- {} * w`",
            f"w - {UNKNOWN} * old_w",
        ),
        (
            "the weight decays after the update: `w * (1 - learning_rate * {})`",
            f"w * (1 - learning_rate * {UNKNOWN})",
        ),
        ("the weight decays after the update: `w * (1 - {})`", f"w * (1 - {UNKNOWN})"),
        ("`{}` is added to the weight", f"w + {UNKNOWN}"),
    ):
        new = [*lines[:final], f"w = {change}", *lines[final:]]
        yield sentence, (0.0, 0.01), new
    for i, line in enumerate(lines):
        sums = re.match(r"^(\w+) = (\w+) \+ (.+)$", line)
        if sums and sums[1] == sums[2] and sums[1] != "w":
            name, _, more = sums.groups()
            for sentence, change in (
                (
                    f"`{name}` is a running average with `{{}}`, not a sum",
                    f"{UNKNOWN} * {name} + (1 - {UNKNOWN}) * ({more})",
                ),
                (
                    f"`{name}` decays by `{{}}`, it is not a sum",
                    f"{UNKNOWN} * {name} + {more}",
                ),
            ):
                new = [*lines[:i], f"{name} = {change}", *lines[i + 1 :]]
                yield sentence, (1.0, 0.9), new


def _renamed(line: str, name: str, new: str) -> str:
    target, equals, value = line.partition(" = ")
    if not equals:
        return line
    return target + equals + re.sub(rf"\b{name}\b", new, value)


def _number(optimizer: Optimizer, name: str) -> float | None:
    value = optimizer.constants.get(name, getattr(optimizer, name, None))
    known = name in optimizer.constants or name in optimizer.hyperparameters()
    if known and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    return None
