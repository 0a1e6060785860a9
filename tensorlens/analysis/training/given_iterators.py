"""Finds the iterator that a name is at some line, as the source writes it: `filter(...)`, `net.parameters()`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, parent_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.given_arguments import argument_of, arguments_of, calls_of
from tensorlens.analysis.training.used_up_iterators import is_iterator

_CONTAINERS = ("list", "tuple", "set", "dict", "sorted")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class GivenIterator:
    file: str
    value: ast.expr
    name: str  # that it is assigned to; empty if a call takes it as an argument
    is_only_argument: bool = False  # the parentheses of a generator are those of the call


def iterator_at(facts: TraceIndex, site: int, name: str) -> GivenIterator | None:
    """Returns what a name at a site is, if that is one value, and an iterator.

    Of an argument it is what one call of the function gives, if all other calls give a container.
    """
    file = facts.trace.sites[site].span.file
    function = function_around(facts, file, facts.trace.sites[site].span.line)
    if function is None or name not in arguments_of(function):
        only = _only_value(facts, file, name)
        return only if only is not None and _is_iterator(facts, file, only.value) else None
    calls = calls_of(facts, file, function)
    if calls is None or any(_stores(node, name) for node in ast.walk(function)):
        return None
    values = [argument_of(facts, file, function, call, name) for call in calls]
    known = [None if value is None else _resolved(facts, file, value) for value in values]
    found = [each for each in known if each is not None and _is_iterator(facts, file, each.value)]
    is_sure = all(each is not None and (each in found or _is_container(each.value)) for each in known)
    return found[0] if len(found) == 1 and is_sure else None


def _resolved(facts: TraceIndex, file: str, value: ast.expr) -> GivenIterator | None:
    name = plain_name(value)
    if name:
        return _only_value(facts, file, name)
    above = parent_of(facts, file, value)
    is_only = isinstance(above, ast.Call) and above.args == [value] and not above.keywords
    return GivenIterator(file, value, "", is_only and isinstance(value, ast.GeneratorExp))


def _only_value(facts: TraceIndex, file: str, name: str) -> GivenIterator | None:
    """Returns what a file assigns to a name, if that is one value, and no function has an argument of that name."""
    nodes = list(ast.walk(facts.tree(file)))
    stored = [node for node in nodes if _stores(node, name)]
    values = [node.value for node in nodes if isinstance(node, ast.Assign) and _assigns(node, name)]
    return GivenIterator(file, values[0], name) if len(stored) == len(values) == 1 else None


def _is_iterator(facts: TraceIndex, file: str, value: ast.expr) -> bool:
    """Returns whether a value can be read once: also the result of a function of the file that returns such a value."""
    functions = {node.name: node for node in ast.walk(facts.tree(file)) if isinstance(node, _Function)}
    if is_iterator(value, set(functions)):
        return True
    called = functions.get(ast.unparse(value.func)) if isinstance(value, ast.Call) else None
    if called is None:
        return False
    inner = list(ast.walk(called))
    returned = [node.value for node in inner if isinstance(node, ast.Return) and node.value is not None]
    is_generator = any(isinstance(node, ast.Yield | ast.YieldFrom) for node in inner)
    return is_generator or (bool(returned) and all(is_iterator(each, set(functions)) for each in returned))


def _is_container(value: ast.expr) -> bool:
    is_call = isinstance(value, ast.Call) and ast.unparse(value.func) in _CONTAINERS
    return is_call or isinstance(value, ast.List | ast.Tuple | ast.ListComp | ast.Set | ast.SetComp)


def _assigns(node: ast.Assign, name: str) -> bool:
    return len(node.targets) == 1 and plain_name(node.targets[0]) == name


def _stores(node: ast.AST, name: str) -> bool:
    is_name = isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Load)
    return is_name and isinstance(node, ast.expr) and plain_name(node) == name
