"""Finds the statement that keeps a computed tensor as an attribute, and detaches what it keeps."""

from __future__ import annotations

import ast

from tensorlens.analysis.lineage import calls_reached_by
from tensorlens.analysis.naming.assignments import assigned_pairs
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.diagnostics.shared.edits.expressions import with_call
from tensorlens.records.model import Span
from tensorlens.records.report import Edit


def kept_at(facts: TraceIndex, number: int, index: int) -> Span | None:
    """Returns the place of the value that is kept as an attribute: `weights` in `self.last = weights`.

    None unless one assignment in all sources gives an attribute of that name a value that is no constant.
    """
    name = facts.name(number, index)
    attribute = name.rpartition(".")[2]
    if "." not in name or not attribute.isidentifier():
        return None
    found = [
        facts.span_of(value, file)
        for file, tree in facts.trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt)
        for target, value in assigned_pairs(node)
        if attribute in _attributes(target) and not isinstance(value, ast.Constant)
    ]
    return found[0] if len(found) == 1 else None


def _attributes(target: ast.expr) -> set[str]:
    return {
        node.attr for node in ast.walk(target) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }


def detached_where_kept(facts: TraceIndex, number: int, index: int) -> Edit | None:
    """Appends `.detach()` to the value that is kept. None if a loss may be computed from the attribute."""
    place = kept_at(facts, number, index)
    node = None if place is None else facts.names.syntax.node(place)
    if place is None or not isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        return None
    attribute = facts.name(number, index).rpartition(".")[2]
    return None if _may_train(facts, attribute) else with_call(facts, place, "detach")


def _may_train(facts: TraceIndex, attribute: str) -> bool:
    """Returns whether an expression reads an attribute in a way that may be part of a loss.

    An expression that computes with it may not, if no backward pass went through a call of its line.
    """
    reached = frozenset().union(*(calls_reached_by(facts, each).calls for each in facts.backwards))
    lines: dict[tuple[str, int], bool] = {}
    for call in facts.calls:
        span = facts.trace.sites[call.site].span
        for line in range(span.line, span.end_line + 1):
            lines[span.file, line] = lines.get((span.file, line), False) or call.index in reached
    for file, tree in facts.trees():
        compared = {id(node.left) for node in ast.walk(tree) if isinstance(node, ast.Compare)}
        for node in ast.walk(tree):
            is_read = isinstance(node, ast.Attribute) and node.attr == attribute and isinstance(node.ctx, ast.Load)
            if is_read and id(node) not in compared and lines.get((file, getattr(node, "lineno", 0)), True):
                return True
    return False
