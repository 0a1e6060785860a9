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
_LOADERS = ("_BaseDataLoaderIter.__next__", "DataLoader.__iter__")
_MAX_CALLS, _MAX_EARLIER = 12, 400


_Side = tuple[str, int]  # the only end of a slice, and its number
FROM_SECOND: _Side = ("lower", 1)
TO_LAST: _Side = ("upper", -1)


def predicts_next(facts: TraceIndex, backward: Backward) -> bool:
    """Returns whether the target of a loss is `x[:, 1:]`, and the model is given `x[:, :-1]`, or `[:, :-1]` of what it
    returns is compared."""
    return compared_with_next(facts, backward) is not None


def compared_with_next(facts: TraceIndex, backward: Backward) -> tuple[Call, Call] | None:
    """Returns the loss, or the difference, that has such a target, and the call that takes it from the sequence."""
    return _predicts(facts, backward, FROM_SECOND, TO_LAST)


def predicts_previous(facts: TraceIndex, backward: Backward) -> bool:
    """Returns whether it is the other way round, as in a model that reads from the right."""
    return _predicts(facts, backward, TO_LAST, FROM_SECOND) is not None


def _predicts(facts: TraceIndex, backward: Backward, wanted: _Side, given: _Side) -> tuple[Call, Call] | None:
    for call in recorded_above(facts, backward):
        if (op_name(call) not in _COMPARING and not op_name(call).endswith("_loss")) or len(call.inputs) < 2:
            continue
        made, target = (access.tensor for access in call.inputs[:2])
        if facts.requires_grad(target, call.index - 1):
            made, target = target, made
        parts = list(_parts(facts, target, call.index))
        for _, each in ancestry(facts, made, call.index, _MAX_EARLIER) if parts else ():
            if op_name(each) == "getitem":
                part = next((part for part in parts if _is_shifted(facts, each, part, wanted, given)), None)
                if part is not None:
                    return call, part
    return None


def _parts(facts: TraceIndex, number: int, before: int) -> Iterator[Call]:
    """Yields the calls that take a target from a sequence by slices; of a batch, those of its first item."""
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or facts.requires_grad(made.inputs[0].tensor, made.index - 1):
            return
        if op_name(made) == "getitem":
            yield made
        elif op_name(made) not in RESHAPING and not is_batch(facts, made):
            return
        number, before = made.inputs[0].tensor, made.index


def is_batch(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a loader stacks items to a batch, which leaves the steps of each where they are."""
    return op_name(call) == "stack" and facts.trace.sites[call.site].through in _LOADERS


def _is_shifted(facts: TraceIndex, one: Call, other: Call, wanted: _Side, given: _Side) -> bool:
    """Returns whether one part is given to a model, and the other one, a step later or earlier, is what it predicts."""
    same = one.inputs[0].tensor == other.inputs[0].tensor
    if has_slice(facts, other, wanted) and has_slice(facts, one, given):
        return same or facts.requires_grad(one.inputs[0].tensor, one.index - 1)
    if not same or facts.trace.sites[one.site].function != facts.trace.sites[other.site].function:
        return False
    early, late = (one, other) if wanted == FROM_SECOND else (other, one)
    shapes = [facts.tensor(call.outputs[0].tensor).shape for call in (early, late)]
    begins = [[each.lower for each in slices_of(facts, call)] for call in (early, late)]
    if shapes[0] != shapes[1] or len(begins[0]) != len(begins[1]):
        return False
    pairs = [(a, b) for a, b in zip(*begins, strict=True) if _code(a) != _code(b)]
    return len(pairs) == 1 and _is_one_more(*pairs[0])


def _is_one_more(early: ast.expr | None, late: ast.expr | None) -> bool:
    """Returns whether a slice begins a step after another one: `x[i + 1:i + n + 1]` after `x[i:i + n]`."""
    if not isinstance(late, ast.BinOp) or not isinstance(late.op, ast.Add) or early is None:
        return False
    sides = [_code(late.left), _code(late.right)]
    return sorted(sides) == sorted(("1", _code(early)))


def _code(node: ast.expr | None) -> str:
    return "" if node is None else ast.unparse(node)


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
