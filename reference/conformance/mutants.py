"""Wrong rules, made from the right one by single edits.

They measure how good the scenarios are (a mutant that no scenario tells from the rule
is a missing scenario, or no mutant), and, turned round, they are the diagnosis: the
edit that reproduces what an implementation did is what is wrong with it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..gradients import IndexedSlices, deduplicate
from ..optimizer import Arithmetic, Optimizer, State
from ..rule import Rule, SharedRule
from ..schedules import LearningRateSchedule
from ..sparse import POLICIES
from .rounding import BFLOAT16
from .scenarios import Program

OLD = "old_"


@dataclass(frozen=True)
class Mutant:
    """One wrong version of an optimizer.

    Attributes:
        sentence: what is wrong, for people.
        line: the line of the rule, from 1; 0 where it is the driver's.
        edit: the line as it reads in the mutant; empty where it is the driver's.
        optimizer: the wrong version; drives like the right one.
        functions: the mutated functions by role, ``"rule"`` or ``"shared"``.
        program: the inputs as this version takes them.
    """

    sentence: str
    line: int
    edit: str
    optimizer: Optimizer
    functions: dict[str, Callable[..., Any]]
    program: Callable[[Program], Program] = lambda program: program


@lru_cache(maxsize=8)
def rule_mutants(optimizer: Optimizer) -> tuple[Mutant, ...]:
    """Every single edit of the rule, and of the shared rule if there is one."""
    return tuple(
        _mutant(optimizer, role, rule, line, sentence, tree)
        for role, rule in _functions(optimizer).items()
        for line, sentence, tree in _edits(rule)
    )


def renames(optimizer: Optimizer) -> list[Mutant]:
    """One name read differently everywhere, as ``t`` by ``t + 1``."""
    mutants = []
    for role, rule in _functions(optimizer).items():
        tree = _parsed(rule)
        for name in rule.parameters:
            for new in [*_variants(name), *rule.parameters]:
                if new == name or (new in rule.parameters and name in ("w", "g")):
                    continue
                renamed = _Renamed(name, new).visit(copy.deepcopy(tree))
                ast.fix_missing_locations(renamed)
                sentence = f"`{new}` stands wherever the rule has `{name}`"
                mutants.append(_mutant(optimizer, role, rule, 0, sentence, renamed))
    return mutants


def pairs(optimizer: Optimizer, line: int) -> Iterator[Mutant]:
    """Two edits within one line of the rule."""
    rule = optimizer.rule
    for _, first, tree in _edits(rule, only_line=line):
        for _, second, twice in _edits(rule, tree=tree, only_line=line):
            sentence = f"{first}; {second}"
            yield _mutant(optimizer, "rule", rule, line, sentence, twice)


def _functions(optimizer: Optimizer) -> dict[str, Rule | SharedRule]:
    functions: dict[str, Rule | SharedRule] = {"rule": optimizer.rule}
    if optimizer.shared:
        functions["shared"] = optimizer.shared
    return functions


def _parsed(rule: Rule | SharedRule) -> ast.FunctionDef:
    tree = ast.parse(rule.source).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return tree


def _mutant(
    optimizer: Optimizer,
    role: str,
    rule: Rule | SharedRule,
    line: int,
    sentence: str,
    tree: ast.FunctionDef,
) -> Mutant:
    function = _compiled(rule, tree)
    mutated = replace(rule, function=function)
    attribute: Any = mutated if role == "shared" else property(lambda self: mutated)
    edit = ast.unparse(tree.body[line - 1]).replace(OLD, "old ") if line else ""
    return Mutant(
        sentence, line, edit, _with(optimizer, **{role: attribute}), {role: function}
    )


def _with(optimizer: Optimizer, **attributes: Any) -> Optimizer:
    """The same hyperparameters in a class that differs in some attributes."""
    cls = type(optimizer)
    new = type(cls.__name__, (cls,), {"__module__": cls.__module__, **attributes})
    return new(**{f.name: getattr(optimizer, f.name) for f in fields(optimizer)})


def _compiled(rule: Rule | SharedRule, tree: ast.FunctionDef) -> Callable[..., Any]:
    """The function, with the old values of its state at hand."""
    tree = copy.deepcopy(tree)
    state = [n for n in (*rule.slots, "w") if n in rule.parameters]
    kept = [ast.parse(f"{OLD}{name} = {name}").body[0] for name in state]
    tree.body = [*kept, *tree.body]
    module = ast.fix_missing_locations(ast.Module([tree], []))
    scope: dict[str, Any] = {"np": np}
    exec(compile(module, f"<mutant of {rule.function.__name__}>", "exec"), scope)
    return scope[tree.name]


class _Renamed(ast.NodeTransformer):
    def __init__(self, name: str, new: str) -> None:
        self.name, self.new = name, new

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id == self.name and isinstance(node.ctx, ast.Load):
            return ast.parse(self.new, mode="eval").body
        return node


def _variants(name: str) -> list[str]:
    if name == "t":
        return ["(t - 1)", "(t + 1)"]
    if name in ("w", "g"):
        return [f"(-{name})"]
    return [f"(1 - {name})", f"np.sqrt({name})", f"{name} ** 2"]


Edit = tuple[int, str, ast.FunctionDef]


def _edits(
    rule: Rule | SharedRule,
    tree: ast.FunctionDef | None = None,
    only_line: int | None = None,
) -> Iterator[Edit]:
    tree = tree or _parsed(rule)
    original = ast.unparse(tree)
    seen = {original}
    for edit in _all_edits(rule, tree, only_line):
        text = ast.unparse(edit[2])
        if text not in seen:
            seen.add(text)
            yield edit


def _all_edits(
    rule: Rule | SharedRule, tree: ast.FunctionDef, only_line: int | None
) -> Iterator[Edit]:
    scope = list(rule.parameters)
    state = {n for n in (*rule.slots, "w") if n in rule.parameters}
    assigned: set[str] = set()
    for index, statement in enumerate(tree.body):
        line = index + 1
        if isinstance(statement, ast.Assign):
            wanted = only_line in (None, line)
            if wanted:
                old = [OLD + n for n in state if n in assigned]
                yield from _in_statement(tree, index, [*scope, *old])
                yield from _whole_statements(tree, index, state)
            target = statement.targets[0]
            assert isinstance(target, ast.Name)
            assigned.add(target.id)
            if target.id not in scope:
                scope.append(target.id)
        elif isinstance(statement, ast.Return) and only_line is None:
            yield from _returns(tree, index, state)


def _in_statement(
    tree: ast.FunctionDef, index: int, scope: Sequence[str]
) -> Iterator[Edit]:
    statement = tree.body[index]
    assert isinstance(statement, ast.Assign)
    yield from _moved_epsilon(tree, index)
    for place, node in enumerate(ast.walk(statement.value)):
        for new in _replacements(node, scope):
            mutated = copy.deepcopy(tree)
            changed = mutated.body[index]
            assert isinstance(changed, ast.Assign)
            old = list(ast.walk(changed.value))[place]
            changed.value = _Swap(old, new).visit(changed.value)
            ast.fix_missing_locations(mutated)
            after = ast.unparse(changed).replace(OLD, "old ")
            yield index + 1, _sentence(node, new, after), mutated


class _Swap(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


def _sentence(old: ast.AST, new: ast.AST, after: str) -> str:
    was, now = ast.unparse(old), ast.unparse(new).replace(OLD, "old ")
    if isinstance(old, ast.BinOp) and now in (
        ast.unparse(old.left),
        ast.unparse(old.right),
    ):
        what = f"`{was}` is only `{now}`"
    else:
        what = f"`{now}` instead of `{was}`"
    return f"{what}: the line is `{after}`"


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _replacements(node: ast.AST, scope: Sequence[str]) -> Iterator[ast.expr]:
    if isinstance(node, ast.Name) and node.id == "np":
        return
    if isinstance(node, ast.BinOp):
        left, right = ast.unparse(node.left), ast.unparse(node.right)
        if isinstance(node.op, ast.Pow):
            yield node.left
        else:
            for operator in (ast.Add(), ast.Sub(), ast.Mult(), ast.Div()):
                if type(operator) is not type(node.op):
                    yield ast.BinOp(node.left, operator, node.right)
            yield node.left
            yield node.right
            if isinstance(node.op, ast.Sub | ast.Div):
                yield ast.BinOp(node.right, node.op, node.left)
        yield from map(_expression, _wrapped(f"({left}) {_symbol(node.op)} ({right})"))
    elif isinstance(node, ast.Name):
        for name in scope:
            if name != node.id:
                yield ast.Name(name, ast.Load())
        if node.id == "t":
            yield from map(_expression, ("(t - 1)", "(t + 1)"))
        else:
            yield from map(_expression, (f"1 - {node.id}", *_wrapped(node.id)))
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        for value in {0, 1, 2, node.value + 1, node.value - 1} - {node.value}:
            yield ast.Constant(value)
    elif isinstance(node, ast.Call):
        yield from node.args
        name = ast.unparse(node.func)
        arguments = ", ".join(map(ast.unparse, node.args))
        other = {"np.maximum": "np.minimum", "np.minimum": "np.maximum"}.get(name)
        if other:
            yield _expression(f"{other}({arguments})")
        if len(node.args) == 1:
            yield from map(_expression, _wrapped(ast.unparse(node)))
    elif isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Compare):
        left, right = ast.unparse(node.left), ast.unparse(node.comparators[0])
        for kind, sign in ((ast.LtE, "<="), (ast.Gt, ">")):
            if not isinstance(node.ops[0], kind):
                yield _expression(f"{left} {sign} {right}")


def _wrapped(text: str) -> list[str]:
    return [
        f"np.sqrt({text})",
        f"({text}) ** 2",
        f"np.abs({text})",
        f"np.sign({text})",
    ]


def _symbol(operator: ast.operator) -> str:
    symbols = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "**"}
    return symbols[type(operator)]


def _moved_epsilon(tree: ast.FunctionDef, index: int) -> Iterator[Edit]:
    statement = tree.body[index]
    text = ast.unparse(statement)
    names = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name)}
    if "epsilon" not in names:
        return
    for node in ast.walk(statement):
        moved = _other_side_of_root(node)
        if moved is None:
            continue
        new_text = text.replace(ast.unparse(node), moved, 1)
        side = "under" if moved.startswith("np.sqrt(") else "outside"
        sentence = (
            f"epsilon is {side} the square root: `{_short(moved)}` instead of "
            f"`{_short(ast.unparse(node))}`"
        )
        yield _line_edit(tree, index, sentence, new_text)
    for node in ast.walk(statement):
        if _adds_epsilon(node):
            yield from _epsilon_in_maximum(tree, index, node)


def _other_side_of_root(node: Any) -> str | None:
    if _adds_epsilon(node) and _is_root(node.left):
        return f"np.sqrt({ast.unparse(node.left.args[0])} + epsilon)"
    if _is_root(node) and _adds_epsilon(node.args[0]):
        return f"(np.sqrt({ast.unparse(node.args[0].left)}) + epsilon)"
    return None


def _adds_epsilon(node: Any) -> bool:
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add)
        and ast.unparse(node.right) == "epsilon"
    )


def _is_root(node: Any) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "np.sqrt"


def _epsilon_in_maximum(tree: ast.FunctionDef, index: int, node: Any) -> Iterator[Edit]:
    name = ast.unparse(node.left)
    for earlier in range(index):
        statement = tree.body[earlier]
        if not isinstance(statement, ast.Assign):
            continue
        text = ast.unparse(statement)
        if text.startswith(f"{name} = np.maximum(") and text.endswith(")"):
            mutated = copy.deepcopy(tree)
            mutated.body[earlier] = ast.parse(f"{text[:-1]} + epsilon)").body[0]
            here = ast.unparse(mutated.body[index]).replace(ast.unparse(node), name, 1)
            mutated.body[index] = ast.parse(here).body[0]
            sentence = "epsilon is inside the maximum instead of added to it"
            yield earlier + 1, sentence, ast.fix_missing_locations(mutated)


def _short(text: str) -> str:
    text = text.replace("np.", "")
    while text.startswith("(") and text.endswith(")"):
        text = text[1:-1]
    return text


def _line_edit(tree: ast.FunctionDef, index: int, sentence: str, text: str) -> Edit:
    mutated = copy.deepcopy(tree)
    mutated.body[index] = ast.parse(text).body[0]
    return index + 1, sentence, ast.fix_missing_locations(mutated)


def _whole_statements(
    tree: ast.FunctionDef, index: int, state: set[str]
) -> Iterator[Edit]:
    """The assignment left out, or made one line later."""
    statement = tree.body[index]
    assert isinstance(statement, ast.Assign)
    name = ast.unparse(statement.targets[0])
    if name not in state:
        return
    mutated = copy.deepcopy(tree)
    mutated.body[index] = ast.parse(f"{name} = {name}").body[0]
    yield index + 1, f"`{name}` is not updated", ast.fix_missing_locations(mutated)
    following = tree.body[index + 1]
    if isinstance(following, ast.Assign):
        mutated = copy.deepcopy(tree)
        body = mutated.body
        body[index], body[index + 1] = body[index + 1], body[index]
        read = ast.unparse(following.targets[0])
        sentence = f"`{read}` is computed before `{name}`, from its old value"
        yield index + 1, sentence, ast.fix_missing_locations(mutated)


def _returns(tree: ast.FunctionDef, index: int, state: set[str]) -> Iterator[Edit]:
    """State that is computed and not kept."""
    statement = tree.body[index]
    assert isinstance(statement, ast.Return) and statement.value is not None
    names = ast.unparse(statement.value).strip("()").split(", ")
    for name in names:
        if name in state and name != "w":
            kept = [OLD + n if n == name else n for n in names]
            sentence = f"the new `{name}` is used and not kept"
            yield _line_edit(tree, index, sentence, f"return {', '.join(kept)}")


# The driver and the sparse side.


def driver_mutants(optimizer: Optimizer) -> list[Mutant]:
    """What can be wrong around the rule: counting, schedules, duplicates, rows."""
    made: list[tuple[str, dict[str, Any]]] = [
        ("t is one too large", {"coefficients": _counted(1)}),
        ("t is one too small", {"coefficients": _counted(-1)}),
        ("the step count is kept in bfloat16", {"coefficients": _counted_coarsely}),
        ("the schedule is read at t + 1", {"coefficients": _schedule_ahead}),
        ("an empty sparse gradient is skipped", {"advance": _skipping_empty}),
        ("indices are shifted by one row", {"advance": _shifted}),
        *((what, {"summed": _with_duplicates(f)}) for what, f in _DUPLICATES.items()),
    ]
    mutants = [
        Mutant(sentence, 0, "", _with(optimizer, **attributes), {})
        for sentence, attributes in made
    ]
    for name in POLICIES:
        rows, other = name.replace("_", " "), replace(optimizer, sparse=name)
        if str(other.policy) != str(optimizer.policy):
            sentence = f"a sparse gradient changes {rows}, not {optimizer.policy}"
            mutants.append(Mutant(sentence, 0, "", other, {}))
        other = replace(optimizer, decay_rows=name)
        if other.rule is not optimizer.rule:
            sentence = f"a sparse gradient decays {rows}"
            mutants.append(Mutant(sentence, 0, "", other, {}))
    frozen = Mutant(
        "the learning rate of the first step is kept",
        0,
        "",
        optimizer,
        {},
        lambda program: replace(
            program,
            learning_rates={},
            hyperparameters={
                name: value(0) if isinstance(value, LearningRateSchedule) else value
                for name, value in program.hyperparameters.items()
            },
        ),
    )
    return [*mutants, frozen]


def _with_duplicates(
    treat: Callable[[IndexedSlices], IndexedSlices],
) -> Callable[..., Any]:
    def summed(self: Optimizer, g: Any, arithmetic: Arithmetic) -> Any:
        if not isinstance(g, IndexedSlices):
            return g
        return treat(replace(g, values=arithmetic.tensor(g.values)))

    return summed


def _counted(shift: int) -> Callable[..., Any]:
    def coefficients(
        self: Optimizer, iterations: int, arithmetic: Arithmetic
    ) -> dict[str, Any]:
        named = Optimizer.coefficients(self, iterations, arithmetic)
        return {**named, "t": arithmetic.coefficient(iterations + 1 + shift, "t")}

    return coefficients


def _counted_coarsely(
    self: Optimizer, iterations: int, arithmetic: Arithmetic
) -> dict[str, Any]:
    named = Optimizer.coefficients(self, iterations, arithmetic)
    t = float(BFLOAT16.round(iterations + 1))
    return {**named, "t": arithmetic.coefficient(t, "t")}


def _schedule_ahead(
    self: Optimizer, iterations: int, arithmetic: Arithmetic
) -> dict[str, Any]:
    named = Optimizer.coefficients(self, iterations, arithmetic)
    ahead = Optimizer.coefficients(self, iterations + 1, arithmetic)
    return {**named, "learning_rate": ahead["learning_rate"]}


Advanced = tuple[list[Any], State]


def _skipping_empty(
    self: Optimizer,
    weights: Sequence[Any],
    gradients: Sequence[Any],
    state: State,
    *others: Any,
) -> Advanced:
    kept = [
        None if isinstance(g, IndexedSlices) and np.size(g.indices) == 0 else g
        for g in gradients
    ]
    return Optimizer.advance(self, weights, kept, state, *others)


def _shifted(
    self: Optimizer,
    weights: Sequence[Any],
    gradients: Sequence[Any],
    state: State,
    *others: Any,
) -> Advanced:
    moved = [
        replace(g, indices=(np.asarray(g.indices) + 1) % w.shape[0])
        if isinstance(g, IndexedSlices)
        else g
        for w, g in zip(weights, gradients, strict=True)
    ]
    return Optimizer.advance(self, weights, moved, state, *others)


def _first_kept(g: IndexedSlices) -> IndexedSlices:
    rows, first = np.unique(g.indices, return_index=True)
    return replace(g, values=g.values[first], indices=rows)


def _last_kept(g: IndexedSlices) -> IndexedSlices:
    reverse = slice(None, None, -1)
    return _first_kept(
        replace(g, values=g.values[reverse], indices=np.asarray(g.indices)[reverse])
    )


def _averaged(g: IndexedSlices) -> IndexedSlices:
    total = deduplicate(g)
    _, counts = np.unique(g.indices, return_counts=True)
    column = counts.reshape((-1,) + (1,) * (total.values.ndim - 1))
    return replace(total, values=total.values / column.astype(float))


_DUPLICATES: dict[str, Callable[[IndexedSlices], IndexedSlices]] = {
    "the first of several rows with one index is kept, not their sum": _first_kept,
    "the last of several rows with one index is kept, not their sum": _last_kept,
    "rows with one index are averaged, not summed": _averaged,
}
