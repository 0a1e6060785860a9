"""Finds out whether one loop runs all steps that a line belongs to."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import loop_around_line
from tensorlens.analysis.naming.places import callers
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call


def is_one_loop(facts: TraceIndex, step: Call) -> bool:
    """Returns whether a call is in a loop of its function, or one loop calls the function that makes it.

    No other line may call it by this name, except loops without a backward pass, as those of an evaluation.
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
    others = [
        _is_in_loop(facts, file, each)
        for file, tree in facts.trees()
        for each in ast.walk(tree)
        if each is not node and isinstance(each, ast.Call) and ast.unparse(each.func) == name
    ]
    return all(others) and _is_in_loop(facts, facts.trace.sites[site].span.file, node)


def _is_in_loop(facts: TraceIndex, file: str, call: ast.Call) -> bool:
    """Returns whether a loop without a backward pass makes a call."""
    loop = loop_around_line(facts, file, call.lineno)
    inside = ast.walk(loop) if loop is not None else ()
    return loop is not None and not any(isinstance(each, ast.Attribute) and each.attr == "backward" for each in inside)
