"""Finds row numbers of several parts, as the edges of graphs, that a batch joins without the place of each part.

The same numbers are joined in two batches, beside the same rows, and these begin at different places. So they cannot
name the rows of their part in both.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.written_dimension import written_dimension
from tensorlens.records.model import Call

_JOINS = frozenset("cat concat concatenate hstack vstack".split())
_WHOLE = ("int64", "int32")
_KEEPING = frozenset(  # a part of the numbers, or all, as they are
    "getitem unbind iter select narrow split chunk t T mT transpose permute contiguous long int to type clone detach "
    "cpu cuda flip view reshape flatten squeeze unsqueeze expand expand_as index_select masked_select".split()
)
_READS = frozenset("getitem index_select gather take_along_dim".split())
_NEAR, _MAX_CALLS, _MAX_STEPS, _MAX_JOINS, _MAX_USES, _MAX_TRIED = 400, 240, 12, 400, 1_000, 4


@dataclass(frozen=True, slots=True)
class UnplacedNumbers:
    """Joined row numbers, the joined rows that they are used for, and where the rows of one part begin."""

    joined: Call
    rows: Call
    used: Call
    starts: tuple[int, int]  # of the rows of one part, in two batches


def unplaced_numbers(facts: TraceIndex) -> Iterator[UnplacedNumbers]:
    """Yields these, one for each line that joins numbers."""
    joins = (call for call in facts.calls if op_name(call) in _JOINS and len(call.inputs) > 1 and call.outputs)
    whole = (each for each in joins if facts.tensor(each.outputs[0].tensor).dtype in _WHOLE)
    reported, seen = set[int](), dict[tuple[int, int, int], tuple[int, Call]]()
    tried: Counter[tuple[int, int]] = Counter()
    for joined in islice(whole, _MAX_JOINS):
        if joined.site in reported or not _are_unchanged(facts, joined):
            continue
        near = facts.calls_between(joined.index - _NEAR, joined.index + _NEAR)
        for rows in (each for each in near if op_name(each) in _JOINS and _is_beside(facts, joined, each)):
            starts = None if tried[joined.site, rows.site] >= _MAX_TRIED else _moved(facts, joined, rows, seen)
            if starts is None or joined.site in reported:
                continue
            tried[joined.site, rows.site] += 1
            used = _use(facts, joined, rows)
            if used is not None:
                reported.add(joined.site)
                yield UnplacedNumbers(joined, rows, used, starts)


def _are_unchanged(facts: TraceIndex, joined: Call) -> bool:
    """Returns whether nothing writes to the joined numbers, nor to a part of them."""
    numbers = [access.tensor for access in (*joined.inputs, joined.outputs[0])]
    return len(set(numbers)) > 2 and not any(any(facts.writes(facts.tensor(each).counter)) for each in numbers)


def _is_beside(facts: TraceIndex, joined: Call, rows: Call) -> bool:
    """Returns whether a call joins as many parts along their rows, at about the same time."""
    if rows is joined or len(rows.inputs) != len(joined.inputs) or not rows.outputs:
        return False
    shapes = [facts.tensor(access.tensor).shape for access in rows.inputs]
    made = facts.tensor(rows.outputs[0].tensor).shape
    return all(shapes) and made[:1] == (sum(shape[0] for shape in shapes),)


def _moved(
    facts: TraceIndex, joined: Call, rows: Call, seen: dict[tuple[int, int, int], tuple[int, Call]]
) -> tuple[int, int] | None:
    """Returns where the rows of a part begin in an earlier batch, which joins the same numbers, and in this one."""
    start, starts = 0, list[tuple[int, int, int]]()
    for numbers, part in zip(joined.inputs, rows.inputs, strict=True):
        if numbers.tensor != part.tensor:
            starts.append((numbers.tensor, part.tensor, start))
        start += facts.tensor(part.tensor).shape[0]
    for number, part_of, at in starts:
        before, earlier = seen.setdefault((joined.site, number, part_of), (at, joined))
        if before != at and earlier is not joined:
            return before, at
    return None


def _use(facts: TraceIndex, joined: Call, rows: Call) -> Call | None:
    """Returns a call that takes joined rows, or what layers make of them, at the joined numbers."""
    first, total = min(joined.index, rows.index), facts.tensor(rows.outputs[0].tensor).shape[0]
    for at, call in enumerate(facts.calls_between(first + 1)):
        if at > _MAX_USES:
            return None
        if len(call.inputs) != 2 or op_name(call) not in _READS:
            continue
        table, index = (access.tensor for access in call.inputs)
        if facts.tensor(index).dtype not in _WHOLE or facts.tensor(table).shape[:1] != (total,):
            continue
        if not _is_of_rows(facts, call) or not _comes_from(facts, index, call, joined):
            continue
        if any(made is rows for _, made in ancestry(facts, table, call.index, _MAX_CALLS)):
            return call
    return None


def _is_of_rows(facts: TraceIndex, call: Call) -> bool:
    """Returns whether a call takes items along the first dimension, as the source shows."""
    if op_name(call) != "getitem":
        return written_dimension(facts, call) == 0
    node = facts.node_at(call.site)
    return isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Tuple | ast.Slice)


def _comes_from(facts: TraceIndex, index: int, call: Call, joined: Call) -> bool:
    """Returns whether an index has joined numbers, or some of them, as they are."""
    number, before = index, call.index
    for _ in range(_MAX_STEPS):
        made = next(iter(facts.producers(number, before)), None)
        if made is joined:
            return True
        if made is None or not made.inputs or op_name(made) not in _KEEPING or made.writes:
            return False
        number, before = made.inputs[0].tensor, made.index
    return False
