"""Finds masks of attention that hide those before each position, and maybe itself, and leave the later ones.

`scaled_dot_product_attention` attends where a mask of bools is True; `nn.MultiheadAttention` and `masked_fill` hide
what is True. A causal mask for one of them is turned round for the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.code_around import function_around
from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.naming.name_words import words_of_last
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.sequences_and_masks.next_steps import predicts_next, predicts_previous
from tensorlens.analysis.training.sequences_and_masks.score_masks import (
    FILLS,
    ScoreMask,
    added_mask,
    bias_mask,
    hiding_mask,
)
from tensorlens.analysis.training.triangles import triangle_of
from tensorlens.records.model import Backward, Call

DOT, LAYER = "scaled_dot_product_attention", "multi_head_attention_forward"
_JOINS = frozenset("cat concat concatenate hstack".split())
_MAX_CALLS = 200
_INPUTS = 3  # query, key, value
_AHEAD = frozenset("anti non acausal reverse reversed backward future".split())


@dataclass(frozen=True, slots=True)
class TurnedMask:
    """A call that takes a mask, the mask, and the triangle that it was made from."""

    call: Call
    mask: int
    triangle: Call
    attends: bool  # where the mask is True; else it hides there
    is_sure: bool  # what is hidden has no weight at all, not a small one
    itself: bool  # each position sees itself, too
    is_added: bool  # a sum of scores and very low numbers hides there


def turned_masks(facts: TraceIndex) -> Iterator[TurnedMask]:
    """Yields these masks, one for each line. A program that masks both directions, each once, means to."""
    found: dict[int, TurnedMask] = {}
    for backward in examined_passes(facts):
        for call in recorded_above(facts, backward):
            leaves_later, mask = _of_call(facts, call)
            if leaves_later is False:
                return
            if mask is None:
                continue
            may_look_ahead = mask.itself or _is_joined(facts, mask, backward)
            if not may_look_ahead or _looks_back(facts, mask, backward):
                found.setdefault(call.site, mask)
    yield from found.values()


def _of_call(facts: TraceIndex, call: Call) -> tuple[bool | None, TurnedMask | None]:
    """Returns whether a call leaves each position those after it, and the facts if so; False if it leaves those before
    it, and None if it uses no such mask."""
    given, is_added = given_mask(facts, call)
    if given is None or len(facts.tensor(given.mask).shape) < 2 or len(set(facts.tensor(given.mask).shape[-2:])) != 1:
        return None, None
    found = triangle_of(facts, given.mask, given.before)
    if found is None:
        return None, None
    seen = found if given.attends else found.opposite()
    if not seen.is_upper:
        return False, None
    if seen.diagonal not in (0, 1):
        return None, None
    itself = seen.diagonal == 0
    return True, TurnedMask(call, given.mask, found.made, given.attends, given.is_sure, itself, is_added)


def given_mask(facts: TraceIndex, call: Call) -> tuple[ScoreMask | None, bool]:
    """Returns the mask that a call hides scores by, and whether a sum does so."""
    if op_name(call) in FILLS:
        return hiding_mask(facts, call), False
    masks = attention_masks(facts, call)
    if masks or op_name(call) not in (DOT, LAYER):
        return (masks[0], False) if masks else (added_mask(facts, call), True)
    biases = (bias_mask(facts, access.tensor, call.index) for access in call.inputs[_INPUTS:])
    return next((mask for mask in biases if mask is not None), None), True


def _is_joined(facts: TraceIndex, mask: TurnedMask, backward: Backward) -> bool:
    """Returns whether a call puts what each position sees beside the value of the position itself: a summary of what
    comes later, as one of the rest of a path or of the nodes below, has a place of its own."""
    above = sorted(recorded_above(facts, backward), key=lambda call: call.index)
    made = {access.tensor for access in mask.call.outputs}
    given: set[int] | None = None
    for call in above:
        inputs = {access.tensor for access in call.inputs}
        if call.index <= mask.call.index or made.isdisjoint(inputs):
            continue
        if op_name(call) in _JOINS and inputs - made:
            if given is None:
                before = ancestry(facts, mask.call.inputs[0].tensor, mask.call.index, _MAX_CALLS)
                given = {access.tensor for _, each in before for access in each.inputs}
                given |= {access.tensor for access in mask.call.inputs}
            return bool((inputs - made) & given)
        made |= {access.tensor for access in call.outputs}
    return False


def _looks_back(facts: TraceIndex, mask: TurnedMask, backward: Backward) -> bool:
    """Returns whether a model is to predict the next step, or the source calls a mask causal: others may look ahead."""
    span = facts.span(mask.triangle.site)
    around = None if span is None else function_around(facts, span.file, span.line)
    names = [facts.name(mask.mask, mask.call.index) or "", "" if around is None else around.name]
    names += [] if around is None else [each.arg for each in (*around.args.args, *around.args.kwonlyargs)]
    words = {word for name in names for word in words_of_last(name)}
    is_causal = "causal" in words and not words & _AHEAD and not predicts_previous(facts, backward)
    return is_causal or predicts_next(facts, backward)


def attention_masks(facts: TraceIndex, call: Call) -> list[ScoreMask]:
    """Returns the bools that attention is given, each with the event that uses them.

    A layer makes numbers of them first.
    """
    if op_name(call) not in (DOT, LAYER):
        return []
    found: list[ScoreMask] = []
    given = {access.tensor for access in call.inputs[:_INPUTS]}
    for number in (access.tensor for access in call.inputs[_INPUTS:] if access.tensor not in given):
        if facts.tensor(number).dtype == "bool":
            found.append(ScoreMask(number, call.index, True, attends=op_name(call) == DOT))
            continue
        made = next(iter(facts.producers(number, call.index)), None)
        if made is not None and op_name(made) in FILLS and made.site == call.site and len(made.inputs) == 2:
            found.append(ScoreMask(made.inputs[1].tensor, made.index, True))
    return found
