"""Finds the statements of a custom Function's `backward` that make the gradients which it returns."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tensorlens.analysis.code_around import scope_around, statement_around
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span

_OTHER_SETTING = ast.AugAssign | ast.AnnAssign | ast.NamedExpr | ast.For | ast.comprehension


def wrong_statements(facts: TraceIndex, returned: Span | None, arguments: Iterable[str]) -> list[tuple[str, Span]]:
    """Returns (argument, statement) for arguments of `forward` with a wrong gradient.

    One counts if the gradient is a name that only this statement of `backward` sets, and no other such name is in what
    the value is made from.
    """
    statement = None if returned is None else statement_around(facts, returned)
    if returned is None or not isinstance(statement, ast.Return) or statement.value is None:
        return []
    backward = scope_around(facts, returned.file, statement.lineno)
    forward = _forward_names(facts, returned.file, backward)
    values = statement.value.elts if isinstance(statement.value, ast.Tuple) else [statement.value]
    if any(isinstance(each, ast.Starred) for each in values) or len(values) != len(forward):
        return []
    given = dict(zip(forward, values, strict=True))
    names = [(name, each.id) for name in arguments if isinstance(each := given.get(name), ast.Name)]
    made = {each: statement for _, each in names if (statement := _only_assignment(backward, each)) is not None}
    wrong = made.keys()
    first = {each for each in wrong if not _sources(backward, each) & (wrong - {each})}
    found = {each: (name, facts.span_of(made[each], returned.file)) for name, each in names if each in first}
    return list(found.values())


def _forward_names(facts: TraceIndex, file: str, backward: ast.AST) -> list[str]:
    """Returns the parameters of `forward` that `apply` gives, of the class that a `backward` is in."""
    for node in ast.walk(facts.tree(file)):
        methods = {each.name: each for each in node.body if isinstance(each, ast.FunctionDef)} if isinstance(
            node, ast.ClassDef) else {}  # fmt: skip
        if any(each is backward for each in methods.values()) and "forward" in methods:
            given = methods["forward"].args
            names = [each.arg for each in (*given.posonlyargs, *given.args)]
            return [] if given.vararg else names["setup_context" not in methods :]
    return []


def _only_assignment(scope: ast.AST, name: str) -> ast.Assign | None:
    """Returns the statement that sets a name, if there is only one besides those that set None, and no other changes
    its values."""
    setting = [each for each in ast.walk(scope) if isinstance(each, ast.Assign) and not _is_nothing(each.value)]
    made = [each for each in setting if any(_stores(target, name) for target in each.targets)]
    others = [each for each in ast.walk(scope) if isinstance(each, _OTHER_SETTING) and _stores(each.target, name)]
    changes = [each for each in ast.walk(scope) if _changes(each, name)]
    return made[0] if len(made) == 1 and not others and not changes else None


def _is_nothing(value: ast.expr) -> bool:
    parts = value.elts if isinstance(value, ast.Tuple) else [value]
    return all(isinstance(each, ast.Constant) and each.value is None for each in parts)


def _stores(target: ast.expr, name: str) -> bool:
    return any(isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load)
               for each in ast.walk(target))  # fmt: skip


def _changes(node: ast.AST, name: str) -> bool:
    """Returns whether a node changes the values of a name in place."""
    if isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
        held: ast.expr = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr.endswith("_"):
        held = node.func.value
    else:
        return False
    return any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(held))


def _sources(scope: ast.AST, name: str) -> set[str]:
    """Returns the names that the value of a name is made from, in a function."""
    found, waiting = set[str](), [name]
    for each in waiting:
        for node in ast.walk(scope):
            targets = node.targets if isinstance(node, ast.Assign) else []
            if any(isinstance(one, ast.Name) and one.id == each for target in targets for one in ast.walk(target)):
                value = node.value  # type: ignore[attr-defined]
                read = {one.id for one in ast.walk(value) if isinstance(one, ast.Name)} - found
                found |= read
                waiting += read
    return found
