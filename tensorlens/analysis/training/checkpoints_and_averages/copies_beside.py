"""Finds out whether a program copies, or loads, the weights of a module that it also keeps as it is."""

from __future__ import annotations

import ast
from collections.abc import Collection

from tensorlens.analysis.code_around import loop_around_line
from tensorlens.analysis.naming.syntax import called_name, plain_name
from tensorlens.analysis.trace_index import TraceIndex

COPYING = frozenset("deepcopy copy clone state_dict save parameters_to_vector".split())
_LOADING = ("load", "restore", "vector_to_parameters", "copy_")


def copies_beside(facts: TraceIndex, file: str, loop: ast.For | ast.While, names: Collection[str]) -> bool:
    """Returns whether a loop copies or saves what has one of some names, or gives it to a function that does so."""
    for statement in (node for node in ast.walk(loop) if isinstance(node, ast.stmt) and not hasattr(node, "body")):
        called = {called_name(node) for node in ast.walk(statement)}
        if _mentions(statement, names) and (called & COPYING or called & _copying_functions(facts)):
            return True
    return is_loaded(facts.tree(file), names)


def is_loaded(tree: ast.Module, names: Collection[str]) -> bool:
    """Returns whether a call loads weights from, or into, what has one of some names."""
    calls = (node for node in ast.walk(tree) if called_name(node).startswith(_LOADING))
    return any(_mentions(call, names) for call in calls)


def is_begun_anew(facts: TraceIndex, file: str, loop: ast.For | ast.While, kept: str, statement: ast.stmt) -> bool:
    """Returns whether a loop sets what another loop inside it keeps: each round of the outer one has its own then."""
    inner = loop_around_line(facts, file, statement.lineno)
    if inner is None or inner is loop:
        return False
    within = {*ast.walk(inner)}
    stored = (node for node in ast.walk(loop) if isinstance(getattr(node, "ctx", None), ast.Store))
    return any(isinstance(node, ast.expr) and plain_name(node) == kept for node in stored if node not in within)


def _mentions(node: ast.AST, names: Collection[str]) -> bool:
    return any(isinstance(each, ast.expr) and plain_name(each) in names for each in ast.walk(node))


def _copying_functions(facts: TraceIndex) -> set[str]:
    functions = (node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    return {each.name for each in functions if {called_name(node) for node in ast.walk(each)} & COPYING}
