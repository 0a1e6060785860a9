"""Finds copies of a mask, one for each head, that are in another order than the heads of the batch.

Attention merges (batch, heads) to one dimension, as `nn.MultiheadAttention` expects of a mask of three dimensions.
`mask.repeat(heads, 1, 1)` puts the copies of the whole batch one after another: (heads, batch).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.mixed_rows import put_together
from tensorlens.records.model import Call

_LAYER = "multi_head_attention_forward"
_USES = frozenset("masked_fill add radd iadd where scaled_dot_product_attention baddbmm mul".split())
_JOINS, _MAX_STEPS = frozenset("stack cat concat vstack".split()), 12
_FILLS = frozenset("zeros ones full empty arange linspace eye zeros_like ones_like full_like".split())
_WIDER = frozenset("expand repeat tile expand_as broadcast_to".split())
_MAX_CALLS, _FEWEST = 200, 2
_DRAWS = frozenset("rand randn rand_like randn_like bernoulli dropout randperm normal uniform".split())
_SIDES = frozenset("eq ne lt le gt ge isin".split())
_TAKES = frozenset("getitem index_select split chunk narrow".split())
_COPIES = frozenset("repeat tile cat concat getitem index_select repeat_interleave".split())


@dataclass(frozen=True, slots=True)
class CopiedMask:
    """A mask whose rows have the order `order`, where `user` has those of `rows`."""

    made: Call  # the copies
    user: Call
    order: tuple[int, int]
    rows: tuple[int, int]


def copied_masks(facts: TraceIndex) -> Iterator[CopiedMask]:
    """Yields these masks, one for each line that makes them."""
    reported, asked = set[int](), dict[int, int]()
    for call in facts.calls:
        if op_name(call) not in _USES | {_LAYER} or not call.inputs:
            continue
        asked[call.site] = asked.get(call.site, 0) + 1
        if asked[call.site] > 2:
            continue
        for each in _of_layer(facts, call) if op_name(call) == _LAYER else _of_scores(facts, call):
            if each.made.site not in reported:
                reported.add(each.made.site)
                yield each


def _of_layer(facts: TraceIndex, call: Call) -> Iterator[CopiedMask]:
    """Yields the mask of three dimensions that `nn.MultiheadAttention` gets."""
    query = facts.tensor(call.inputs[0].tensor).shape
    for access in call.inputs[1:] if len(query) == 3 else ():
        shape = facts.tensor(access.tensor).shape
        if len(shape) != 3 or shape[1] != query[0] or shape[0] == query[1] or shape[0] % query[1]:
            continue
        rows = query[1], shape[0] // query[1]
        found = put_together(facts, access.tensor, call.index, shape[0])
        is_turned = found is not None and found[1] == rows[::-1] and rows[0] != rows[1]
        if found is not None and is_turned and _may_differ(facts, found[0], rows[0]):
            yield CopiedMask(found[0], call, found[1], rows)


def _of_scores(facts: TraceIndex, call: Call) -> Iterator[CopiedMask]:
    """Yields the mask of scores whose heads a program merges with the batch itself."""
    tensors = list(dict.fromkeys(access.tensor for access in call.inputs))
    shapes = [facts.tensor(number).shape for number in tensors]
    if len({shape[0] for shape in shapes if len(shape) == 3}) != 1:
        return
    found = [
        each
        for number, shape in zip(tensors, shapes, strict=True)
        if len(shape) == 3 and (each := put_together(facts, number, call.index, shape[0])) is not None
    ]
    copies = [each for each in found if op_name(each[0]) in _COPIES]
    merged = [each for each in found if op_name(each[0]) not in _COPIES]
    for made, order in copies:
        for other, rows in merged:
            is_turned = order == rows[::-1] and order[0] != order[1] and made.index != other.index
            if is_turned and _may_differ(facts, made, rows[0]):
                yield CopiedMask(made, call, order, rows)
                return


def _may_differ(facts: TraceIndex, made: Call, rows: int) -> bool:
    """Returns whether a call copies rows of a mask that a comparison of the samples' data has made."""
    number, before = made.inputs[0].tensor, made.index
    compared = [call for _, call in ancestry(facts, number, before, _MAX_CALLS) if op_name(call) in _SIDES]
    sides = [(access.tensor, call.index) for call in compared for access in call.inputs]
    return any(_is_of_data(facts, *side, rows) for side in sides) and not _are_copies(facts, number, before)


def _is_of_data(facts: TraceIndex, number: int, before: int, rows: int) -> bool:
    """Returns whether a tensor has a row for each sample, and all of its sources are data of the samples."""
    waiting, found = [(number, before, rows)], False
    for number, before, size in waiting:
        shape = facts.tensor(number).shape
        made = next(iter(facts.producers(number, before)), None)
        if shape[:1] != (size,) or size < _FEWEST:
            continue
        name = "" if made is None else op_name(made)
        if name in _DRAWS or len(waiting) > _MAX_CALLS:
            return False
        if made is None or not made.inputs:
            found |= name not in _FILLS
            continue
        shapes = [facts.tensor(access.tensor).shape for access in made.inputs]
        if name in ("stack", "pad_sequence"):
            found |= len({access.tensor for access in made.inputs}) > 1
        elif name in _TAKES:
            waiting.append((made.inputs[0].tensor, made.index, shapes[0][0] if shapes[0] else 0))
        else:
            is_wider = [name in _WIDER and len(each) < len(shape) for each in shapes]
            pairs = zip(made.inputs, is_wider, strict=True)
            waiting += [(access.tensor, made.index, size) for access, is_less in pairs if not is_less]
    return found


def _are_copies(facts: TraceIndex, number: int, before: int) -> bool:
    """Returns whether the rows of a tensor are known to be copies of one row."""
    for _ in range(_MAX_STEPS):
        call = next(iter(facts.producers(number, before)), None)
        if call is None or not call.inputs:
            return False
        inputs = [access.tensor for access in call.inputs]
        own, result = facts.tensor(inputs[0]).shape, facts.tensor(call.outputs[0].tensor).shape
        is_one = len(own) < len(result) or own[:1] == (1,)
        joined = len(inputs) > 1 and len({_origin(facts, each, call.index) for each in inputs}) == 1
        if op_name(call) in _JOINS and is_one and joined:
            return True
        if op_name(call) in _WIDER and is_one and len(result) == 3:
            return True
        if len(set(inputs)) > 1:
            return False
        number, before = inputs[0], call.index
    return False


def _origin(facts: TraceIndex, number: int, before: int) -> int:
    """Returns the tensor that a view without a line of its own, as `mask[None]`, is made of."""
    made = next(iter(facts.producers(number, before)), None)
    is_view = made is not None and op_name(made) in ("getitem", "unsqueeze", "view") and len(made.inputs) == 1
    if made is None or not is_view:
        return number
    sizes = [prod(facts.tensor(each).shape) for each in (number, made.inputs[0].tensor)]
    return made.inputs[0].tensor if sizes[0] == sizes[1] else number
