"""Finds out whether a variable is a short name that is read right below its assignment and nowhere else."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from tensorlens.analysis.code_around import block_around, parent_of, scope_around
from tensorlens.analysis.naming.syntax import plain_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.best_so_far import stored_pairs

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_LEAVING = (ast.Return, ast.Yield, ast.YieldFrom)


def is_used_at_once(
    facts: TraceIndex, file: str, statement: ast.stmt, target: ast.expr, keeps: Callable[[str], bool]
) -> bool:
    """Returns whether the program reads a variable, but only below the statement that sets it, in the same block, so
    that no later round meets what it was. `keeps`: whether something with a name has the variable's value in the end.
    """
    scope = scope_around(facts, file, statement.lineno)
    if not isinstance(target, ast.Name) or _is_outer(scope, target.id):
        return False
    own = [read for read in _reads(scope, target.id) if not _is_of_another(facts, file, read, statement)]
    return bool(own) and all(
        _is_below(facts, file, read, statement) and not _is_passed_on(facts, file, read, keeps) for read in own
    )


def _is_outer(scope: ast.AST, name: str) -> bool:
    """Returns whether a function sets a variable of the code around it."""
    nodes = (node for node in ast.walk(scope) if isinstance(node, ast.Global | ast.Nonlocal))
    return any(name in node.names for node in nodes)


def _reads(scope: ast.AST, name: str) -> Iterator[ast.Name]:
    """Yields the reads of a variable, also those in inner functions that have none of that name themselves."""
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, _FUNCTIONS) and _binds(node, name):
            continue
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            yield node
        yield from _reads(node, name)


def _binds(function: ast.AST, name: str) -> bool:
    nodes = [node for node in ast.walk(function) if node is not function]
    arguments = (node.arg for node in nodes if isinstance(node, ast.arg))
    return name in (*arguments, *(each for node in nodes for each in _stored(node)))


def _stored(node: ast.AST) -> Iterator[str]:
    """Yields the variable that a node of the syntax tree sets, also as the name of a function."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name


def _sets(statement: ast.AST, name: str) -> bool:
    """Returns whether a statement surely gives a variable a new value."""
    if isinstance(statement, ast.Assign):
        targets: list[ast.expr] = statement.targets
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        targets = [statement.target]
    else:
        return False
    return any(name in _stored(node) for target in targets for node in ast.walk(target))


def _goes_through(node: ast.AST, name: str) -> bool:
    """Returns whether a loop or a comprehension gives a variable its items."""
    if isinstance(node, ast.For | ast.AsyncFor):
        targets = [node.target]
    elif isinstance(node, _COMPREHENSIONS):
        targets = [each.target for each in node.generators]
    else:
        return False
    return any(name in _stored(part) for target in targets for part in ast.walk(target))


def _last_set(facts: TraceIndex, file: str, read: ast.Name, statement: ast.stmt) -> ast.AST | None:
    """Returns what surely sets a variable before a read, after any run of a statement that sets it too.

    It goes from the read to the blocks around it. None: it finds none, or the statement may have run in between.
    """
    child: ast.AST = read
    around = parent_of(facts, file, child)
    while around is not None and not isinstance(around, (*_FUNCTIONS, ast.ClassDef)):
        block = block_around(facts, file, child) if isinstance(child, ast.stmt) else []
        place = next((place for place, each in enumerate(block) if each is child), 0)
        for each in reversed(block[:place]):
            if _sets(each, read.id):
                return each
            if statement in ast.walk(each):
                return None
        if _goes_through(around, read.id) and child is not getattr(around, "iter", None):
            return around
        if isinstance(around, _LOOPS) and statement in ast.walk(around):
            return None
        child, around = around, parent_of(facts, file, around)
    return None


def _is_of_another(facts: TraceIndex, file: str, read: ast.Name, statement: ast.stmt) -> bool:
    """Returns whether another statement sets what is read."""
    return _last_set(facts, file, read, statement) not in (None, statement)


def _is_below(facts: TraceIndex, file: str, read: ast.Name, statement: ast.stmt) -> bool:
    return _last_set(facts, file, read, statement) is statement


def _is_passed_on(facts: TraceIndex, file: str, read: ast.Name, keeps: Callable[[str], bool]) -> bool:
    """Returns whether a statement returns the value of a variable, or gives it to something that keeps it."""
    child: ast.AST = read
    around = parent_of(facts, file, read)
    is_whole = not isinstance(around, ast.Attribute | ast.Subscript)
    if isinstance(around, ast.Call) and around.func is read:
        is_whole = False  # a call of the module computes something
    while around is not None and not isinstance(child, ast.stmt):
        if isinstance(around, _LEAVING) and is_whole:
            return True
        child, around = around, parent_of(facts, file, around)
    return is_whole and any(keeps(plain_name(stored) or "") for stored, _ in stored_pairs(child))
