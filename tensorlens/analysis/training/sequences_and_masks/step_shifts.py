"""Finds calls that may move the steps of each row to later places, as a first token before the others does."""

from __future__ import annotations

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.pair_tables import JOINS, shape_of
from tensorlens.analysis.training.sequences_and_masks.next_steps import TO_LAST, has_slice, slices_of
from tensorlens.records.model import Call

_MOVES = frozenset("roll pad constant_pad_nd flip".split())
_WRITES = frozenset("setitem copy".split())


def may_shift(facts: TraceIndex, call: Call, rows: int, steps: int) -> bool:
    """Returns whether a call may put the steps of `rows` rows at other places: it joins along the time, pads, writes to
    the places from the second one on, or leaves out the last one."""
    name = op_name(call).rstrip("_")
    if not call.outputs:
        return False
    if name == "getitem":
        return has_slice(facts, call, TO_LAST) and rows in shape_of(facts, call.outputs[0].tensor)[:2]
    if name in _WRITES:
        return any(each.lower is not None for each in slices_of(facts, call))
    shape = shape_of(facts, call.outputs[0].tensor)[:2]
    if not {rows, steps} <= set(shape):
        return False
    is_join = name in JOINS and any(shape_of(facts, each.tensor)[:2] != shape for each in call.inputs)
    return name in _MOVES or is_join
