"""Finds what the calls of a function of the program give for its arguments, as the source writes it."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.trace_index import TraceIndex

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def calls_of(facts: TraceIndex, file: str, function: _Function) -> list[ast.Call] | None:
    """Returns the calls of a function by its name; None if they are not all, or may be those of another function.

    Those of a constructor are the calls of its class.
    """
    nodes = [node for _, tree in facts.trees() for node in ast.walk(tree)]
    holder = parent_of(facts, file, function)
    named: _Function | ast.ClassDef = function
    if isinstance(holder, ast.ClassDef) and function.name == "__init__":
        named = holder
    if sum(isinstance(node, _Function | ast.ClassDef) and node.name == named.name for node in nodes) != 1:
        return None
    is_method = named is function and isinstance(holder, ast.ClassDef)
    kind, part = (ast.Attribute, "attr") if is_method else (ast.Name, "id")
    uses = [node for node in nodes if isinstance(node, kind) and getattr(node, part) == named.name]
    calls = [node for node in nodes if isinstance(node, ast.Call) and node.func in uses]
    own = [node for node in ast.walk(facts.tree(file)) if isinstance(node, ast.Call) and node.func in uses]
    return own if len(uses) == len(calls) == len(own) else None


def arguments_of(function: _Function) -> list[str]:
    given = function.args
    return [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def argument_of(facts: TraceIndex, file: str, function: _Function, call: ast.Call, name: str) -> ast.expr | None:
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


def default_of(function: _Function, name: str) -> ast.expr | None:
    """Returns the default value of an argument."""
    given, placed = function.args, [*function.args.posonlyargs, *function.args.args]
    with_default = zip(placed[len(placed) - len(given.defaults) :], given.defaults, strict=True)
    pairs = [*with_default, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return next((value for argument, value in pairs if argument.arg == name), None)
