"""Finds masks of attention that hide each position and those before it, and leave the later ones.

`scaled_dot_product_attention` attends where a mask of bools is True; `nn.MultiheadAttention` and `masked_fill` hide
what is True. A causal mask for one of them is turned round for the other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_DOT, _LAYER = "scaled_dot_product_attention", "multi_head_attention_forward"
_FILLS = frozenset(("masked_fill", "masked_fill_"))
_SAME = frozenset("getitem unsqueeze squeeze expand view to bool contiguous clone detach type_as".split())
_NOT = frozenset("invert logical_not bitwise_not not".split())
_INPUTS = 3  # query, key, value
_MAX_CALLS = 8
_HIDING = -1e3  # a score that no other position needs


@dataclass(frozen=True, slots=True)
class TurnedMask:
    """A call that takes a mask, the mask, and the triangle that it was made from."""

    call: Call
    mask: int
    triangle: Call
    attends: bool  # where the mask is True; else it hides there


def turned_masks(facts: TraceIndex) -> Iterator[TurnedMask]:
    """Yields these masks, one for each line."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            found = _turned(facts, call) if call.site not in reported else None
            if found is not None:
                reported.add(call.site)
                yield found


def _turned(facts: TraceIndex, call: Call) -> TurnedMask | None:
    name = op_name(call)
    given = _hiding_mask(facts, call) if name in _FILLS else _mask(facts, call) if name in (_DOT, _LAYER) else None
    if given is None:
        return None
    mask, before = given
    found = _triangle(facts, mask, before)
    if found is None or len(facts.tensor(mask).shape) < 2 or len(set(facts.tensor(mask).shape[-2:])) != 1:
        return None
    triangle, is_not = found
    is_later = _is_later(facts, triangle)
    attends = name == _DOT
    leaves_later = is_later is not None and (is_later != is_not) == attends
    return TurnedMask(call, mask, triangle, attends) if leaves_later else None


def _mask(facts: TraceIndex, call: Call) -> tuple[int, int] | None:
    """Returns the bools that attention is given, with the event that uses them. A layer makes numbers of them first."""
    given = {access.tensor for access in call.inputs[:_INPUTS]}
    for number in (access.tensor for access in call.inputs[_INPUTS:] if access.tensor not in given):
        if facts.tensor(number).dtype == "bool":
            return number, call.index
        made = next(iter(facts.producers(number, call.index)), None)
        if made is not None and op_name(made) in _FILLS and made.site == call.site and len(made.inputs) == 2:
            return made.inputs[1].tensor, made.index
    return None


def _hiding_mask(facts: TraceIndex, call: Call) -> tuple[int, int] | None:
    """Returns the bools of a `masked_fill()` of the script that fills with minus infinity, or nearly so."""
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or len(call.inputs) != 2:
        return None
    value = written_number(
        facts, next(iter([k.value for k in node.keywords if k.arg == "value"] or node.args[-1:]), None)
    )
    return (call.inputs[1].tensor, call.index) if value is not None and value <= _HIDING else None


def _triangle(facts: TraceIndex, number: int, before: int) -> tuple[Call, bool] | None:
    """Returns the `tril()` or `triu()` that a mask was made by, and whether it is the opposite of it."""
    is_not = False
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or len(made.inputs) > 1:
            return None
        name = op_name(made)
        if name in ("tril", "triu"):
            base = next(iter(facts.producers(made.inputs[0].tensor, made.index)), None)
            return (made, is_not) if base is not None and op_name(base) in ("ones", "ones_like") else None
        if (name == "eq" and _compared(facts, made) == 0) or name in _NOT:
            is_not = not is_not
        elif name not in _SAME and not (name == "eq" and _compared(facts, made) == 1):
            return None
        number, before = made.inputs[0].tensor, made.index
    return None


def _compared(facts: TraceIndex, call: Call) -> float | None:
    """Returns the number that a comparison of the source compares with."""
    span = facts.span(call.site)
    node = None if span is None else facts.names.syntax.node(span)
    return written_number(facts, node.comparators[0]) if isinstance(node, ast.Compare) else None


def _is_later(facts: TraceIndex, triangle: Call) -> bool | None:
    """Returns whether a triangle of ones has them for the positions after each one; False: for the others. None if it
    has them for other positions."""
    span = facts.span(triangle.site)
    node = None if span is None else facts.names.syntax.node(span)
    if not isinstance(node, ast.Call):
        return None
    is_method = triangle.op.startswith("Tensor.")
    given = [each.value for each in node.keywords if each.arg == "diagonal"] or node.args[0 if is_method else 1 :][:1]
    diagonal = written_number(facts, given[0]) if given else 0
    if op_name(triangle) == "triu":
        return True if diagonal == 1 else None
    return False if diagonal == 0 else None
