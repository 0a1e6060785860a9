"""Finds out whether one loop runs all steps that a line belongs to."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensorlens.analysis.code_around import loop_around_line
from tensorlens.analysis.naming.places import callers
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call


def is_one_loop(facts: TraceIndex, step: Call) -> bool:
    """Returns whether a call is in a loop of its function, or one loop calls the function that makes it.

    No other line may call it by this name, except loops without a backward pass, as those of an evaluation. None may
    have another such call inside or beside a loop of its own: a loop before the last call may only warm up the state.
    """
    span = facts.trace.sites[step.site].span
    if loop_around_line(facts, span.file, span.line) is not None:
        return True
    function = facts.trace.sites[step.site].function
    outer = (site for site in callers(facts.trace, step.site) if facts.trace.sites[site].function != function)
    site = next(outer, None)
    node = facts.node_at(site)
    if site is None or not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    calls = [
        (each, loop_around_line(facts, file, each.lineno))
        for file, tree in facts.trees()
        for each in ast.walk(tree)
        if isinstance(each, ast.Call) and ast.unparse(each.func) == name
    ]
    return all(_is_only_loop(loop, each, calls) for each, loop in calls)


def _is_only_loop(loop: ast.AST | None, call: ast.Call, calls: Sequence[tuple[ast.Call, ast.AST | None]]) -> bool:
    """Returns whether a loop has no backward pass and none of the other calls."""
    inside = list(ast.walk(loop)) if loop is not None else []
    has_pass = any(isinstance(each, ast.Attribute) and each.attr == "backward" for each in inside)
    return loop is not None and not has_pass and not any(each in inside and each is not call for each, _ in calls)
