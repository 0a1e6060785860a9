"""Decides whether the first dimension of what a layer takes has samples that a line draws, and no steps of a series."""

from __future__ import annotations

import ast

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.row_starts import COLLATED, TAKING
from tensorlens.records.model import Call

_MADE = frozenset("from_numpy randn rand rand_like uniform_ normal_ randint normal randn_like".split()) | COLLATED
_LOADING = "_BaseDataLoaderIter.__next__"
_ORDERS = frozenset(("randperm", "multinomial", "randint"))
_MOST_CALLS = 400


def are_drawn_rows(facts: TraceIndex, layer: Call) -> bool:
    """Returns whether a loader shuffles the rows, an index takes them, or a line makes them anew, again and again.

    A whole series, or a slice of one, may have the time first.
    """
    given = layer.inputs[0].tensor
    rows = facts.tensor(given).shape[0]
    for number, call in ancestry(facts, given, layer.index, _MOST_CALLS):
        if facts.tensor(number).shape[:1] == (rows,) and _draws(facts, call):
            return True
    return False


def _draws(facts: TraceIndex, call: Call) -> bool:
    if facts.trace.sites[call.site].through == _LOADING:
        calls = (each for each in facts.calls_between(0, call.index) if op_name(each) in _ORDERS)
        own = (each for each in calls if facts.trace.sites[each.site].through == _LOADING)
        return any(facts.same_line(each.site, call.site) for each in own)
    if op_name(call) in TAKING and len(call.inputs) > 1:
        index = facts.tensor(call.inputs[1].tensor)
        return index.dtype == "int64" and len(index.shape) == 1
    if op_name(call) in _MADE:
        return sum(each.site == call.site for each in facts.calls) > 1
    return op_name(call) == "getitem" and _is_list(facts, call)


def _is_list(facts: TraceIndex, call: Call) -> bool:
    """Returns whether numbers outside of a tensor choose rows."""
    node = facts.node_at(call.site)
    index = node.slice if isinstance(node, ast.Subscript) else None
    first = next(iter(index.elts), None) if isinstance(index, ast.Tuple) else index
    shapes = [len(facts.tensor(each[0].tensor).shape) for each in (call.inputs, call.outputs)]
    return isinstance(first, ast.Name | ast.Call | ast.Subscript | ast.Attribute) and shapes[0] == shapes[1]
