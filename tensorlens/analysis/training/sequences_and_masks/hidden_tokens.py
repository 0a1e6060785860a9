"""Finds masks of attention that hide the tokens and leave the padding.

`nn.MultiheadAttention` and `masked_fill` hide what is True, `scaled_dot_product_attention` what is False.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.name_words import words_of_last
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.sequences_and_masks.padding_signs import is_with_padding, lengths_of, marks_beginnings
from tensorlens.analysis.training.sequences_and_masks.score_masks import FILLS, ScoreMask, hiding_mask
from tensorlens.analysis.training.sequences_and_masks.turned_masks import LAYER, attention_masks
from tensorlens.analysis.training.triangles import NOT, SAME
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_OF_TOKENS = {"ne": True, "gt": True, "eq": False, "le": False}  # whether it is True at tokens that are no padding
_OF_LENGTHS = {"lt": True, "ge": False}  # of positions and lengths
_MAX_CALLS = 8
_LOWEST = -1e3
_MAX_EARLIER = 400
_VALID = ("valid", "real", "nonpad", "non_pad", "attention_mask")
_NOT_VALID = frozenset("not no un in never".split())


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
        lookups = [call for call in above if op_name(call) == "embedding" and len(call.inputs) > 1]
        uses = [use for call in above for use in _uses(facts, call, lookups)] if lookups else []
        both = {use.lengths for use in uses if not use.hides}  # another layer looks at the places on the other side
        for use in uses:
            if use.hides and use.call.site not in reported and (use.lengths is None or use.lengths not in both):
                reported.add(use.call.site)
                yield HiddenTokens(use.call, use.comparison, use.attends)


@dataclass(frozen=True, slots=True)
class _Use:
    call: Call
    comparison: Call
    hides: bool  # the tokens
    attends: bool  # where the mask is True
    lengths: int | None  # that the places are compared with, if they are


def _uses(facts: TraceIndex, call: Call, lookups: list[Call]) -> Iterator[_Use]:
    """Yields the uses that a call makes of masks of padding."""
    for given in _masks(facts, call):
        found = _comparison(facts, given.mask, given.before, lookups)
        if found is not None:
            comparison, is_true, is_turned, lengths = found
            yield _Use(call, comparison, (is_true != is_turned) != given.attends, given.attends, lengths)


def _masks(facts: TraceIndex, call: Call) -> list[ScoreMask]:
    """Returns the masks of attention or of scores that a call takes."""
    if op_name(call) in FILLS:
        return [mask for mask in [hiding_mask(facts, call)] if mask is not None]
    return attention_masks(facts, call)


@dataclass(frozen=True, slots=True)
class OppositeMasks:
    """A layer that hides where a mask is True, and a call that hides where it is False, as its name says."""

    layer: Call
    fill: Call
    mask: int


def opposite_masks(facts: TraceIndex) -> Iterator[OppositeMasks]:
    """Yields these layers, one for each line. The mask of valid places is True where nothing is to be hidden.

    The call fills scores of what the layer returns: other scores may be of the places that the layer does not look at.
    """
    reported: set[int] = set()
    for backward in examined_passes(facts):
        layers: dict[int, Call] = {}
        for call in facts.calls_between(0, backward.index):
            if op_name(call) == LAYER:
                masks = _masks(facts, call)
                layers |= {each.mask: call for each in masks if _is_valid(facts, each.mask, each.before)}
                continue
            mask = _turned(facts, call) if op_name(call) in FILLS else None
            if mask is None or mask not in layers or layers[mask].site in reported:
                continue
            scores = ancestry(facts, call.inputs[0].tensor, call.index, _MAX_EARLIER)
            if any(made is layers[mask] for _, made in scores):
                reported.add(layers[mask].site)
                yield OppositeMasks(layers[mask], call, mask)


def _is_valid(facts: TraceIndex, mask: int, before: int) -> bool:
    """Returns whether a mask is named as that of valid places, and is True at the beginning of each row."""
    words = words_of_last(facts.name(mask, before))
    is_named = any(f"_{name}_" in f"_{'_'.join(words)}_" for name in _VALID)
    return is_named and not _NOT_VALID & set(words) and marks_beginnings(facts, mask, before)


def _turned(facts: TraceIndex, fill: Call) -> int | None:
    """Returns the mask of which a fill with a very low number takes the opposite."""
    node = facts.node_at(fill.site)
    if not isinstance(node, ast.Call) or not node.args or len(fill.inputs) != 2:
        return None
    value = written_number(facts, node.args[-1])
    made = next(iter(facts.producers(fill.inputs[1].tensor, fill.index)), None)
    is_low = value is not None and value <= _LOWEST
    return made.inputs[0].tensor if is_low and made is not None and op_name(made) in NOT and made.inputs else None


def _comparison(
    facts: TraceIndex, mask: int, before: int, lookups: list[Call]
) -> tuple[Call, bool, bool, int | None] | None:
    """Returns the comparison with padding that made a mask, whether it is True at tokens, whether the mask is the
    opposite of it, and the lengths if it compares places with them."""
    number, is_turned = mask, False
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs:
            return None
        name = op_name(made)
        if name in _OF_TOKENS and len(made.inputs) == 1:
            is_read = any(call.inputs[0].tensor == made.inputs[0].tensor for call in lookups)
            is_of_padding = is_read and is_with_padding(facts, made, lookups)
            is_of_padding = is_of_padding and not _is_between(facts, made.inputs[0].tensor, lookups)
            return (made, _OF_TOKENS[name], is_turned, None) if is_of_padding else None
        if name in _OF_LENGTHS and len(made.inputs) == 2:
            lengths, places = lengths_of(facts, made), facts.tensor(made.outputs[0].tensor).shape[-1:]
            is_of_keys = lengths is not None and facts.tensor(mask).shape[-1:] == places
            return (made, _OF_LENGTHS[name], is_turned, lengths) if is_of_keys else None
        if name not in SAME | NOT or len(made.inputs) > 1:
            return None
        is_turned ^= name in NOT
        number, before = made.inputs[0].tensor, made.index
    return None


def _is_between(facts: TraceIndex, ids: int, lookups: list[Call]) -> bool:
    """Returns whether a run has seen the id of the padding between others, as that of an empty square of a board."""
    tables = {call.inputs[1].tensor for call in lookups if call.inputs[0].tensor == ids}
    return any(each.inner and each.tensor in tables for each in facts.trace.inspection.padded_ids)
