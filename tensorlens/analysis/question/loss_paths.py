"""Finds the calls that lead from a tensor to a root of a backward pass."""

from __future__ import annotations

from collections import deque

from tensorlens.analysis.lineage import MAX_CALLS, graph_calls
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call

_Step = tuple[int, int]  # a tensor, and the event that used it


def path_to_root(facts: TraceIndex, number: int, backward: Backward) -> list[Call]:
    """Returns the calls on a shortest way from a tensor to a root, in order; none if the trace does not show one."""
    queue: deque[_Step] = deque((root.tensor, backward.index) for root in backward.roots)
    made: dict[_Step, tuple[Call, _Step] | None] = dict.fromkeys(queue)
    while queue and len(made) < MAX_CALLS:
        step = queue.popleft()
        state = facts.state(step[0], step[1] - 1)
        if state is None or not state.requires_grad or (state.is_leaf and step[0] != number):
            continue
        if step[0] == number:
            return _way(made, step)
        for call in graph_calls(facts, *step):
            for access in call.inputs:
                before = access.tensor, call.index
                if before not in made:
                    made[before] = call, step
                    queue.append(before)
    return []


def _way(made: dict[_Step, tuple[Call, _Step] | None], step: _Step) -> list[Call]:
    calls: list[Call] = []
    while (link := made[step]) is not None:
        call, step = link
        calls.append(call)
    return calls
