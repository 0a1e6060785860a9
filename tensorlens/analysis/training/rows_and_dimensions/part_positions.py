"""Finds positions among some rows of a table, as `score(x[pool]).topk(k).indices`, that are used as ids of all rows."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.row_starts import TAKING, row_starts
from tensorlens.records.model import Access, Call

_CHOOSING = frozenset("topk argsort sort argmax argmin multinomial".split())
_VIEWS = frozenset("squeeze unsqueeze flatten view reshape contiguous to detach cpu cuda clone long flip".split())
_JOINS = frozenset("cat concat concatenate hstack".split())
_WRITES = frozenset(("setitem", "index_fill_"))
_PARTS = frozenset("split chunk tensor_split".split())
_DRAWS = frozenset("randperm multinomial randint".split())
_OF_IDS = _VIEWS | _JOINS | _PARTS | {"getitem", "sort", "unique"}
_KEPT = _OF_IDS | frozenset(  # made of ids, or of a mask that says which ids
    "setitem nonzero where invert logical_not bitwise_not index_fill_ isin bool eq ne".split()
)  # fmt: skip
_OF_MASK = frozenset("nonzero argwhere where invert logical_not bitwise_not eq ne squeeze flatten view reshape".split())
_WHOLE = frozenset(("int64", "int32"))
_MAX_RUNS, _FAR, _MAX_ABOVE, _MAX_VIEWS = 8, 3_000, 60, 6


@dataclass(frozen=True, slots=True)
class Part:
    """Some rows of a table, and the call that takes them by their ids."""

    table: Access
    ids: int
    taken: Call


@dataclass(frozen=True, slots=True)
class PartPositions:
    """A call that uses positions among some rows of a table as ids of its rows."""

    used: Call
    joined: Call | None  # what joins them with ids
    chosen: Call  # what counts the positions
    part: Part


def part_positions(facts: TraceIndex) -> Iterator[PartPositions]:
    """Yields these calls, one for each line that chooses positions.

    The ids of the rows must be known to differ from the positions, by a draw or as a range that begins later.
    """
    runs, reported = Counter[int](), set[int]()
    for call in facts.calls:
        if op_name(call) not in _CHOOSING or call.site in reported or not call.inputs or call.writes:
            continue
        if len(facts.tensor(call.inputs[0].tensor).shape) != 1 or runs[call.site] >= _MAX_RUNS:
            continue
        runs[call.site] += 1
        part = _part_of(facts, call.inputs[0].tensor, call.index)
        found = _use(facts, call, part) if part is not None and _is_apart(facts, part) else None
        if found is not None:
            reported.add(call.site)
            yield found


def _part_of(facts: TraceIndex, number: int, before: int, deep: int = 2) -> Part | None:
    """Returns the rows that a value has one element or row for, also where they are computed in batches."""
    starts = row_starts(facts, number, before)
    rows = facts.tensor(number).shape[:1]
    parts = list[Part | None]()
    for start in starts:
        made = start.call
        if made is None or not deep:
            return None
        values = [access.tensor for access in made.inputs]
        if start.is_taken:
            parts.append(Part(made.inputs[0], values[1], made) if _takes_some(facts, made, rows) else None)
        elif op_name(made) in _JOINS:
            parts.append(_in_batches(facts, [_part_of(facts, each, made.index, deep - 1) for each in values], rows))
        else:
            return None
    return _one_of(parts)


def _takes_some(facts: TraceIndex, made: Call, rows: tuple[int, ...]) -> bool:
    """Returns whether a call takes some rows of a table by their ids, or by a mask of all of them."""
    shape, index = (facts.tensor(access.tensor).shape for access in made.inputs)
    is_by_ids = facts.tensor(made.inputs[1].tensor).dtype in _WHOLE and index == rows
    is_by_mask = facts.tensor(made.inputs[1].tensor).dtype == "bool" and index == shape[:1]
    is_of_rows = facts.tensor(made.outputs[0].tensor).shape == (*rows, *shape[1:])
    return is_of_rows and shape[:1] > rows and (is_by_ids or is_by_mask)


def _one_of(parts: Sequence[Part | None]) -> Part | None:
    """Returns the rows that several values are of, if these are the same."""
    known = [each for each in parts if each is not None]
    same = {(each.table, each.ids) for each in known}
    return known[0] if len(same) == 1 and len(known) == len(parts) else None


def _in_batches(facts: TraceIndex, parts: Sequence[Part | None], rows: tuple[int, ...]) -> Part | None:
    """Returns the rows that are taken in batches, by all parts of a split of their ids, in its order."""
    first = parts[0]
    split = None if first is None else facts.creator(first.ids)
    if first is None or split is None or op_name(split) not in _PARTS:
        return None
    ids = [None if each is None or each.table != first.table else each.ids for each in parts]
    whole = split.inputs[0].tensor
    is_whole = ids == [each.tensor for each in split.outputs] and facts.tensor(whole).shape == rows
    is_part = facts.tensor(first.table.tensor).shape[:1] > rows
    return Part(first.table, whole, first.taken) if is_whole and is_part else None


def _is_apart(facts: TraceIndex, part: Part) -> bool:
    """Returns whether some ids are known to be others than those that count from 0."""
    waiting, seen = [(part.ids, part.taken.index, True)], set[int]()
    for number, before, are_ids in waiting:
        if number in seen or len(seen) > _MAX_ABOVE:
            continue
        seen.add(number)
        for made in facts.producers(number, before):
            if op_name(made) in _DRAWS or (are_ids and _begins_later(facts, made)):
                return True
            if op_name(made) in _KEPT:
                is_same = are_ids and op_name(made) in _OF_IDS  # a mask may leave the first rows
                waiting += [(access.tensor, made.index, is_same) for access in made.inputs]
    return False


def _masks(facts: TraceIndex, part: Part) -> set[int]:
    """Returns the masks that say which of all rows some ids are of."""
    number, found = part.ids, set[int]()
    for _ in range(_MAX_VIEWS):
        if facts.tensor(number).dtype == "bool":
            found.add(number)
        made = facts.creator(number)
        if made is None or op_name(made) not in _OF_MASK or len(made.inputs) != 1:
            break
        number = made.inputs[0].tensor
    return found


def _begins_later(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a call makes a range as `arange(20, 100)`, or takes its end as `arange(100)[20:]`."""
    node = facts.node_at(made.site)
    if op_name(made) == "arange":
        return isinstance(node, ast.Call) and len(node.args) >= 2 and ast.unparse(node.args[0]) != "0"
    if op_name(made) != "getitem" or len(made.inputs) != 1 or not isinstance(node, ast.Subscript):
        return False
    counted = facts.creator(made.inputs[0].tensor)
    is_end = isinstance(node.slice, ast.Slice) and node.slice.lower is not None and ast.unparse(node.slice.lower) != "0"
    return is_end and counted is not None and op_name(counted) == "arange"


def _use(facts: TraceIndex, chosen: Call, part: Part) -> PartPositions | None:
    """Returns the first call that takes rows of the table by positions, or writes to a mask that the ids are from."""
    joins = dict[int, Call | None]({chosen.outputs[-1].tensor: None})  # positions -> what joined them
    masks, tables = _masks(facts, part), _tables(facts, part)
    for call in facts.calls_between(chosen.index + 1, chosen.index + _FAR):
        name, inputs = op_name(call), [access.tensor for access in call.inputs]
        held = [each for each in inputs if each in joins]
        if not held:
            continue
        if (
            len(inputs) > 1
            and inputs[1] in joins
            and (_takes_rows(facts, call, tables) or (name in _WRITES and inputs[0] in masks))
        ):
            return PartPositions(call, joins[inputs[1]], chosen, part)
        for write in call.writes:
            joins.pop(write.tensor, None)
        if name in _JOINS and all(facts.tensor(each).dtype in _WHOLE for each in inputs):
            joins[call.outputs[0].tensor] = joins[held[0]] or (call if len(held) < len(inputs) else None)
        elif name in _VIEWS or (name == "getitem" and inputs[0] in joins):
            joins[call.outputs[0].tensor] = joins[held[0]]
    return None


def _tables(facts: TraceIndex, part: Part) -> set[Access]:
    """Returns the table and what its rows are computed from, as a population whose fitness it is."""
    made = facts.creator(part.table.tensor)
    if made is None or op_name(made) in TAKING:
        return {part.table}
    starts = {start.tensor for start in row_starts(facts, part.table.tensor, part.taken.index)}
    rows = facts.tensor(part.table.tensor).shape[0]
    starts = {each for each in starts if facts.tensor(each).shape[:1] == (rows,)}
    calls = facts.calls_between(0, made.index)
    return {part.table, *(each for call in calls for each in call.inputs if each.tensor in starts)}


def _takes_rows(facts: TraceIndex, call: Call, tables: set[Access]) -> bool:
    if op_name(call) not in TAKING or call.inputs[0] not in tables:
        return False
    shape, index = (facts.tensor(access.tensor).shape for access in call.inputs[:2])
    return facts.tensor(call.outputs[0].tensor).shape == (*index, *shape[1:])
