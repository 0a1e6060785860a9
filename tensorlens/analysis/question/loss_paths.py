"""Finds the calls that lead from a tensor to a root of a backward pass."""

from __future__ import annotations

from collections import deque
from functools import lru_cache

from tensorlens.analysis.graph_search import GraphSearch
from tensorlens.analysis.lineage import MAX_CALLS
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call

_Step = tuple[int, int]  # a tensor, and the event that used it
_Links = dict[_Step, tuple[Call, _Step] | None]


def path_to_root(facts: TraceIndex, number: int, backward: Backward) -> list[Call]:
    """Returns the calls on a shortest way from a tensor to a root, in order; none if the trace does not show one."""
    made, first = _graph(facts, backward.index)
    return _way(made, first[number]) if number in first else []


@lru_cache(maxsize=16)
def _graph(facts: TraceIndex, index: int) -> tuple[_Links, dict[int, _Step]]:
    """Follows the roots of a pass back to leaves, the nearest first.

    Returns how each step leads to the next one, and the first step at which each tensor is met.
    """
    backward = facts.event(index)
    assert isinstance(backward, Backward)
    queue: deque[_Step] = deque((root.tensor, index) for root in backward.roots)
    made: _Links = dict.fromkeys(queue)
    first: dict[int, _Step] = {}
    search, followed = GraphSearch(facts), set[int]()
    while queue and len(made) < MAX_CALLS:
        step = queue.popleft()
        state = facts.state(step[0], step[1] - 1)
        if state is None or not state.requires_grad:
            continue
        first.setdefault(step[0], step)
        for call in () if state.is_leaf else search.new_calls(*step):
            inputs = () if call.index in followed else call.inputs
            followed.add(call.index)
            for access in inputs:
                before = access.tensor, call.index
                if before not in made:
                    made[before] = call, step
                    queue.append(before)
    return made, first


def _way(made: _Links, step: _Step) -> list[Call]:
    calls: list[Call] = []
    while (link := made[step]) is not None:
        call, step = link
        calls.append(call)
    return calls
