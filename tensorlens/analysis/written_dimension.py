"""Reads the dimension that an operation runs along, where the source says it, as in `x.softmax(-1)`."""

from __future__ import annotations

import ast

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_LIBRARY = ("torch", "F", "nn.functional", "torch.nn.functional", "functional", "torch.special")


def written_dimension(facts: TraceIndex, call: Call) -> int | None:
    """Returns the dimension of the first input, counted from 0; None if the source does not name it as one number."""
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or not call.inputs:
        return None
    named = [keyword.value for keyword in node.keywords if keyword.arg == "dim"]
    is_method = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) not in _LIBRARY
    given = named or node.args[0 if is_method else 1 :][:1]
    number = written_number(facts, given[0]) if given else None
    size = len(facts.tensor(call.inputs[0].tensor).shape)
    return int(number) % size if number is not None and number == int(number) and -size <= number < size else None
