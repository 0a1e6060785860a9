"""Finds values that the source puts into a field of a container, by a name that it reads nowhere.

A container is an object of a class with annotated fields, as a dataclass, or a dict whose keys are written as text.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.naming.syntax import called_name
from tensorlens.analysis.trace_index import TraceIndex

_WHOLE = frozenset("asdict astuple _asdict vars fields getattr update".split())  # they read all fields
_EACH = frozenset(("values", "items"))


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
        given = _by_attribute(node, classes)
        unread = given.keys() - read
        if not given:
            given = _by_key(node)
            unread = {name for name in given if texts.count(name) == 1}
        if unread and len(unread) < len(given) and not _shows(nodes, reading, given):
            yield from ((file, field) for field in _fields(given) if field.name in unread)


def _shows(nodes: list[tuple[str, ast.AST]], reading: list[ast.AST], given: dict[str, ast.expr]) -> bool:
    """Returns whether a line may print a container as a whole."""
    holders = {
        ast.unparse(node.value)
        for node in reading
        if (isinstance(node, ast.Attribute) and node.attr in given)
        or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant) and node.slice.value in given)
    }
    shows = ("print", "append", "format")
    calls = (node for _, node in nodes if isinstance(node, ast.Call) and called_name(node) in shows)
    return any(ast.unparse(argument) in holders for call in calls for argument in call.args)


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
