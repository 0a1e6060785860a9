"""Recognises indices that take all of a tensor, as `x[:, None]`: they only add dimensions."""

from __future__ import annotations

import ast

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call


def is_whole_index(facts: TraceIndex, call: Call) -> bool:
    """Returns whether an index only adds dimensions."""
    node = facts.node_at(call.site)
    if op_name(call) != "getitem" or not isinstance(node, ast.Subscript):
        return False
    indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    return all(
        (isinstance(each, ast.Slice) and each.lower is each.upper is each.step is None)
        or (isinstance(each, ast.Constant) and each.value in (None, Ellipsis))
        for each in indices
    )
