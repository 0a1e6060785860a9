"""Finds which variable or attribute holds an optimizer: where a line makes it, or loads averages into it."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import parent_of, scope_around, statement_around
from tensorlens.analysis.naming.assignments import assigned_pairs
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.given_arguments import argument_of

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_MAX_CALLS = 3


def is_one_variable(facts: TraceIndex, load: int | None, made: int | None) -> bool:
    """Returns whether the optimizer that a line loads averages into, and the one that a line makes, have one name.

    Functions that return them to one caller, or are given them by it, are followed; a loaded optimizer that the caller
    gives another name, as `_`, is not meant to be used again.
    """
    call, spans = facts.node_at(load), (facts.span(load), facts.span(made))
    if spans[0] is None or spans[1] is None or not isinstance(call, ast.Call) or load is None:
        return False
    if not isinstance(call.func, ast.Attribute):
        return False
    loaded = _kept(facts, spans[0].file, call.func.value)
    statement = statement_around(facts, spans[1])
    found = None
    if isinstance(statement, ast.Return) and statement.value is not None:
        found = _from_function(facts, spans[1].file, statement.value, facts.node_at(made))
    elif statement is not None:
        targets = [target for target, value in assigned_pairs(statement) if value is facts.node_at(made)]
        found = _kept(facts, spans[1].file, targets[0]) if len(targets) == 1 else None
    return loaded is not None and loaded == found


def _kept(facts: TraceIndex, file: str, node: ast.AST | None, calls: int = 0) -> tuple[ast.AST | None, str] | None:
    """Returns the variable that an expression is in the end, with its function; without one if it is an attribute."""
    if isinstance(node, ast.Attribute):
        return None, node.attr
    if not isinstance(node, ast.Name) or calls > _MAX_CALLS:
        return None
    scope = scope_around(facts, file, node.lineno)
    if not isinstance(scope, _Function):
        return scope, node.id
    if any(each.arg == node.id for each in ast.walk(scope.args) if isinstance(each, ast.arg)):
        call = _only_call(facts, file, scope)
        given = None if call is None else argument_of(facts, file, scope, call, node.id)
        return _kept(facts, file, given, calls + 1)
    returned = [each.value for each in ast.walk(scope) if isinstance(each, ast.Return) and each.value is not None]
    names = [[last_name(part) for part in _parts(value)] for value in returned]
    if not any(node.id in each for each in names):
        return scope, node.id
    part = next(p for value in returned for p in _parts(value) if last_name(p) == node.id)
    return _from_function(facts, file, returned[0], part, calls) if len(returned) == 1 else None


def _from_function(
    facts: TraceIndex, file: str, value: ast.expr, part: ast.AST | None, calls: int = 0
) -> tuple[ast.AST | None, str] | None:
    """Returns the variable of the only caller of a function that keeps a part of the value that it returns."""
    scope = scope_around(facts, file, value.lineno)
    call = _only_call(facts, file, scope) if isinstance(scope, _Function) else None
    parent = None if call is None else parent_of(facts, file, call)
    place = next((number for number, each in enumerate(_parts(value)) if each is part), None)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or place is None:
        return None
    targets = _parts(parent.targets[0])
    return _kept(facts, file, targets[place], calls + 1) if len(targets) == len(_parts(value)) else None


def _parts(value: ast.expr) -> list[ast.expr]:
    return value.elts if isinstance(value, ast.Tuple) else [value]


def _only_call(facts: TraceIndex, file: str, function: _Function) -> ast.Call | None:
    tree = facts.tree(file)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and called_name(node) == function.name]
    return calls[0] if len(calls) == 1 else None
