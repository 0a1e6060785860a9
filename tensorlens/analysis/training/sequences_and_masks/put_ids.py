"""Finds out whether a program itself puts the id of the padding between other ids, as for words that are dropped."""

from __future__ import annotations

import ast

from tensorlens.analysis.code_around import statement_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_CHOOSING = frozenset("where mul imul rmul masked_fill masked_fill index_fill masked_scatter".split())
_LOOKUPS = frozenset(("embedding", "embedding_bag"))
_MAX_CALLS = 60  # above a look-up
_MAX_LOOKS = 20


def puts_in(facts: TraceIndex, weight: int, padding: int) -> bool:
    """Returns whether a call that made the ids of a look-up puts the padding into chosen places of them."""
    looks = [call for call in facts.calls if op_name(call) in _LOOKUPS and len(call.inputs) > 1]
    for look in [call for call in looks if call.inputs[1].tensor == weight][:_MAX_LOOKS]:
        for _, made in ancestry(facts, look.inputs[0].tensor, look.index, _MAX_CALLS):
            if op_name(made) in _CHOOSING or (op_name(made) == "setitem" and _sets(facts, made, padding)):
                return True
            if op_name(made) == "pad" and len(facts.tensor(made.inputs[0].tensor).shape) > 1:
                return True
    return False


def _sets(facts: TraceIndex, call: Call, padding: int) -> bool:
    """Returns whether an assignment sets items to the padding, or to a number that the source does not show."""
    span = facts.span(call.site)
    statement = None if span is None else statement_around(facts, span)
    number = written_number(facts, statement.value) if isinstance(statement, ast.Assign) else None
    is_of_tensors = len(call.inputs) > 1 and facts.tensor(call.inputs[-1].tensor).dtype != "bool"
    return number == padding or (number is None and not is_of_tensors)
