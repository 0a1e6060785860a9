"""Finds derivatives that are taken by another coordinate than their name says: `u_xx = grad(u_x, t)`.

It reads `u_xx`, `du_dx` and `d2u_dx2`, and follows the names of coordinates, or the columns of one tensor of them. A
name counts if the same function gives a coordinate of this name, or a first derivative by it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Scope = _Function | ast.Module
_FORMS = (
    re.compile(r"d2(?P<of>\w+?)_?d(?P<by>[a-zA-Z])(2|sq)"),
    re.compile(r"d2(?P<of>\w+?)_?d(?P<one>[a-zA-Z])d(?P<two>[a-zA-Z])"),
    re.compile(r"d(?P<of>[a-zA-Z]\w*?)_d(?P<one>[a-zA-Z])"),
    re.compile(r"(?P<of>[a-zA-Z]\w*?)_(?P<one>[a-zA-Z])(?P<two>[a-zA-Z])?"),
    re.compile(r"(?P<of>[uvwphUT])(?P<one>[xyzt])(?P<two>[xyzt])?"),
)
_SPLITS = frozenset("split chunk unbind tensor_split hsplit".split())


@dataclass(frozen=True, slots=True)
class WrongCoordinate:
    """A name says that it is a derivative by `expected`; it is one by `actual`, or of something else than `of`."""

    span: Span
    name: str
    source: str  # what is differentiated
    expected: str
    actual: str


@dataclass(frozen=True, slots=True)
class _Derivative:
    """A call that differentiates `source` by `at`, and the column of the result that is taken."""

    call: ast.Call
    source: str
    at: str
    column: int | None = None


@dataclass(slots=True)
class _Known:
    """The coordinates of a function: which column of a tensor each is."""

    columns: dict[str, dict[str, int]] = field(default_factory=dict)  # of a tensor: letter -> column
    whole: set[str] = field(default_factory=set)  # single letters that something is differentiated by


def wrong_coordinates(facts: TraceIndex) -> Iterator[WrongCoordinate]:
    """Yields these derivatives in the functions of a program."""
    for file, tree in facts.trees():
        helpers = dict(_helpers(tree))
        for scope in ast.walk(tree):
            if isinstance(scope, _Scope):
                yield from _in_scope(facts, file, list(_assignments(scope)), helpers)


def _assignments(scope: ast.AST) -> Iterator[ast.Assign]:
    """Yields the assignments of a function, or of the lines outside functions, in their order."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield node
        elif isinstance(node, ast.stmt) and not isinstance(node, _Scope | ast.ClassDef):
            yield from _assignments(node)


def _helpers(tree: ast.Module) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yields the functions that return what `autograd.grad()` gives, with the places of what they differentiate and of
    what they differentiate it by."""
    for node in ast.walk(tree):
        if isinstance(node, _Function):
            name, arguments, body = node.name, [each.arg for each in node.args.args], ast.Module(node.body, [])
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and len(node.targets) == 1:
            name, arguments = last_name(node.targets[0]), [each.arg for each in node.value.args.args]
            body = ast.Module([ast.Expr(node.value.body)], [])
        else:
            continue
        arguments = arguments[1:] if arguments[:1] == ["self"] else arguments
        calls = [each for each in ast.walk(body) if isinstance(each, ast.Call) and _is_grad(each)]
        given = _roots(calls[0]) if len(calls) == 1 else None
        if given is not None and given[0] in arguments and given[1] in arguments:
            yield name, (arguments.index(given[0]), arguments.index(given[1]))


def _is_grad(call: ast.Call) -> bool:
    """Returns whether a call is one of `autograd.grad()`, with a graph."""
    is_grad = last_name(call.func) == "grad" and "autograd" in ast.unparse(call.func)
    is_bare = isinstance(call.func, ast.Name) and call.func.id == "grad"
    return (is_grad or is_bare) and any(each.arg == "create_graph" for each in call.keywords)


def _roots(call: ast.Call) -> tuple[str, str] | None:
    """Returns the names of what `autograd.grad(u.sum(), x)` differentiates, and by what."""
    named = {each.arg: each.value for each in call.keywords}
    outputs = call.args[0] if call.args else named.get("outputs")
    inputs = call.args[1] if len(call.args) > 1 else named.get("inputs")
    if isinstance(outputs, ast.Call) and isinstance(outputs.func, ast.Attribute) and outputs.func.attr == "sum":
        outputs = outputs.func.value
    if isinstance(inputs, ast.Tuple | ast.List) and len(inputs.elts) == 1:
        inputs = inputs.elts[0]
    return (outputs.id, inputs.id) if isinstance(outputs, ast.Name) and isinstance(inputs, ast.Name) else None


def _in_scope(
    facts: TraceIndex, file: str, assignments: list[ast.Assign], helpers: dict[str, tuple[int, int]]
) -> Iterator[WrongCoordinate]:
    found = list(_named_derivatives(assignments, helpers))
    known = _Known()
    for name, value in _unpacked(assignments) if found else ():
        if len(name) == 1:
            known.columns.setdefault(value[0], {}).setdefault(name.lower(), value[1])
    for name, each in found:
        parts = _parts(name)
        if parts is None or parts[0] != each.source or len(parts[1]) != 1:
            continue
        if each.column is None and len(each.at) == 1:
            known.whole.add(each.at.lower())
        elif each.column is not None:
            known.columns.setdefault(each.at, {}).setdefault(parts[1], each.column)
    for source in _ambiguous(assignments) if found else ():
        known.columns.pop(source, None)
    wrongs = [_wrong(name, each, known) for name, each in found]
    right = {_parts(name) for (name, _), wrong in zip(found, wrongs, strict=True) if wrong is None}
    for (name, each), wrong in zip(found, wrongs, strict=True):
        if wrong is not None and _parts(name) not in right:  # a field may be named like the derivative of another one
            yield WrongCoordinate(facts.span_of(each.call, file), name, each.source, *wrong)


def _ambiguous(assignments: list[ast.Assign]) -> set[str]:
    """Returns the tensors that are set anew, or whose columns get their names in more than one order."""
    places: dict[tuple[str, str], set[int]] = {}
    for name, (source, column) in _unpacked(assignments):
        places.setdefault((source, name.lower()), set()).add(column)
    found = {source for (source, _), columns in places.items() if len(columns) > 1}
    seen: set[str] = set()
    for each in assignments:
        own = {node.id for node in ast.walk(each.targets[0]) if isinstance(node, ast.Name)}
        own -= {node.id for node in ast.walk(each.value) if isinstance(node, ast.Name)}
        found |= own & seen
        seen |= own
    return found


def _wrong(name: str, each: _Derivative, known: _Known) -> tuple[str, str] | None:
    """Returns the coordinate that a name says, and the one that is used, if they differ."""
    parts, source = _parts(name), _parts(each.source)
    if parts is None:
        return None
    expected = ""
    if parts[0] == each.source and len(parts[1]) == 1:
        expected = parts[1]
    elif source is not None and parts[0] == source[0] and len(parts[1]) == 2 and len(source[1]) == 1:
        if source[1] not in parts[1]:
            is_known = parts[1][0] in known.whole and source[1] in known.whole
            return (f"the derivative of `{parts[0]}` by `{parts[1][0]}`", f"`{each.source}`") if is_known else None
        expected = parts[1].replace(source[1], "", 1)
    columns = known.columns.get(each.at, {})
    if not expected:
        return None
    if each.column is None:
        actual = each.at.lower()
        return (expected, actual) if {expected, actual} <= known.whole and expected != actual else None
    other = next((letter for letter, column in columns.items() if column == each.column), None)
    is_known = expected in columns and other is not None and columns[expected] != each.column
    return (expected, other) if is_known and other is not None else None


def _parts(name: str) -> tuple[str, str] | None:
    """Returns the function of a derivative and its coordinates: `u` and `xx` of `u_xx`."""
    for form in _FORMS:
        found = form.fullmatch(name)
        if found is not None:
            parts = found.groupdict()
            by = parts["by"] * 2 if "by" in parts else parts["one"] + (parts.get("two") or "")
            return parts["of"], by.lower()
    return None


def _named_derivatives(
    assignments: list[ast.Assign], helpers: dict[str, tuple[int, int]]
) -> Iterator[tuple[str, _Derivative]]:
    """Yields the names that assignments give to derivatives."""
    env: dict[str, _Derivative] = {}
    for statement in assignments:
        target = statement.targets[0]
        if isinstance(target, ast.Tuple) and len(target.elts) == 1:
            target = target.elts[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        values = _values(statement.value, len(names))
        for each, (value, column) in zip(names, values, strict=False):
            found = _derivative(value, helpers, env)
            if isinstance(each, ast.Name) and found is not None:
                own = found if column is None else _Derivative(found.call, found.source, found.at, column)
                env[each.id] = own
                yield each.id, own


def _values(node: ast.expr, count: int) -> list[tuple[ast.expr, int | None]]:
    """Returns the values of several names: the parts of a tuple, or the columns that a call splits a tensor into."""
    if count == 1:
        return [(node, None)]
    if isinstance(node, ast.Tuple) and len(node.elts) == count:
        return [(each, None) for each in node.elts]
    is_split = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SPLITS
    if is_split and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return [(node.func.value, place) for place in range(count)]
    return []


def _derivative(node: ast.expr, helpers: dict[str, tuple[int, int]], env: dict[str, _Derivative]) -> _Derivative | None:
    if isinstance(node, ast.Name):
        return env.get(node.id)
    if isinstance(node, ast.Subscript):
        inner, column = _derivative(node.value, helpers, env), _column(node.slice)
        if inner is None or column is None:
            return inner if isinstance(node.slice, ast.Constant) else None
        return _Derivative(inner.call, inner.source, inner.at, column) if inner.column is None else None
    if not isinstance(node, ast.Call):
        return None
    if _is_grad(node):
        given = _roots(node)
        return None if given is None else _Derivative(node, *given)
    places = helpers.get(last_name(node.func))
    if places is None or max(places) >= len(node.args) or any(isinstance(a, ast.Starred) for a in node.args):
        return None
    source, at = (node.args[place] for place in places)
    column = next((a.value for a in node.args[2:] if isinstance(a, ast.Constant) and type(a.value) is int), None)
    if not isinstance(source, ast.Name) or not isinstance(at, ast.Name):
        return None
    return _Derivative(node, source.id, at.id, column)


def _column(index: ast.expr) -> int | None:
    """Returns the column that `[:, 1:2]`, `[:, [1]]`, `[:, 1]` or `[..., 1]` takes."""
    last = index.elts[-1] if isinstance(index, ast.Tuple) and len(index.elts) == 2 else None
    if isinstance(last, ast.Slice):
        last = ast.Constant(0) if last.lower is None and last.upper is not None else last.lower
    if isinstance(last, ast.List) and len(last.elts) == 1:
        last = last.elts[0]
    return last.value if isinstance(last, ast.Constant) and type(last.value) is int else None


def _unpacked(assignments: list[ast.Assign]) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yields the names that assignments give to the columns of a tensor: `x, t = xt[:, :1], xt[:, 1:]`."""
    for statement in assignments:
        target = statement.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        for each, (value, place) in zip(names, _values(statement.value, len(names)), strict=False):
            column = _column(value.slice) if isinstance(value, ast.Subscript) else place
            source = value.value if isinstance(value, ast.Subscript) else value
            if isinstance(each, ast.Name) and isinstance(source, ast.Name) and column is not None:
                yield each.id, (source.id, column)
