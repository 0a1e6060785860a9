"""Finds parameters that are only added to a value whose gradient the loss is computed from."""

from __future__ import annotations

from tensorlens.analysis.lineage import graph_leaves
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.parameters_without_gradient import PathEnd
from tensorlens.records.model import Call

_ADDING = frozenset("linear conv1d conv2d conv3d conv_transpose1d conv_transpose2d add radd iadd".split())


def is_constant_of_slope(facts: TraceIndex, end: PathEnd) -> bool:
    """Returns whether a parameter is only added to a value whose gradient the loss is computed from, as the last bias
    of an energy is: a constant has no slope."""
    asked = [each for each in facts.backwards if each.op == "autograd.grad" and each.create_graph]
    call = end.cut.call
    if end.kind == "swallowed":
        return _is_added(call, end.number) and any(call.index < each.index < end.backward.index for each in asked)
    if end.kind != "unused" or not asked:
        return False
    uses = [each for each in facts.calls if any(access.tensor == end.number for access in each.inputs)]
    uses = [each for each in uses if each.nodes[1] > each.nodes[0]]
    after = next((each for each in asked if uses and each.index > uses[0].index), None)
    if after is None or not all(_is_added(each, end.number) for each in uses):
        return False
    return any(end.number in graph_leaves(facts, root.tensor, after.index) for root in after.roots)


def _is_added(call: Call, number: int) -> bool:
    return op_name(call) in _ADDING and len(call.inputs) > 1 and call.inputs[-1].tensor == number
