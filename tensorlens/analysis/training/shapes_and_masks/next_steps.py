"""Finds out whether a loss compares what a model returns for a sequence with the same sequence one step later."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import recorded_above
from tensorlens.analysis.training.value_ranges import RESHAPING
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Backward, Call

_COMPARING = frozenset(("sub", "cross_entropy", "binary_cross_entropy_with_logits"))
_MAX_CALLS, _MAX_EARLIER = 8, 400


_Side = tuple[str, int]  # the only end of a slice, and its number
FROM_SECOND: _Side = ("lower", 1)
TO_LAST: _Side = ("upper", -1)


def predicts_next(facts: TraceIndex, backward: Backward) -> bool:
    """Returns whether the target of a loss is `x[:, 1:]`, and the model is given `x[:, :-1]`, or `[:, :-1]` of what it
    returns is compared."""
    return compared_with_next(facts, backward) is not None


def compared_with_next(facts: TraceIndex, backward: Backward) -> Call | None:
    """Returns the loss, or the difference, that has such a target."""
    return _predicts(facts, backward, FROM_SECOND, TO_LAST)


def predicts_previous(facts: TraceIndex, backward: Backward) -> bool:
    """Returns whether it is the other way round, as in a model that reads from the right."""
    return _predicts(facts, backward, TO_LAST, FROM_SECOND) is not None


def _predicts(facts: TraceIndex, backward: Backward, wanted: _Side, given: _Side) -> Call | None:
    for call in recorded_above(facts, backward):
        if (op_name(call) not in _COMPARING and not op_name(call).endswith("_loss")) or len(call.inputs) < 2:
            continue
        made, target = (access.tensor for access in call.inputs[:2])
        if facts.requires_grad(target, call.index - 1):
            made, target = target, made
        part = _part(facts, target, call.index, wanted)
        if part is not None and any(
            (each.inputs[0].tensor == part or facts.requires_grad(each.inputs[0].tensor, each.index - 1))
            and has_slice(facts, each, given)
            for _, each in ancestry(facts, made, call.index, _MAX_EARLIER)
            if op_name(each) == "getitem"
        ):
            return call
    return None


def _part(facts: TraceIndex, number: int, before: int, side: _Side) -> int | None:
    """Returns the sequence that a target is a part of, without its first or last step."""
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or facts.requires_grad(made.inputs[0].tensor, made.index - 1):
            return None
        if op_name(made) == "getitem" and has_slice(facts, made, side):
            return made.inputs[0].tensor
        if op_name(made) not in RESHAPING | {"getitem"}:
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def has_slice(facts: TraceIndex, call: Call, side: _Side) -> bool:
    """Returns whether an index has a slice with only one end, which is a number."""
    end, number = side
    for each in slices_of(facts, call):
        own, other = (each.lower, each.upper) if end == "lower" else (each.upper, each.lower)
        if own is not None and other is None and written_number(facts, own) == number:
            return True
    return False


def slices_of(facts: TraceIndex, call: Call) -> Iterator[ast.Slice]:
    """Yields the slices that an index of the source has."""
    node = facts.node_at(call.site)
    index = node.slice if isinstance(node, ast.Subscript) else None
    for each in index.elts if isinstance(index, ast.Tuple) else [index]:
        if isinstance(each, ast.Slice):
            yield each
