"""Wrong rules, made from the right one by single edits.

They measure how good the scenarios are (a mutant that no scenario tells from the rule
is a missing scenario, or no mutant), and, turned round, they are the diagnosis: the
edit that reproduces what an implementation did is what is wrong with it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from ..optimizer import Optimizer, State
from ..rule import Rule, SharedRule
from .scenarios import Program

OLD = "old_"

CANNOT_RUN = (ArithmeticError, AttributeError, IndexError, TypeError, ValueError)
"""What a version that makes no sense raises: its shapes do not fit, say."""

Functions = Mapping[str, Rule | SharedRule]
"""Rules by the names of their functions; ``"shared"`` is the one of the step."""

Resume = Callable[[Optimizer, State], tuple[Optimizer, State]]
"""What a resume makes of an optimizer and its state."""


@dataclass(frozen=True)
class Mutant:
    """One wrong version of an optimizer.

    Attributes:
        sentence: what is wrong, for people.
        line: the line of the rule, from 1; 0 where it is the driver's.
        edit: the line as it reads in the mutant; empty where it is the driver's.
        driver: the optimizer, wrong where the driver is.
        functions: the rules that are edited.
        program: the inputs as this version takes them.
        resumed: what goes wrong where a run is resumed.
        tree: the function that is edited.
        needs: the letters without which the driver cannot be wrong in this way.
        whole: what it does to a weight depends on all others.
        few_rows: it takes too long where a gradient has many rows.
    """

    sentence: str
    line: int
    edit: str
    driver: Optimizer
    functions: Functions = field(default_factory=dict)
    program: Callable[[Program], Program] = lambda program: program
    resumed: Resume | None = None
    tree: ast.FunctionDef | None = None
    needs: frozenset[str] = frozenset()
    whole: bool = False
    few_rows: bool = False

    @cached_property
    def optimizer(self) -> Optimizer:
        """The wrong version; drives like the right one."""
        if not self.functions:
            return self.driver
        return with_rules(self.driver, self.functions)


@lru_cache(maxsize=8)
def rule_mutants(optimizer: Optimizer) -> tuple[Mutant, ...]:
    """Every single edit of the rule, and of the shared rule if there is one."""
    return tuple(
        mutant(optimizer, rule, line, sentence, tree)
        for rule in functions_of(optimizer).values()
        for line, sentence, tree in edits(rule)
    )


def renames(optimizer: Optimizer) -> Iterator[Mutant]:
    """Two names swapped; one read differently everywhere, as ``t`` by ``t + 1``."""
    for rule in functions_of(optimizer).values():
        names = [n for n in rule.parameters if n not in ("w", "g")]
        for i, name in enumerate(names):
            for other in names[i + 1 :]:
                sentence = f"`{name}` and `{other}` are swapped"
                yield _renamed(optimizer, rule, {name: other, other: name}, sentence)
        for name in rule.parameters:
            for new in [*_variants(name), *rule.parameters]:
                if new == name or (new in rule.parameters and name in ("w", "g")):
                    continue
                sentence = f"`{new}` stands wherever the rule has `{name}`"
                yield _renamed(optimizer, rule, {name: new}, sentence)


def _renamed(
    optimizer: Optimizer,
    rule: Rule | SharedRule,
    change: Mapping[str, str],
    sentence: str,
) -> Mutant:
    tree = parsed(rule)
    before = [ast.unparse(statement) for statement in tree.body]
    tree = _Renamed(change).visit(tree)
    after = [ast.unparse(statement) for statement in tree.body]
    lines = [n for n, (a, b) in enumerate(zip(before, after, strict=True), 1) if a != b]
    return mutant(optimizer, rule, min(lines, default=0), sentence, tree)


def pairs(optimizer: Optimizer, line: int) -> Iterator[Mutant]:
    """Two likely edits within one line of the rule."""
    rule = optimizer.rule
    for _, first, tree in edits(rule, only_line=line, likely=True):
        for _, second, twice in edits(rule, tree=tree, only_line=line, likely=True):
            sentence = f"{first}; {second}"
            yield mutant(optimizer, rule, line, sentence, twice)


def functions_of(optimizer: Optimizer) -> dict[str, Rule | SharedRule]:
    """The rules that an optimizer selects, by name."""
    functions: dict[str, Rule | SharedRule] = {
        rule.function.__name__: rule for rule in optimizer.variants
    }
    if optimizer.shared:
        functions["shared"] = optimizer.shared
    return functions


def parsed(rule: Rule | SharedRule) -> ast.FunctionDef:
    """The function of a rule."""
    tree = ast.parse(rule.source).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return tree


def mutant(
    optimizer: Optimizer,
    rule: Rule | SharedRule,
    line: int,
    sentence: str,
    tree: ast.FunctionDef,
) -> Mutant:
    """The optimizer with one rule replaced by an edited one."""
    edited = replace(rule, function=compiled(rule, tree))
    edit = shown(tree.body[line - 1]) if line else ""
    name = "shared" if isinstance(rule, SharedRule) else tree.name
    return Mutant(sentence, line, edit, optimizer, {name: edited}, tree=tree)


def shown(node: ast.AST) -> str:
    """Code as people read it."""
    return ast.unparse(node).replace(OLD, "old ")


def redefined(optimizer: Optimizer, **attributes: Any) -> Optimizer:
    """The same hyperparameters in a class that differs in some attributes."""
    cls = type(optimizer)
    new = type(cls.__name__, (cls,), {"__module__": cls.__module__, **attributes})
    return new(**{f.name: getattr(optimizer, f.name) for f in fields(optimizer)})


def with_rules(optimizer: Optimizer, functions: Functions) -> Optimizer:
    """The same hyperparameters in a class with other rules of the same names."""
    base: Any = type(optimizer)
    rules = {n: r for n, r in functions.items() if isinstance(r, Rule)}

    def chosen(right: Rule) -> Rule:
        return rules.get(right.function.__name__, right)

    attributes: dict[str, Any] = {
        "rule": property(lambda self: chosen(base.rule.fget(self))),
        "rule_for": lambda self, shape: chosen(base.rule_for(self, shape)),
        "variants": property(lambda self: tuple(map(chosen, base.variants.fget(self)))),
    }
    if "shared" in functions:
        attributes["shared"] = functions["shared"]
    return redefined(optimizer, **attributes)


def compiled(rule: Rule | SharedRule, tree: ast.FunctionDef) -> Callable[..., Any]:
    """The function, with the old values of its state at hand."""
    parameters = [argument.arg for argument in tree.args.args]
    state = [n for n in (*rule.slots, "w") if n in parameters]
    kept = [ast.parse(f"{OLD}{name} = {name}").body[0] for name in state]
    function = copy.copy(tree)
    function.body = [*kept, *tree.body]
    module = ast.fix_missing_locations(ast.Module([function], []))
    scope = {"np": np, **rule.function.__globals__}
    exec(compile(module, f"<mutant of {rule.function.__name__}>", "exec"), scope)
    return scope[tree.name]


class _Renamed(ast.NodeTransformer):
    def __init__(self, change: Mapping[str, str]) -> None:
        self.change = change

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if node.id in self.change and isinstance(node.ctx, ast.Load):
            return _expression(self.change[node.id])
        return node


def _variants(name: str) -> list[str]:
    if name == "t":
        return ["(t - 1)", "(t + 1)"]
    if name in ("w", "g"):
        return [f"(-{name})"]
    return [f"(1 - {name})", f"np.sqrt({name})", f"{name} ** 2"]


Edit = tuple[int, str, ast.FunctionDef]


def edits(
    rule: Rule | SharedRule,
    tree: ast.FunctionDef | None = None,
    only_line: int | None = None,
    *,
    likely: bool = False,
) -> Iterator[Edit]:
    """Single edits, each once: the line, what is wrong, and the function.

    Args:
        rule: the rule that is edited.
        tree: the function to start from; default that of the rule.
        only_line: leave all other lines alone.
        likely: without those that nobody makes by mistake.
    """
    tree = tree or parsed(rule)
    seen: set[tuple[str, ...]] = set()
    before = [ast.unparse(statement) for statement in tree.body]
    for edit in _all_edits(rule, tree, only_line, likely):
        after = tuple(
            old if new is same else ast.unparse(new)
            for new, same, old in zip(edit[2].body, tree.body, before, strict=True)
        )
        if after not in seen and list(after) != before:
            seen.add(after)
            yield edit


def _all_edits(
    rule: Rule | SharedRule, tree: ast.FunctionDef, only_line: int | None, likely: bool
) -> Iterator[Edit]:
    scope = list(rule.parameters)
    state = {n for n in (*rule.slots, "w") if n in rule.parameters}
    assigned: set[str] = set()
    for index, statement in enumerate(tree.body):
        if isinstance(statement, ast.Assign):
            if only_line in (None, index + 1):
                old = [OLD + n for n in sorted(state & assigned)]
                yield from _in_statement(tree, index, [*scope, *old], likely)
                yield from _whole_statements(tree, index, state)
            for name in _targets(statement):
                assigned.add(name)
                if name not in scope:
                    scope.append(name)
        elif isinstance(statement, ast.Return) and only_line is None:
            yield from _returns(tree, index, state)


def _targets(statement: ast.Assign) -> list[str]:
    names = ast.walk(statement.targets[0])
    return [node.id for node in names if isinstance(node, ast.Name)]


def _in_statement(
    tree: ast.FunctionDef, index: int, scope: Sequence[str], likely: bool
) -> Iterator[Edit]:
    statement = tree.body[index]
    assert isinstance(statement, ast.Assign)
    yield from _moved_epsilon(tree, index)
    for place, node in enumerate(ast.walk(statement.value)):
        for new in _replacements(node, scope, likely):
            changed = copy.deepcopy(statement)
            old = list(ast.walk(changed.value))[place]
            changed.value = _Swap(old, new).visit(changed.value)
            sentence = _sentence(node, new, shown(changed))
            yield index + 1, sentence, with_line(tree, index, changed)
    for name in _coefficients_read_twice(statement, scope):
        for other in [*scope, f"(1 - {name})"]:
            if other != name and other not in ("w", "g"):
                changed = _Renamed({name: other}).visit(copy.deepcopy(statement))
                sentence = f"`{other.replace(OLD, 'old ')}` instead of every `{name}`"
                sentence = f"{sentence}: the line is `{shown(changed)}`"
                yield index + 1, sentence, with_line(tree, index, changed)


def _coefficients_read_twice(
    statement: ast.Assign, scope: Sequence[str]
) -> dict[str, None]:
    read = [n.id for n in ast.walk(statement.value) if isinstance(n, ast.Name)]
    targets = _targets(statement)
    names = [n for n in read if read.count(n) > 1 and n in scope and n not in targets]
    return dict.fromkeys(n for n in names if n not in ("w", "g"))


class _Swap(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self.old, self.new = old, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.old else self.generic_visit(node)


_MISSING: dict[type, str] = {
    ast.Add: "the term `{}` is missing",
    ast.Sub: "the term `- {}` is missing",
    ast.Mult: "the factor `{}` is missing",
    ast.Div: "the division by `{}` is missing",
    ast.Pow: "the power `** {}` is missing",
}


def _sentence(old: ast.AST, new: ast.AST, after: str) -> str:
    was, now = ast.unparse(old), shown(new)
    what = f"`{_short(now)}` instead of `{_short(was)}`"
    if isinstance(old, ast.BinOp):
        left, right = ast.unparse(old.left), ast.unparse(old.right)
        if now == left:
            what = _MISSING[type(old.op)].format(_short(right))
        elif now == right and isinstance(old.op, ast.Add | ast.Mult):
            what = _MISSING[type(old.op)].format(_short(left))
    elif isinstance(old, ast.Call) and now in map(ast.unparse, old.args):
        function = _FUNCTIONS.get(ast.unparse(old.func).removeprefix("np."))
        what = f"the {function} of `{_short(now)}` is missing" if function else what
    return f"{what}: the line is `{after}`"


_FUNCTIONS = {
    "sqrt": "square root",
    "abs": "absolute value",
    "sign": "sign",
    "maximum": "maximum",
    "minimum": "minimum",
}


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _replacements(
    node: ast.AST, scope: Sequence[str], likely: bool
) -> Iterator[ast.expr]:
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
        if not likely:
            text = f"({left}) {_symbol(node.op)} ({right})"
            yield from map(_expression, _wrapped(text))
    elif isinstance(node, ast.Name):
        for name in scope:
            if name != node.id:
                yield ast.Name(name, ast.Load())
        if node.id == "t":
            yield from map(_expression, ("(t - 1)", "(t + 1)"))
        else:
            wrapped = _wrapped(node.id)[: 2 if likely else None]
            yield from map(_expression, (f"1 - {node.id}", *wrapped))
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
        if len(node.args) == 1 and not likely:
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
            inside = ast.parse(f"{text[:-1]} + epsilon)").body[0]
            mutated = with_line(tree, earlier, inside)
            here = ast.unparse(tree.body[index]).replace(ast.unparse(node), name, 1)
            mutated.body[index] = ast.parse(here).body[0]
            sentence = "epsilon is inside the maximum instead of added to it"
            yield earlier + 1, sentence, mutated


def _short(text: str) -> str:
    """Without ``np.`` and outer brackets."""
    if "old " not in text:
        text = ast.unparse(_expression(text))
    return text.replace("np.", "")


def with_line(
    tree: ast.FunctionDef, index: int, statement: ast.stmt
) -> ast.FunctionDef:
    """The function with another statement in one place."""
    changed = copy.copy(tree)
    changed.body = [*tree.body]
    changed.body[index] = statement
    return changed


def _line_edit(tree: ast.FunctionDef, index: int, sentence: str, text: str) -> Edit:
    statement = ast.parse(text).body[0]
    return index + 1, sentence, with_line(tree, index, statement)


def _whole_statements(
    tree: ast.FunctionDef, index: int, state: set[str]
) -> Iterator[Edit]:
    """The assignment left out, limited by the old value, or made one line later."""
    statement = tree.body[index]
    assert isinstance(statement, ast.Assign)
    name = ast.unparse(statement.targets[0])
    if name not in state:
        return
    yield _line_edit(tree, index, f"`{name}` is not updated", f"{name} = {name}")
    value = ast.unparse(statement.value)
    for function in ("maximum", "minimum"):
        sentence = f"the {function} of `{name}` and its old value is taken"
        text = f"{name} = np.{function}({OLD}{name}, {value})"
        yield _line_edit(tree, index, sentence, text)
    following = tree.body[index + 1]
    if isinstance(following, ast.Assign):
        swapped = with_line(tree, index, following)
        swapped.body[index + 1] = statement
        read = ast.unparse(following.targets[0])
        sentence = f"`{read}` is computed before `{name}`, from its old value"
        yield index + 1, sentence, swapped


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
