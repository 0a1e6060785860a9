"""Decides whether a trace shows all that a value was computed from, so that what it does not show is no part of it."""

from __future__ import annotations

from collections.abc import Sequence

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call

_Use = tuple[int, int]  # a tensor, and the event that uses it


def is_whole(facts: TraceIndex, root: _Use, above: Sequence[tuple[int, Call]]) -> bool:
    """Returns whether the calls `above` a root, as `ancestry` gives them, are all that computed its history.

    They are not if a search ended early, or if a long run has folded calls among them. What a call that is left wrote
    in place, others may have written too.
    """
    since = _first_without_gap(facts)
    uses = {root, *((access.tensor, call.index) for _, call in above for access in call.inputs)}
    found = set(above)
    for number, user in uses:
        state = facts.state(number, user - 1)
        if state is not None and (state.is_leaf or not state.requires_grad):
            continue
        made = facts.producers(number, user)[:1]
        if not made or (number, made[0]) not in found:
            return False
        created = facts.tensor(number).created_by
        if made[0].writes and (created is None or created < since):
            return False
    return True


def _first_without_gap(facts: TraceIndex) -> int:
    """Returns the index of the first event after which none is missing."""
    events = facts.events
    at = len(events) - 1
    while at > 0 and events[at - 1].index == events[at].index - 1:
        at -= 1
    return events[at].index if at > 0 else 0
