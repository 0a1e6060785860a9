"""Finds the statements of a source that bind a name, and the expressions that put a value into a container."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.line_parts import span_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.records.model import Span
from tensorlens.records.source import column_of, line_at, tree_of


@dataclass(frozen=True, slots=True)
class Assigned:
    """A name and the statement that binds it."""

    name: str
    span: Span


def assigned_to(text: str, made: Span) -> str | None:
    """Returns the name or attribute that the expression at `made` is assigned to: `self.optimizer`."""
    tree = tree_of(text)
    if tree is None:
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and node.lineno <= made.line:
            for target, value in _pairs(node.targets[0], node.value):
                if span_of(value, text, made.file) == made:
                    return plain_name(target)
    return None


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """Returns what an assignment sets to what: each name to its own value in `a, b = f(), g()`."""
    sequence = ast.Tuple | ast.List
    if not isinstance(target, sequence) or not isinstance(value, sequence) or len(target.elts) != len(value.elts):
        return [(target, value)]
    if any(isinstance(each, ast.Starred) for each in (*target.elts, *value.elts)):
        return [(target, value)]
    return list(zip(target.elts, value.elts, strict=True))


_STORING_METHODS = {"append", "appendleft", "add", "extend", "insert", "put", "setdefault", "update"}


def only_store_into(text: str, file: str, target: str) -> Span | None:
    """Finds the expression that puts something into the container `target`; None if several do."""
    tree = tree_of(text)
    if tree is None:
        return None
    places = [
        node for node, container, _ in container_stores(tree, attributes=True) if ast.unparse(container) == target
    ]
    return span_of(places[0], text, file) if len(places) == 1 else None


def container_stores(tree: ast.AST, attributes: bool = False) -> list[tuple[ast.expr, ast.expr, list[ast.expr]]]:
    """Lists the expressions that put values into a container, each with the container and the values, in source
    order. An attribute that is assigned to counts if `attributes` is set."""
    targets = ast.Subscript | ast.Attribute if attributes else ast.Subscript
    stores: list[tuple[ast.expr, ast.expr, list[ast.expr]]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _STORING_METHODS:
            values = [*node.args, *(keyword.value for keyword in node.keywords)]
            stores.append((node, node.func.value, list(items_of(values))))
        elif isinstance(node, ast.Assign) and isinstance(target := node.targets[0], targets):
            stores.append((node.value, target.value, list(items_of([node.value]))))
        elif isinstance(node, ast.AugAssign):
            stores.append((node.value, node.target, list(items_of([node.value]))))
    return sorted(stores, key=lambda entry: (entry[0].lineno, entry[0].col_offset))


def items_of(nodes: list[ast.expr]) -> Iterator[ast.expr]:
    """Yields the expressions; for a list, tuple, set or dict display, or a new object, it yields the items instead."""
    for node in nodes:
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            yield from items_of(node.elts)
        elif isinstance(node, ast.Dict):
            yield from items_of(node.values)
        elif isinstance(node, ast.Call) and _makes_object(node.func):
            yield from items_of([*node.args, *(keyword.value for keyword in node.keywords)])
        else:
            yield node


def _makes_object(function: ast.expr) -> bool:
    """Returns whether a call of `function` makes an object that has the arguments: by its name, a class does."""
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in ("dict", "list", "tuple", "set") or name[:1].isupper()


def assigned_pairs(statement: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yields each target of an assignment with its value: `a, self.b = f(x), None` has two."""
    if not isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign) or statement.value is None:
        return
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        value = statement.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            yield from zip(target.elts, value.elts, strict=True)
        else:
            yield target, value


def receiver(text: str, span: Span) -> str | None:
    """Returns the source text of `x` if `span` begins with an attribute `x.name`."""
    node = _attribute(text, span)
    return None if node is None else ast.unparse(node.value)


def assigned_before(text: str, span: Span) -> Assigned | None:
    """Finds the last assignment above `span` to the variable whose attribute is read there."""
    node, tree = _attribute(text, span), tree_of(text)
    if node is None or tree is None or not isinstance(node.value, ast.Name):
        return None
    name = node.value.id
    nearest: ast.stmt | None = None
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign) and statement.lineno < span.line:
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            bound = {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
            if name in bound and (nearest is None or statement.lineno > nearest.lineno):
                nearest = statement
    return None if nearest is None else Assigned(name, span_of(nearest, text, span.file))


def _attribute(text: str, span: Span) -> ast.Attribute | None:
    """Finds the attribute access that begins where `span` does."""
    tree = tree_of(text)
    if tree is None:
        return None
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or node.lineno != span.line:
            continue
        if column_of(line_at(text, node.lineno), node.col_offset) == span.column:
            return node
    return None
