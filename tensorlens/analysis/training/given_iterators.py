"""Finds the iterator that a name is at some line, as the source writes it: `filter(...)`, `net.parameters()`."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around, parent_of
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
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
    if function is None or name not in _arguments(function):
        only = _only_value(facts, file, name)
        return only if only is not None and _is_iterator(facts, file, only.value) else None
    calls = _calls_of(facts, file, function)
    if calls is None or any(_stores(node, name) for node in ast.walk(function)):
        return None
    values = [_argument(facts, file, function, call, name) for call in calls]
    known = [None if value is None else _resolved(facts, file, value) for value in values]
    found = [each for each in known if each is not None and _is_iterator(facts, file, each.value)]
    is_sure = all(each is not None and (each in found or _is_container(each.value)) for each in known)
    return found[0] if len(found) == 1 and is_sure else None


def _calls_of(facts: TraceIndex, file: str, function: _Function) -> list[ast.Call] | None:
    """Returns the calls of a function by its name; None if they are not all, or may be those of another function."""
    trees = [tree for _, tree in facts.trees()]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    if sum(isinstance(node, _Function) and node.name == function.name for node in nodes) != 1:
        return None
    is_method = isinstance(parent_of(facts, file, function), ast.ClassDef)
    kind, part = (ast.Attribute, "attr") if is_method else (ast.Name, "id")
    uses = [node for node in nodes if isinstance(node, kind) and getattr(node, part) == function.name]
    calls = [node for node in nodes if isinstance(node, ast.Call) and node.func in uses]
    own = [node for node in ast.walk(facts.tree(file)) if isinstance(node, ast.Call) and node.func in uses]
    return own if len(uses) == len(calls) == len(own) else None


def _arguments(function: _Function) -> list[str]:
    given = function.args
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def _argument(facts: TraceIndex, file: str, function: _Function, call: ast.Call, name: str) -> ast.expr | None:
    """Returns what a call gives for an argument of a function; None if the source does not show it."""
    placed = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    if any(isinstance(each, ast.Starred) for each in call.args) or any(each.arg is None for each in call.keywords):
        return None
    named = [each.value for each in call.keywords if each.arg == name]
    if named or name not in placed:
        return named[0] if named else None
    place = placed.index(name) - _is_bound(facts, file, function, call)
    return call.args[place] if 0 <= place < len(call.args) else None


def _is_bound(facts: TraceIndex, file: str, function: _Function, call: ast.Call) -> bool:
    """Returns whether a call of a method gives it its first argument by the object that it belongs to."""
    holder = parent_of(facts, file, function)
    decorators = {ast.unparse(each) for each in function.decorator_list}
    if not isinstance(holder, ast.ClassDef) or "staticmethod" in decorators:
        return False
    is_of_class = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value) == holder.name
    return "classmethod" in decorators or not is_of_class


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
