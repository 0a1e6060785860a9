"""Finds values that the source puts into a field of a container, by a name that it reads nowhere.

A container is an object of a class with annotated fields, as a dataclass, or a dict whose keys are written as text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from tensorlens.analysis.code_around import parent_of, scope_around
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex

_WHOLE = frozenset("asdict astuple _asdict vars fields getattr update".split())  # they read all fields
_EACH = frozenset(("values", "items"))
_Node = tuple[str, ast.AST]  # with its file
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Field:
    """A value that the source gives a field, and what it gives the other fields of the same container."""

    name: str
    value: ast.expr
    others: tuple[ast.expr, ...]


def unread_fields(facts: TraceIndex) -> Iterator[tuple[str, Field]]:
    """Yields the fields that no line of the program reads by name, while lines read others of the same container, each
    with its file. A program that reads all fields of some container is left alone."""
    nodes = [(file, node) for file, tree in facts.trees() for node in ast.walk(tree)]
    classes = {node.name: _annotated(node) for _, node in nodes if isinstance(node, ast.ClassDef)}
    reading = [node for _, node in nodes if isinstance(getattr(node, "ctx", None), ast.Load)]
    read = {node.attr for node in reading if isinstance(node, ast.Attribute)}
    texts = [node.value for _, node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    if any(isinstance(node, ast.Call) and _reads_all(node) for _, node in nodes):
        return
    for file, node in nodes:
        if not isinstance(node, ast.Call | ast.Dict):
            continue
        given = _by_attribute(node, classes)
        unread = given.keys() - read
        if not given:
            given = _by_key(node)
            unread = {name for name in given if texts.count(name) == 1}
        if unread and len(unread) < len(given) and not _is_read_whole(facts, (file, node), nodes, given):
            yield from ((file, field) for field in _fields(given) if field.name in unread)


def _is_read_whole(facts: TraceIndex, container: _Node, nodes: list[_Node], given: dict[str, ast.expr]) -> bool:
    """Returns whether a line may read a container other than by a field that it names: one that shows or keeps it."""
    bases = ((file, node.value) for file, node in nodes if _is_field(node, given))
    waiting = [container, *(use for file, base in bases for use in _uses(facts, nodes, file, base))]
    seen = {node for _, node in waiting}
    for file, node in waiting:
        following = _following(facts, file, node, nodes)
        if following is None:
            return True
        waiting += [(other, each) for other, each in following if each not in seen]
        seen |= {each for _, each in following}
    return False


def _is_read(node: ast.Name | ast.Attribute, name: str | None) -> bool:
    return isinstance(node.ctx, ast.Load) and last_name(node) == name


def _is_field(node: ast.AST, given: dict[str, ast.expr]) -> TypeGuard[ast.Attribute | ast.Subscript]:
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value in given
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load) and node.attr in given


def _following(facts: TraceIndex, file: str, node: ast.AST, nodes: list[_Node]) -> list[_Node] | None:
    """Returns the expressions that have the value of an expression next; None if something else may read it."""
    parent = parent_of(facts, file, node)
    if isinstance(parent, ast.Attribute):
        is_called = isinstance(each := parent_of(facts, file, parent), ast.Call) and each.func is parent
        return None if is_called and not _functions(nodes, parent.attr) else []
    if isinstance(parent, ast.Subscript) and parent.value is node:
        return [] if isinstance(parent.slice, ast.Constant) else None
    if isinstance(parent, ast.Expr | ast.Compare) or (
        isinstance(parent, ast.Tuple) and isinstance(parent_of(facts, file, parent), ast.Return)
    ):
        return []
    if isinstance(parent, ast.Assign | ast.AnnAssign):
        targets = parent.targets if isinstance(parent, ast.Assign) else [parent.target]
        is_plain = all(isinstance(each, ast.Name | ast.Attribute) for each in targets)
        return [use for each in targets for use in _uses(facts, nodes, file, each)] if is_plain else None
    if isinstance(parent, ast.Return):
        name = next((each.name for _, each in nodes if isinstance(each, _Function) and parent in ast.walk(each)), "")
        return [(other, each) for other, each in nodes if called_name(each) == name]
    call = parent_of(facts, file, parent) if isinstance(parent, ast.keyword) else parent
    return _parameters(nodes, call, node) if isinstance(call, ast.Call) else None


def _uses(facts: TraceIndex, nodes: list[_Node], file: str, target: ast.expr) -> list[_Node]:
    """Returns where the function around a name reads it, and where any file reads an attribute of that name."""
    if isinstance(target, ast.Name):
        scope = scope_around(facts, file, target.lineno)
        return [(file, node) for node in ast.walk(scope) if isinstance(node, ast.Name) and _is_read(node, target.id)]
    name = target.attr if isinstance(target, ast.Attribute) else None
    return [(other, node) for other, node in nodes if isinstance(node, ast.Attribute) and _is_read(node, name)]


def _parameters(nodes: list[_Node], call: ast.Call, value: ast.AST) -> list[_Node] | None:
    """Returns where functions of the script read the parameter that a call gives a value to; None if it is unknown."""
    functions, found = _functions(nodes, called_name(call)), list[_Node]()
    for file, function in functions:
        names = [each.arg for each in function.args.args if each.arg != "self"]
        names += [each.arg for each in function.args.kwonlyargs]
        named = next((each.arg for each in call.keywords if each.value is value), None)
        place = call.args.index(value) if named is None and value in call.args else len(names)
        name = named if named in names else next(iter(names[place:]), None)
        if name is None or any(isinstance(each, ast.Starred) for each in call.args):
            return None
        found += [(file, node) for node in ast.walk(function) if isinstance(node, ast.Name) and _is_read(node, name)]
    return found if functions else None


def _functions(nodes: list[_Node], name: str) -> list[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    return [(file, node) for file, node in nodes if isinstance(node, _Function) and node.name == name]


def _fields(given: dict[str, ast.expr]) -> Iterator[Field]:
    for name, value in given.items():
        yield Field(name, value, tuple(each for other, each in given.items() if other != name))


def _by_attribute(node: ast.AST, classes: dict[str, list[str]]) -> dict[str, ast.expr]:
    """Returns the fields of a new object that are read as attributes, with their values."""
    if not isinstance(node, ast.Call):
        return {}
    name = called_name(node)
    named = {each.arg: each.value for each in node.keywords if each.arg is not None}
    if name == "SimpleNamespace":
        return named
    fields = classes.get(name, [])
    found = dict(zip(fields, node.args, strict=False)) | named
    has_star = any(isinstance(each, ast.Starred) for each in node.args)
    return found if fields and not has_star and found.keys() <= set(fields) else {}


def _by_key(node: ast.AST) -> dict[str, ast.expr]:
    """Returns the items of a dict of the source, if all of its keys are written as text."""
    if isinstance(node, ast.Dict):
        texts = [key.value if isinstance(key, ast.Constant) else None for key in node.keys]
        return {text: value for text, value in zip(texts, node.values, strict=True) if isinstance(text, str)}
    return {}


def _annotated(node: ast.ClassDef) -> list[str]:
    has_own = any(isinstance(each, ast.FunctionDef) and each.name in ("__init__", "__iter__") for each in node.body)
    targets = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
    return [] if has_own else [target.id for target in targets if isinstance(target, ast.Name)]


def _reads_all(call: ast.Call) -> bool:
    """Returns whether a call reads the fields of a container that the source does not name: it may be any."""
    name = called_name(call)
    if name in _EACH and isinstance(call.func, ast.Attribute):
        return not isinstance(call.func.value, ast.Call)
    return name in _WHOLE
