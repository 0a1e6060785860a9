"""Finds out whether a value is computed from the learning rate that a group of an optimizer has at present."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex

_GROUPS = "param_groups"
_SCHEDULER = frozenset(("get_last_lr", "_last_lr", "get_lr"))
_ADDING = frozenset(("append", "extend", "update", "setdefault", "insert"))
_Assigned = tuple[ast.expr, ast.expr]  # what gets a value, and the value


def reads_rate(facts: TraceIndex, value: ast.expr, loop: ast.stmt, owners: set[str]) -> bool:
    """Returns whether a value may depend on the rate: it reads one, or it is computed from a variable of the loop, an
    attribute or a function of the program that does. `owners` are names of the optimizer, its group and its scheduler:
    what a function makes of them counts as a rate."""
    groups = {*owners, *_group_names(facts)}
    waiting: list[ast.AST] = [value]
    seen: set[str] = set()
    while waiting:
        for node in ast.walk(waiting.pop()):
            if _is_rate(node, groups) or _is_of(node, owners):
                return True
            name = _name_of(node)
            if name and name not in seen:
                seen.add(name)
                waiting += _values(facts, name, loop, isinstance(node, ast.Attribute))
            if isinstance(node, ast.Call) and (called := called_name(node)) and f"{called}()" not in seen:
                seen.add(f"{called}()")
                waiting += _functions(facts, called)
    return False


def _group_names(facts: TraceIndex) -> Iterator[str]:
    """Yields the variables that hold a group of an optimizer."""
    for _, tree in facts.trees():
        for target, value in _assigned(tree):
            if _mentions(value, _GROUPS) and not _mentions(value, "lr"):
                yield from _stored(target)


def _is_rate(node: ast.AST, groups: set[str]) -> bool:
    """Returns whether an expression is `group["lr"]`, `group.get("lr")` or what a scheduler has set last."""
    if last_name(node) in _SCHEDULER:
        return True
    if isinstance(node, ast.Subscript):
        holder = node.value
    elif isinstance(node, ast.Call) and called_name(node) == "get" and isinstance(node.func, ast.Attribute):
        holder = node.func.value
    else:
        return False
    return last_name(holder) in groups or _mentions(holder, _GROUPS)


def _is_of(node: ast.AST, owners: set[str]) -> bool:
    """Returns whether a function gets an optimizer or a scheduler, or is a method of it: `rate_of(optimizer)`."""
    if not isinstance(node, ast.Call):
        return False
    given = [*node.args, *(each.value for each in node.keywords)]
    given += [node.func.value] if isinstance(node.func, ast.Attribute) else []
    return any(last_name(each) in owners for each in given)


def _name_of(node: ast.AST) -> str:
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) else ""


def _values(facts: TraceIndex, name: str, loop: ast.stmt, is_attribute: bool) -> Iterator[ast.AST]:
    """Yields what a name may be: the values that the loop gives it, and those that functions other than constructors
    give an attribute or a variable that is not their own."""
    yield from (value for target, value in _assigned(loop) if name in _stored(target))
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name != "__init__" and (is_attribute or _shares(node, name)):
                yield from (value for target, value in _assigned(node) if name in _stored(target))


def _functions(facts: TraceIndex, name: str) -> Iterator[ast.AST]:
    for _, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef) and node.name == name:
                yield node
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
                yield from (node.value for target in node.targets if name in _stored(target))


def _shares(node: ast.AST, name: str) -> bool:
    """Returns whether a function sets a variable that is not its own."""
    return any(isinstance(each, ast.Global | ast.Nonlocal) and name in each.names for each in ast.walk(node))


def _assigned(tree: ast.AST) -> Iterator[_Assigned]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            yield from ((target, node.value) for target in node.targets)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None:
            yield node.target, node.value
        elif isinstance(node, ast.For | ast.comprehension):
            yield node.target, node.iter
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _ADDING:
            yield from ((node.func.value, value) for value in node.args)


def _stored(target: ast.expr) -> set[str]:
    """Returns the names that get a value: of variables, of attributes, and of what an item is set in."""
    if isinstance(target, ast.Tuple | ast.List):
        return {name for part in target.elts for name in _stored(part)}
    if isinstance(target, ast.Subscript | ast.Starred):
        return _stored(target.value)
    return {last_name(target)} - {""}


def _mentions(node: ast.AST, name: str) -> bool:
    return any(last_name(each) == name or (isinstance(each, ast.Constant) and each.value == name)
               for each in ast.walk(node))  # fmt: skip
