"""Reads the dimension that an operation runs along, where the source says it, as in `x.softmax(-1)`."""

from __future__ import annotations

import ast

from tensorlens.analysis.literal_values import number_of
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.written_call import written_call
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_NAMES = ("dim", "axis")


def written_dimension(facts: TraceIndex, call: Call) -> int | None:
    """Returns the dimension of the first input, counted from 0; None if the source does not name it as one number."""
    written = written_call(facts, call)
    if written is None or not call.inputs:
        return None
    given = written.argument(0 if written.kind == "module" else 1, *_NAMES)
    number = None if given is None else written_number(facts, given)
    if number is None and isinstance(given, ast.Name | ast.Attribute):
        span = facts.span(call.site)
        number = None if span is None else number_of(facts, span.file, given)
    size = len(facts.tensor(call.inputs[0].tensor).shape)
    return int(number) % size if number is not None and number == int(number) and -size <= number < size else None
