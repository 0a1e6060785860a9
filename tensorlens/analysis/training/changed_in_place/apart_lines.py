"""Finds out whether one call of a function can run two of its lines."""

from __future__ import annotations

import ast
from itertools import pairwise, takewhile

from tensorlens.analysis.code_around import is_inside, statement_around, upwards
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Span

_LOOPS = (ast.For, ast.While, ast.AsyncFor)
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def are_apart(facts: TraceIndex, first: int, second: int) -> bool:
    """Returns whether an `if` lets a call of a function run the line of only one of two sites.

    They are in two arms of it, or in one arm that ends with `return`, and outside it. No loop is around both.
    """
    one, other = facts.span(first), facts.span(second)
    if one is None or other is None:
        return False
    return _excludes(facts, one, other) or _excludes(facts, other, one)


def _excludes(facts: TraceIndex, one: Span, other: Span) -> bool:
    """Returns whether an arm with a line ends before another line, or is not the arm of that."""
    statement = statement_around(facts, one)
    around = [] if statement is None else list(upwards(facts, one.file, statement))
    within = list(takewhile(lambda each: not isinstance(each, _SCOPES), around))
    if any(isinstance(each, _LOOPS) and is_inside(other, facts.span_of(each, one.file)) for each in within):
        return False
    return any(isinstance(outer, ast.If) and _parts(facts, inner, outer, other) for inner, outer in pairwise(within))


def _parts(facts: TraceIndex, inner: ast.stmt, choice: ast.If, other: Span) -> bool:
    """Returns whether a line is in the other arm than a statement of an `if`, or comes after an arm that returns."""
    own, opposite = (choice.body, choice.orelse) if inner in choice.body else (choice.orelse, choice.body)
    if any(is_inside(other, facts.span_of(each, other.file)) for each in opposite):
        return True
    is_outside = not is_inside(other, facts.span_of(choice, other.file))
    return is_outside and isinstance(own[-1], ast.Return | ast.Raise) and other.line > choice.lineno
