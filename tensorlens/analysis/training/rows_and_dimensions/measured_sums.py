"""Finds sums along the edges of graphs that give each node only its own rows, as a run has measured: the index of the
sum has the items of the index by which rows are taken, and no other index takes rows."""

from __future__ import annotations

from collections.abc import Iterator

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.looked_at import by_line, call_of
from tensorlens.analysis.training.pair_tables import made_by, shape_of
from tensorlens.analysis.training.rows_and_dimensions.edge_sums import OwnRows, is_other_read, pair_of
from tensorlens.records.model import Call

_SHAPING = frozenset("unsqueeze view reshape getitem expand expand_as contiguous long to".split())
_LEAST_LOOKS, _MOST_STEPS, _MOST_CALLS = 2, 8, 40


def measured_sums(facts: TraceIndex) -> Iterator[OwnRows]:
    """Yields these, one for each line, where all passes that were looked at take rows by the same items only."""
    found = facts.trace.inspection.summed_rows
    for line in by_line(facts, () if any(each.others for each in found) else found):
        call, fact = line[0]
        is_own = all(each.alike and not each.others for _, each in line)
        whole = [each.tensor for each in call.inputs if facts.tensor(each.tensor).dtype.startswith("int")]
        added = [each.tensor for each in call.inputs[1:] if each.tensor not in whole]
        if len(line) < _LEAST_LOOKS or not is_own or len(whole) != 1 or len(added) != 1:
            continue
        alike = {each.index for node in fact.alike if (each := call_of(facts, fact, node)) is not None}
        taken = _taken(facts, call, added[0], alike)
        if taken is not None and _is_of_pair(facts, whole[0]):
            yield OwnRows(call, taken)


def _taken(facts: TraceIndex, summed: Call, added: int, alike: set[int]) -> Call | None:
    """Returns a call that takes rows, if all that a sum adds is computed from such rows, one by one."""
    edges, places = (shape_of(facts, number)[:1] for number in (added, summed.inputs[0].tensor))
    waiting, found = [(added, summed.index)], list[Call]()
    for number, before in waiting:
        made = made_by(facts, number, before)
        if made is None or len(waiting) > _MOST_CALLS:
            return None
        if made.index in alike:
            found.append(made)
            tables = [each.tensor for each in made.inputs if facts.requires_grad(each.tensor, made.index - 1)]
            if not tables or shape_of(facts, tables[0])[:1] != places:
                return None
            continue
        for each in (access.tensor for access in made.inputs):
            if facts.is_leaf_requiring_grad(each, made.index):
                continue
            is_of_edges = shape_of(facts, each)[:1] == edges
            if is_of_edges != facts.requires_grad(each, made.index - 1):
                return None
            if is_of_edges:
                waiting.append((each, made.index))
    return found[0] if found else None


def _is_of_pair(facts: TraceIndex, index: int) -> bool:
    """Returns whether an index is one of two that belong together, and the model reads the other one nowhere."""
    for _ in range(_MOST_STEPS):
        pair = pair_of(facts, index)
        if pair is not None:
            return not is_other_read(facts, index) and not any(
                pair in [access.tensor for access in call.inputs] and call.nodes[0] < call.nodes[1]
                for call in facts.calls
            )
        if any(op_name(call) == "stack" and _is_in(index, call) for call in facts.calls):
            return True
        made = facts.creator(index)
        if made is None or len(made.inputs) != 1 or op_name(made) not in _SHAPING:
            return False
        index = made.inputs[0].tensor
    return False


def _is_in(index: int, stacked: Call) -> bool:
    return len(stacked.inputs) == 2 and index in [access.tensor for access in stacked.inputs]
