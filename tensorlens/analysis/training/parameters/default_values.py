"""Finds default values that a class or function makes once, and that several of its calls take.

So it is with an argument of a constructor, a field of a dataclass, and an argument that a function gives to a
constructor.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, method_of, parent_of
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex

_COMPREHENSIONS = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_MAX_DEPTH = 3
_UNKNOWN = 0  # the place of a field behind those of a base class: any value that is given by place may be its own


@dataclass(frozen=True, slots=True)
class DefaultValue:
    file: str
    holder: ast.ClassDef | ast.FunctionDef
    argument: str
    place: int | None  # among the values that a call gives by place; None: by name only
    value: ast.expr


def default_values(facts: TraceIndex) -> Iterator[DefaultValue]:
    """Yields those of classes and functions that are themselves made once, if the value may be a new object."""
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef | ast.FunctionDef) or function_around(facts, file, node.lineno):
                continue
            found = _of_class(node) if isinstance(node, ast.ClassDef) else _of_function(facts, file, node)
            for argument, place, value in found:
                if value is not None and not any(isinstance(each, ast.Lambda) for each in ast.walk(value)):
                    yield DefaultValue(file, node, argument, place, value)


def is_taken_often(facts: TraceIndex, default: DefaultValue) -> bool:
    """Returns whether the program calls the class or function without the argument in several places, or in a loop."""
    calls = [
        (file, node)
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and _is_of(node, default)
    ]
    return len(calls) > 1 or any(_repeats(facts, file, call) for file, call in calls)


_Default = tuple[str, int | None, ast.expr | None]


def _of_class(holder: ast.ClassDef) -> Iterator[_Default]:
    init = method_of(holder, "__init__")
    if init is not None:
        yield from _of_arguments(init, 1)
    is_dataclass = any("dataclass" in ast.unparse(each) for each in holder.decorator_list)
    bases = [last_name(each) for each in holder.bases]
    if is_dataclass or "NamedTuple" in bases:
        is_known = not bases or bases == ["NamedTuple"]
        fields = [each for each in holder.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
        for place, field in enumerate(fields):
            if "ClassVar" not in ast.unparse(field.annotation):
                yield last_name(field.target), place if is_known else _UNKNOWN, _default_of_field(field.value)


def _default_of_field(value: ast.expr | None) -> ast.expr | None:
    """Returns the value that all objects take: a `default_factory` makes one for each."""
    if isinstance(value, ast.Call) and last_name(value.func) == "field":
        return next((each.value for each in value.keywords if each.arg == "default"), None)
    return value


def _of_function(facts: TraceIndex, file: str, function: ast.FunctionDef) -> Iterator[_Default]:
    """Yields the arguments that a function gives to a class of the program or of `nn`, as one that makes modules."""
    if function.name == "__init__" or isinstance(parent_of(facts, file, function), ast.ClassDef):
        return
    calls = [node for node in ast.walk(function) if isinstance(node, ast.Call) and last_name(node.func)[:1].isupper()]
    given = {
        each.id
        for call in calls
        for part in (*call.args, *(keyword.value for keyword in call.keywords))
        for each in (part.elts if isinstance(part, ast.List | ast.Tuple) else [part])
        if isinstance(each, ast.Name)
    }
    yield from (each for each in _of_arguments(function, 0) if each[0] in given)


def _of_arguments(function: ast.FunctionDef, bound: int) -> Iterator[_Default]:
    given = [*function.args.posonlyargs, *function.args.args]
    first = len(given) - len(function.args.defaults)
    for place, value in enumerate(function.args.defaults, first):
        yield given[place].arg, place - bound, value
    for argument, only in zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True):
        yield argument.arg, None, only


def _is_of(call: ast.Call, default: DefaultValue) -> bool:
    """Returns whether a call takes the default value: also `map(Block, sizes)`."""
    is_map = last_name(call.func) == "map" and bool(call.args)
    called, given = (call.args[0], call.args[1:]) if is_map else (call.func, call.args)
    names = [each.arg for each in call.keywords]
    may_give = any(isinstance(each, ast.Starred) for each in given) or None in names or default.argument in names
    by_place = default.place is not None and len(given) > default.place
    return last_name(called) == default.holder.name and not may_give and not by_place


def _repeats(facts: TraceIndex, file: str, call: ast.Call, depth: int = 0) -> bool:
    """Returns whether a call is in a loop, or in a function that is called in one or in several places."""
    if last_name(call.func) == "map":
        return True
    below: ast.AST = call
    node = parent_of(facts, file, call)
    while node is not None and not isinstance(node, ast.FunctionDef | ast.ClassDef):
        if _is_repeated_in(node, below):
            return True
        below, node = node, parent_of(facts, file, node)
    if not isinstance(node, ast.FunctionDef) or depth > _MAX_DEPTH:
        return False
    outer = parent_of(facts, file, node)
    name = outer.name if isinstance(outer, ast.ClassDef) and node.name == "__init__" else node.name
    calls = [
        (other, each)
        for other, tree in facts.trees()
        for each in ast.walk(tree)
        if isinstance(each, ast.Call) and name in (last_name(each.func), _mapped(each))
    ]
    return len(calls) > 1 or any(_repeats(facts, other, each, depth + 1) for other, each in calls)


def _is_repeated_in(node: ast.AST, part: ast.AST) -> bool:
    """Returns whether a loop runs one of its parts again and again: what it runs over is computed once."""
    if isinstance(node, ast.For):
        return part in node.body
    return isinstance(node, ast.While) or (isinstance(node, _COMPREHENSIONS) and part is not node.generators[0])


def _mapped(call: ast.Call) -> str:
    return last_name(call.args[0]) if last_name(call.func) == "map" and call.args else ""
