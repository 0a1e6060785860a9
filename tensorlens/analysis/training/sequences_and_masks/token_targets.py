"""Finds out whether the targets of a loss are the ids of the sequences that a model reads, not tags or masked ids.

It also finds other terms of such a loss, which may train where a sequence ends.
"""

from __future__ import annotations

from math import prod

from tensorlens.analysis.lineage import MAX_CALLS, ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.records.model import Backward, Call

_READING = frozenset("embedding embedding_bag getitem index_select one_hot".split())
_JOINING = frozenset("cat stack pad_sequence tensor as_tensor from_numpy".split())
_COMPUTING = frozenset("remainder fmod floor_divide div truediv floordiv bitwise_and argmax bucketize eq ne".split())
_CHOOSING = frozenset("where masked_fill setitem mul".split())
_RANDOM = frozenset("rand rand_like bernoulli uniform from_numpy".split())
_DRAWN = frozenset(("bool", "float32", "float64"))
_STATES = frozenset("embedding gru lstm rnn_tanh rnn_relu batch_norm layer_norm".split())
_MAX_READING, _MAX_ABOVE, _MAX_MASK = 2_000, 30, 40


def is_of_tokens(facts: TraceIndex, loss: Call, target: int, masks: tuple[tuple[int, int], ...]) -> bool:
    """Returns whether the model reads ids of as many kinds as a loss has classes, and the targets are not computed from
    others, nor chosen at random."""
    if _is_computed(facts, target, loss.index) or _is_chosen_at_random(facts, target, loss.index):
        return False
    if any(_is_random(facts, number, before) for number, before in masks):
        return False
    shape = next((facts.tensor(each.tensor).shape for each in loss.inputs if each.tensor != target), ())
    for _, made in ancestry(facts, loss.inputs[0].tensor, loss.index, _MAX_READING):
        if op_name(made) in _READING:
            tables = [access.tensor for access in made.inputs if facts.requires_grad(access.tensor, made.index - 1)]
            kinds = [facts.tensor(each).shape[:1] for each in tables]
            kinds += [facts.tensor(each.tensor).shape[-1:] for each in made.outputs if op_name(made) == "one_hot"]
            if any(kind and kind[0] in shape[-1:] + shape[1:2] for kind in kinds):
                return True
    return False


def _is_computed(facts: TraceIndex, target: int, before: int) -> bool:
    """Returns whether targets come from a calculation on ids that were put together before it."""
    for _ in range(_MAX_ABOVE):
        made = next(iter(facts.producers(target, before)), None)
        if made is None or not made.inputs or op_name(made) in _JOINING:
            return False
        if op_name(made) in _COMPUTING:
            return True
        numbers = [access.tensor for access in made.inputs if facts.tensor(access.tensor).dtype != "bool"]
        if not numbers:
            return False
        target, before = numbers[0], made.index
    return False


def _is_chosen_at_random(facts: TraceIndex, target: int, before: int) -> bool:
    """Returns whether a random mask has chosen among the targets, as those of a masked language model."""
    for _, made in ancestry(facts, target, before, 10 * _MAX_ABOVE):
        masks = [access.tensor for access in made.inputs if facts.tensor(access.tensor).dtype == "bool"]
        if op_name(made) in _CHOOSING and any(_is_random(facts, each, made.index) for each in masks):
            return True
    return False


def _is_random(facts: TraceIndex, mask: int, before: int) -> bool:
    """Returns whether a mask was drawn for each of its places, or comes from an array."""
    places = len(facts.tensor(mask).shape)
    for number, made in ancestry(facts, mask, before, _MAX_MASK):
        drawn = facts.tensor(number)
        if op_name(made).rstrip("_") in _RANDOM and drawn.dtype in _DRAWN and len(drawn.shape) == places:
            return True
    return False


def has_terms_by_hand(facts: TraceIndex, backward: Backward, losses: list[Call]) -> bool:
    """Returns whether a term of a pass that has none of some losses in it reads other numbers beside what a model
    gives: a likelihood that the program writes itself may train where to end."""
    ends = {each.index for each in losses}
    body = {made.index for each in losses for one in each.inputs for _, made in ancestry(facts, one.tensor, each.index)}
    walked, users = dict[int, Call](), dict[int, list[int]]()
    waiting = [(root.tensor, backward.index, -1) for root in backward.roots]
    for number, before, user in waiting:
        call = next(iter(facts.producers(number, before)), None)
        if call is None or len(walked) > MAX_CALLS:
            continue
        users.setdefault(call.index, []).append(user)
        if call.index in walked or call.index in ends or call.index in body:
            continue
        walked[call.index] = call
        waiting += [(each, call.index, call.index) for each in _trained(facts, call)]
    reaching, following = set(ends), list(ends)
    for index in following:
        following += [user for user in users.get(index, ()) if user not in reaching]
        reaching.update(users.get(index, ()))
    return any(_reads_others(facts, call, reaching) for call in walked.values())


def _trained(facts: TraceIndex, call: Call) -> list[int]:
    return [access.tensor for access in call.inputs if facts.requires_grad(access.tensor, call.index - 1)]


def _reads_others(facts: TraceIndex, call: Call, reaching: set[int]) -> bool:
    trained = _trained(facts, call)
    others = [access.tensor for access in call.inputs if access.tensor not in trained]
    if op_name(call) in _STATES or all(prod(facts.tensor(each).shape) <= 1 for each in others):
        return False
    above = [next(iter(facts.producers(each, call.index)), None) for each in trained]
    return call.index not in reaching or any(each is not None and each.index not in reaching for each in above)
