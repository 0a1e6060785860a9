"""Finds the parts of a program that set learning rates for steps of their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import parent_of
from tensorlens.analysis.naming.name_words import words_of
from tensorlens.analysis.naming.syntax import called_name, last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.written_rates import written_rates

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Loop = ast.For | ast.While
_MOST_CALLERS = 4


def rate_phases(facts: TraceIndex) -> set[ast.AST]:
    """Returns the outermost loops around the lines that set a rate before a step, or the function or file of a line
    that no loop repeats. Of a function, the loops around its calls count."""
    stepping = _stepping(facts)
    found: set[ast.AST] = set()
    for each in written_rates(facts):
        outer, is_used = _outer(facts, each.file, each.node, stepping, _MOST_CALLERS)
        found |= outer if is_used else set()
    return found


def _outer(facts: TraceIndex, file: str, node: ast.AST, stepping: set[str], depth: int) -> tuple[set[ast.AST], bool]:
    """Returns these loops of a node, and whether a step follows it."""
    loops, scope = _around(facts, file, node)
    end = getattr(node, "end_lineno", 0)
    later = {each for each in ast.walk(scope) if getattr(each, "lineno", 0) > end}
    later |= {each for loop in loops for each in ast.walk(loop)}
    is_used = any(_is_step(each, stepping) and _around(facts, file, each)[1] is scope for each in later)
    found: set[ast.AST] = set()
    if isinstance(scope, _Function) and depth > 0:
        for place, call in _calls(facts, scope.name):
            outer, is_used_there = _outer(facts, place, call, stepping, depth - 1)
            found |= {each for each in outer if isinstance(each, _Loop)}
            is_used = is_used or is_used_there
    return found or {loops[-1] if loops else scope}, is_used


def _around(facts: TraceIndex, file: str, node: ast.AST) -> tuple[list[ast.AST], ast.AST]:
    """Returns the loops around a node in its function, but for those over groups, and the function or the file."""
    loops: list[ast.AST] = []
    above: ast.AST | None = parent_of(facts, file, node)
    while above is not None and not isinstance(above, _Function | ast.Lambda):
        is_group = isinstance(above, ast.For) and "group" in ast.unparse(above.iter)
        loops += [above] if isinstance(above, _Loop) and not is_group else []
        above = parent_of(facts, file, above)
    return loops, facts.tree(file) if above is None else above


def _calls(facts: TraceIndex, name: str) -> Iterator[tuple[str, ast.Call]]:
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and called_name(node) == name:
                yield file, node


def _is_step(node: ast.AST, stepping: set[str]) -> bool:
    """Returns whether a node calls the `step()` of an optimizer, or a function that does."""
    if not isinstance(node, ast.Call):
        return False
    held = last_name(node.func.value) if isinstance(node.func, ast.Attribute) else ""
    is_schedule = any(word.startswith("sched") for word in words_of(held))
    return (called_name(node) == "step" and not is_schedule) or called_name(node) in stepping


def _stepping(facts: TraceIndex) -> set[str]:
    """Returns the names of the functions that run a step, also by another function."""
    functions = [node for _, tree in facts.trees() for node in ast.walk(tree) if isinstance(node, _Function)]
    found: set[str] = set()
    while True:
        more = {each.name for each in functions if any(_is_step(node, found) for node in ast.walk(each))}
        if more <= found:
            return found
        found |= more
