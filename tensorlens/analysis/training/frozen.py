"""Finds the call that froze a parameter."""

from __future__ import annotations

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call


def frozen_at(facts: TraceIndex, number: int) -> Call | None:
    """Finds the call after which a tensor does not require grad any more; None if none is recorded, or if it requires
    grad at the end."""
    if not facts.events:
        return None
    end = facts.events[-1].index
    if facts.requires_grad(number, end):
        return None
    call = facts.call(facts.states.last_requiring_grad(number, end + 1))
    return call if call is not None and not facts.requires_grad(number, call.index) else None
