"""Finds out whether a `cumsum` adds up exponentials, and a `log` takes the result."""

from __future__ import annotations

from itertools import islice

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Call

_SAME_SIZE = frozenset("flip add radd clamp clamp_min getitem contiguous".split())  # between `exp`, `cumsum` and `log`
_MAX_LATER = 12


def is_of_logs(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call adds up what an `exp` made, and a `log` takes the result."""
    if not call.inputs or not call.outputs:
        return False
    made = next(iter(facts.producers(call.inputs[0].tensor, call.index)), None)
    while made is not None and op_name(made) in _SAME_SIZE and made.inputs:
        made = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
    if made is None or op_name(made) != "exp":
        return False
    number = call.outputs[0].tensor
    for later in islice(facts.calls_between(call.index + 1), _MAX_LATER):
        if later.inputs and later.inputs[0].tensor == number and later.outputs:
            if op_name(later) not in _SAME_SIZE:
                return op_name(later) == "log"
            number = later.outputs[0].tensor
    return False
