"""Finds out from the source whether a line is meant to change something for longer than one batch."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.code_around import (
    block_around,
    function_around,
    loop_around_line,
    parent_of,
    statement_around,
    upwards,
)
from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.best_so_far import is_computed
from tensorlens.records.model import Span

_MOST = 4  # functions around a line
_LEAVING = ast.Return | ast.Continue | ast.Break | ast.Raise
_Loop = ast.For | ast.While


def is_lasting(facts: TraceIndex, write: Span, batch: Span) -> bool:
    """Returns whether a flag lets a line run only once, or a loop around the one over batches runs it. `batch`: a line
    of the loop over batches."""
    ways = list(_ways_to(facts, write))
    return any(_sets_flag(facts, each, ways) for each in ways) or _is_outside(facts, write, batch)


def _ways_to(facts: TraceIndex, span: Span) -> Iterator[Span]:
    """Yields a place, and those from which its function is called, if there is one for each."""
    for _ in range(_MOST):
        yield span
        function = function_around(facts, span.file, span.line)
        calls = [
            facts.span_of(node, file)
            for file, tree in facts.trees()
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and function is not None and last_name(node.func) == function.name
        ]
        if len(calls) != 1:
            return
        span = calls[0]


def _sets_flag(facts: TraceIndex, span: Span, ways: list[Span]) -> bool:
    """Returns whether the block of a place sets a flag to a constant that nothing takes back, and a condition on
    the way to the line asks for the flag. A loop over groups, or a `with`, has the block that it is in."""
    statement = statement_around(facts, span)
    for each in upwards(facts, span.file, statement) if statement is not None else ():
        statement = each
        around = parent_of(facts, span.file, each)
        is_over_groups = isinstance(around, ast.For) and "group" in ast.unparse(around.iter)
        if not is_over_groups and not isinstance(around, ast.With):
            break
    block = block_around(facts, span.file, statement) if statement is not None else []
    for each in block:
        name = last_name(each.targets[0]) if isinstance(each, ast.Assign) and len(each.targets) == 1 else ""
        value = each.value if isinstance(each, ast.Assign) else None
        if name and isinstance(value, ast.Constant) and isinstance(value.value, bool):
            if _is_kept(facts, name, each, value.value) and any(_is_asked(facts, way, name) for way in ways):
                return not any(_is_for_outlier(facts, way) for way in ways)
    return False


def _is_for_outlier(facts: TraceIndex, span: Span) -> bool:
    """Returns whether a line is below a condition such as `loss > 50`: its value may be that of a bad batch."""
    statement = statement_around(facts, span)
    around = upwards(facts, span.file, statement) if statement is not None else ()
    tests = (node for each in around if isinstance(each, ast.If) for node in ast.walk(each.test))
    return any(
        isinstance(test, ast.Compare)
        and isinstance(test.ops[0], ast.Gt | ast.GtE)
        and isinstance(test.comparators[0], ast.Constant)
        and is_computed(facts, span.file, test.left, _MOST)
        for test in tests
    )


def _is_kept(facts: TraceIndex, name: str, write: ast.stmt, value: bool) -> bool:
    """Returns whether a flag has one other value, the first one, which no loop sets."""
    others: list[tuple[str, ast.stmt]] = []
    for file, tree in facts.trees():
        for node in ast.walk(tree):
            if isinstance(node, ast.Name | ast.Attribute) and last_name(node) == name and _is_stored(node):
                statement = statement_around(facts, facts.span_of(node, file))
                others += [(file, statement)] if statement is not None and statement is not write else []
    if len(others) != 1:
        return False
    file, statement = others[0]
    first = statement.value if isinstance(statement, ast.Assign) else None
    is_looped = loop_around_line(facts, file, statement.lineno) is not None
    return isinstance(first, ast.Constant) and first.value is (not value) and not is_looped


def _is_stored(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store)


def _is_asked(facts: TraceIndex, span: Span, name: str) -> bool:
    """Returns whether a line is below a condition with the flag, or behind one that leaves its block."""
    statement = statement_around(facts, span)
    for each in upwards(facts, span.file, statement) if statement is not None else ():
        block = block_around(facts, span.file, each)
        place = next((number for number, other in enumerate(block) if other is each), 0)
        ends = (other for other in block[:place] if isinstance(other, ast.If) and isinstance(other.body[-1], _LEAVING))
        choices = [*ends, *([each] if isinstance(each, ast.If) else [])]
        if any(_has_name(other.test, name) for other in choices):
            return True
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            return False
    return False


def _has_name(test: ast.expr, name: str) -> bool:
    return any(last_name(each) == name for each in ast.walk(test))


def _is_outside(facts: TraceIndex, write: Span, batch: Span) -> bool:
    """Returns whether the loop over batches is a part of the loop that runs a line, and does not hold that line."""
    inner = loop_around_line(facts, batch.file, batch.line)
    for each in _ways_to(facts, write):
        outer = loop_around_line(facts, each.file, each.line)
        if inner is not None and outer is not None and each.file == batch.file:
            return inner is not outer and any(node is inner for node in ast.walk(outer))
    return False
