"""Finds out whether a value is the entry of a table that a comparison with another value has chosen."""

from __future__ import annotations

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.value_ranges import RESHAPING

PICKED = frozenset("getitem embedding index_select matmul mm einsum gather take_along_dim".split())
_CHOICES = frozenset("argmin argmax min max topk sort argsort round sign floor".split())


def is_picked_by(facts: TraceIndex, picked: int, source: int, before: int) -> bool:
    """Returns whether a value is chosen from a table by a comparison with another one, which has a graph."""
    made = next(iter(facts.producers(picked, before)), None)
    while made is not None and op_name(made) in RESHAPING - PICKED and made.inputs:
        made = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    if made is None or op_name(made) not in PICKED or not facts.requires_grad(source, before - 1):
        return False
    above = {call.index for _, call in ancestry(facts, source, before)}
    indices = [
        a.tensor for a in made.inputs if a.tensor != source and not facts.requires_grad(a.tensor, made.index - 1)
    ]
    for index in indices:
        calls = [call for _, call in ancestry(facts, index, made.index) if call.index not in above]
        is_chosen = any(op_name(call) in _CHOICES for call in calls)
        if is_chosen and any(access.tensor == source for call in calls for access in call.inputs):
            return True
    return False
