"""Finds masks of attention that hide the tokens and leave the padding.

`nn.MultiheadAttention` and `masked_fill` hide what is True, `scaled_dot_product_attention` what is False.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.turned_masks import DOT, FILLS, LAYER, NOT, SAME, attention_masks, hiding_mask
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_OF_TOKENS = {"ne": True, "gt": True, "eq": False, "le": False}  # whether it is True at tokens that are no padding
_OF_LENGTHS = {"lt": True, "ge": False}  # of positions and lengths
_MAX_CALLS = 8
_LOWEST = -1e3
_VALID = re.compile(r"valid|keep|real|present|exist|nonpad|attention_mask", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HiddenTokens:
    """A call that takes a mask, and the comparison that made it."""

    call: Call
    comparison: Call
    attends: bool  # where the mask is True; else it hides there


def hidden_tokens(facts: TraceIndex) -> Iterator[HiddenTokens]:
    """Yields these masks, one for each line."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        tokens = {access.tensor for call in above if op_name(call) == "embedding" for access in call.inputs[:1]}
        for call in above if tokens else ():
            if call.site in reported:
                continue
            for mask, before in _masks(facts, call):
                found = _comparison(facts, mask, before, tokens)
                if found is None:
                    continue
                comparison, is_true, is_turned = found
                attends = op_name(call) == DOT
                if (is_true != is_turned) != attends:
                    reported.add(call.site)
                    yield HiddenTokens(call, comparison, attends)
                    break


def _masks(facts: TraceIndex, call: Call) -> list[tuple[int, int]]:
    """Returns the masks of attention or of scores that a call takes, each with the event that uses it."""
    masks = attention_masks(facts, call)
    if op_name(call) in FILLS:
        masks = [mask for mask in [hiding_mask(facts, call)] if mask is not None]
    return [(mask, before) for mask, before, _ in masks]


@dataclass(frozen=True, slots=True)
class OppositeMasks:
    """A layer that hides where a mask is True, and a call that hides where it is False, as its name says."""

    layer: Call
    fill: Call
    mask: int


def opposite_masks(facts: TraceIndex) -> Iterator[OppositeMasks]:
    """Yields these layers, one for each line. The mask of valid places is True where nothing is to be hidden."""
    reported: set[int] = set()
    for backward in examined_passes(facts):
        layers: dict[int, Call] = {}
        fills: dict[int, Call] = {}
        for call in facts.calls_between(0, backward.index):
            if op_name(call) == LAYER:
                layers |= {mask: call for mask, before in _masks(facts, call) if _is_valid(facts, mask, before)}
            elif op_name(call) in FILLS:
                turned = _turned(facts, call)
                fills |= {} if turned is None else {turned: call}
        for mask in layers.keys() & fills.keys():
            if layers[mask].site not in reported:
                reported.add(layers[mask].site)
                yield OppositeMasks(layers[mask], fills[mask], mask)


def _is_valid(facts: TraceIndex, mask: int, before: int) -> bool:
    return _VALID.search(facts.name(mask, before)) is not None


def _turned(facts: TraceIndex, fill: Call) -> int | None:
    """Returns the mask of which a fill with a very low number takes the opposite."""
    span = facts.span(fill.site)
    node = None if span is None else facts.names.syntax.node(span)
    if not isinstance(node, ast.Call) or not node.args or len(fill.inputs) != 2:
        return None
    value = written_number(facts, node.args[-1])
    made = next(iter(facts.producers(fill.inputs[1].tensor, fill.index)), None)
    is_low = value is not None and value <= _LOWEST
    return made.inputs[0].tensor if is_low and made is not None and op_name(made) in NOT and made.inputs else None


def _comparison(facts: TraceIndex, mask: int, before: int, tokens: set[int]) -> tuple[Call, bool, bool] | None:
    """Returns the comparison with padding that a mask was made by, whether it is True at tokens, and whether the mask
    is the opposite of it."""
    number, is_turned = mask, False
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        name = op_name(made)
        if name in _OF_TOKENS and len(made.inputs) == 1:
            is_of_padding = made.inputs[0].tensor in tokens and _is_with_padding(facts, made)
            return (made, _OF_TOKENS[name], is_turned) if is_of_padding else None
        if name in _OF_LENGTHS and len(made.inputs) == 2:
            positions, lengths = (_is_counted(facts, access.tensor, made.index) for access in made.inputs)
            return (made, _OF_LENGTHS[name], is_turned) if positions and not lengths else None
        if name not in SAME | NOT or len(made.inputs) > 1:
            return None
        is_turned ^= name in NOT
        number, before = made.inputs[0].tensor, made.index
    return None


def _is_with_padding(facts: TraceIndex, comparison: Call) -> bool:
    """Returns whether a line compares with 0, or with something that it calls padding."""
    span = facts.span(comparison.site)
    node = None if span is None else facts.names.syntax.node(span)
    other = node.comparators[0] if isinstance(node, ast.Compare) else None
    other = node.args[-1] if isinstance(node, ast.Call) and node.args else other
    if other is None:
        return False
    is_pad = "pad" in ast.unparse(other).lower() and op_name(comparison) in ("ne", "eq")
    return is_pad or written_number(facts, other) == 0


def _is_counted(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether a tensor is a range of positions."""
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or op_name(made) not in SAME:
            return made is not None and op_name(made) == "arange"
        number, before = made.inputs[0].tensor, made.index
    return False
