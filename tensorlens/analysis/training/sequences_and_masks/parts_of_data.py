"""Finds out whether two parts of one tensor share nothing, as the channels that a model is given and others."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.written_numbers import written_number
from tensorlens.records.model import Call

_PARTS = frozenset("chunk split unbind tensor_split".split())
_Taken = dict[int, set[int] | str]  # of each dimension: the places, or the source of an index that can't be read


def are_apart(facts: TraceIndex, one: Sequence[Call], other: Sequence[Call]) -> bool:
    """Returns whether calls, the nearest to the tensor first, take other places of a dimension than others do."""
    if one and other and one[0] is other[0] and op_name(one[0]) in _PARTS:
        return True
    first, second = _taken(facts, one), _taken(facts, other)
    for place in first.keys() & second.keys():
        places = first[place], second[place]
        if any(isinstance(each, str) for each in places):
            if places[0] != places[1]:
                return True
        elif not set(places[0]) & set(places[1]):
            return True
    return False


def _taken(facts: TraceIndex, calls: Sequence[Call]) -> _Taken:
    """Returns the places that indices take of each dimension that they say something about."""
    if not calls:
        return {}
    shape = facts.tensor(calls[0].inputs[0].tensor).shape
    left, taken = list(range(len(shape))), _Taken()
    for call in calls:
        node = facts.node_at(call.site)
        if op_name(call) != "getitem" or not isinstance(node, ast.Subscript):
            break
        given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(each, ast.Constant) and each.value in (None, ...) for each in given) or len(given) > len(
            left
        ):
            break
        gone = list[int]()
        for place, index in zip(left, given, strict=False):
            if isinstance(index, ast.Slice):
                places = _places(facts, index, shape[place])
                if places is not None and place not in taken:
                    taken[place] = places
                continue
            number = written_number(facts, index)
            taken[place] = ast.unparse(index) if number is None else {int(number) % max(shape[place], 1)}
            gone.append(place)
        left = [each for each in left if each not in gone]
    return taken


def _places(facts: TraceIndex, index: ast.Slice, size: int) -> set[int] | None:
    """Returns the places of a slice; None for all, and where its ends can't be read."""
    ends = [None if each is None else written_number(facts, each) for each in (index.lower, index.upper)]
    is_read = all(
        each is None or number is not None for each, number in zip((index.lower, index.upper), ends, strict=True)
    )
    if not is_read or index.step is not None or ends == [None, None]:
        return None
    return set(range(*slice(*(None if each is None else int(each) for each in ends)).indices(size)))
