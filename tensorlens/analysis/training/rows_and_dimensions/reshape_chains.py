"""Finds what several reshapes, one after another, begin with: `x.flatten(1).unflatten(1, (channels, length))`."""

from __future__ import annotations

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

RESHAPING = frozenset("view reshape unflatten flatten view_as reshape_as".split())
_SAME = frozenset(("contiguous", "clone"))
_MOST = 4


def reshaped(facts: TraceIndex, call: Call) -> tuple[int, Call | None]:
    """Returns the tensor that the reshapes begin with of which a call is the last, and the call that made it."""
    for _ in range(_MOST):
        made = next(iter(facts.producers(call.inputs[0].tensor, call.index)), None)
        if made is None or op_name(made) not in RESHAPING | _SAME or not made.inputs:
            return call.inputs[0].tensor, made
        call = made
    return call.inputs[0].tensor, None
