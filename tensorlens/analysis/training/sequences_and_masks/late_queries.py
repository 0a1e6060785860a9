"""Finds causal masks for queries that are the last positions of the keys, where a mask counts from the first key.

`scaled_dot_product_attention(q, k, v, is_causal=True)` with 4 queries and 12 keys lets query 0 see key 0 only, as
`torch.ones(4, 12).tril()` does. If `k` is `torch.cat([cached, new])`, no query sees the keys of its own position.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.sequences_and_masks.next_steps import has_slice
from tensorlens.analysis.training.sequences_and_masks.turned_masks import DOT, given_mask
from tensorlens.analysis.training.triangles import triangle_of
from tensorlens.analysis.written_call import written_call
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.analysis.written_numbers import only_value
from tensorlens.records.model import Call

_FILLS = frozenset(("masked_fill", "masked_fill_", "where"))
_JOINS = frozenset("cat concat concatenate".split())
_PRODUCTS = frozenset(("matmul", "bmm", "einsum"))
_SCALED = frozenset("mul div truediv add".split())
_CAUSAL_PLACE = 5  # of `is_causal` among the arguments
_STEPS, _NEAR = 6, 60
_LEAST = 2  # keys in front: with one, a mask may leave out the position itself on purpose


@dataclass(frozen=True, slots=True)
class LateQuery:
    """A call that masks scores from the first key on, and the call that shows that its queries are the last keys."""

    call: Call
    place: Call
    queries: int
    keys: int


def late_queries(facts: TraceIndex) -> Iterator[LateQuery]:
    """Yields these calls, one for each line."""
    reported = set[int]()
    for call in facts.calls:
        if call.site in reported or op_name(call) not in _FILLS | {DOT}:
            continue
        sides = _sides(facts, call)
        if sides is None:
            continue
        query, key, queries, keys = sides
        if not 0 < queries <= keys - _LEAST or not _is_from_first(facts, call):
            continue
        place = _joined(facts, call, (query, key), (queries, keys)) or _cut(facts, call, (query, key), (queries, keys))
        if place is not None:
            reported.add(call.site)
            yield LateQuery(call, place, queries, keys)


def _sides(facts: TraceIndex, call: Call) -> tuple[int, int, int, int] | None:
    """Returns the queries and keys of attention, and how many there are of each."""
    if op_name(call) == DOT:
        query, key = (access.tensor for access in call.inputs[:2])
        return query, key, facts.tensor(query).shape[-2], facts.tensor(key).shape[-2]
    shape = facts.tensor((call.outputs or call.inputs)[0].tensor).shape
    if len(shape) < 3 or shape[-2] >= shape[-1]:
        return None
    waiting = [(access.tensor, call.index) for access in call.inputs if facts.tensor(access.tensor).dtype != "bool"]
    for number, before in islice(waiting, _STEPS):
        made = next(iter(facts.producers(number, before)), None)
        if made is not None and op_name(made) in _PRODUCTS and len(made.inputs) == 2:
            return made.inputs[0].tensor, made.inputs[1].tensor, shape[-2], shape[-1]
        if made is not None and op_name(made) in _SCALED and made.inputs:
            waiting.append((made.inputs[0].tensor, made.index))
    return None


def _is_from_first(facts: TraceIndex, call: Call) -> bool:
    """Returns whether query 0 sees key 0 only, query 1 the first two, and so on."""
    mask = given_mask(facts, call)[0]
    if mask is not None:
        triangle = triangle_of(facts, mask.mask, mask.before)
        seen = triangle if triangle is None or mask.attends else triangle.opposite()
        return seen is not None and not seen.is_upper and seen.diagonal == 0
    return is_called_causal(facts, call)


def is_called_causal(facts: TraceIndex, call: Call) -> bool:
    """Returns whether the source gives attention `is_causal=True`, and no other mask."""
    written = written_call(facts, call) if op_name(call) == DOT and len(call.inputs) == 3 else None
    value = None if written is None or not written.is_whole else written.argument(_CAUSAL_PLACE, "is_causal")
    if isinstance(value, ast.Name | ast.Attribute):
        value = only_value(facts, value.id if isinstance(value, ast.Name) else value.attr)
    return isinstance(value, ast.Constant) and value.value is True


def _joined(facts: TraceIndex, call: Call, sides: tuple[int, int], sizes: tuple[int, int]) -> Call | None:
    """Returns the call that puts other keys in front of those that are made from the same as the queries."""
    query, key = sides
    for _, made in ancestry(facts, key, call.index, _NEAR):
        if op_name(made) not in _JOINS or len(made.inputs) < 2:
            continue
        dimension = written_dimension(facts, made)
        shapes = [facts.tensor(each.tensor).shape for each in (made.inputs[-1], made.outputs[0])]
        if dimension is None or tuple(shape[dimension] for shape in shapes) != sizes:
            continue
        last = _above(facts, made.inputs[-1].tensor, made.index)
        return made if last & _above(facts, query, call.index) else None
    return None


def _above(facts: TraceIndex, number: int, before: int) -> set[int]:
    """Returns a tensor and those near above it that are no parameters."""
    found = {number} | {each for _, made in ancestry(facts, number, before, _NEAR) for each in _read(made)}
    return {each for each in found if not facts.tensor(each).type.endswith("Parameter")}


def _read(call: Call) -> Iterator[int]:
    yield from (access.tensor for access in call.inputs)


def _cut(facts: TraceIndex, call: Call, sides: tuple[int, int], sizes: tuple[int, int]) -> Call | None:
    """Returns the index that takes the queries from the end of what the keys are made from."""
    query, key = sides
    for _, made in ancestry(facts, query, call.index, _NEAR):
        if op_name(made) == "getitem" and has_slice(facts, made, ("lower", -sizes[0])):
            source = made.inputs[0].tensor
            is_whole = sizes[1] in facts.tensor(source).shape
            return made if is_whole and source in _above(facts, key, call.index) else None
    return None
