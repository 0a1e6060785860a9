"""Finds out whether a call fills a tensor with a constant of the source, or with a value computed or loaded."""

from __future__ import annotations

import ast

from tensorlens.analysis.naming.syntax import last_name
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

_FILLING = frozenset("fill constant full full_like new_full".split())
_VALUES = frozenset(("val", "value", "fill_value"))
_CONSTANT = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.operator, ast.unaryop)


def fills_computed(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call fills a tensor with a value that is no constant of the source; calls within a constructor
    of a library are no such fills."""
    site = facts.trace.sites[call.site]
    if op_name(call) not in _FILLING or site.through:
        return False
    node = facts.names.syntax.node(site.span)
    if not isinstance(node, ast.Call) or (last_name(node.func) or "").rstrip("_") not in _FILLING:
        return True
    given = [each.value for each in node.keywords if each.arg in _VALUES] or node.args[:2]
    return not given or not _is_constant(given[-1])


def _is_constant(node: ast.expr) -> bool:
    """Returns whether an expression has only numbers, and functions and constants of `math`."""
    of_math = {
        each
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "math"
        for each in (part, part.value)
    }
    rest = (each for each in ast.walk(node) if each not in of_math and not isinstance(each, ast.expr_context))
    return all(isinstance(each, _CONSTANT) or (isinstance(each, ast.Call) and each.func in of_math) for each in rest)
