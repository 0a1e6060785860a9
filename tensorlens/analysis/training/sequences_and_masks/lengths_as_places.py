"""Finds indices that take the step after the last one: the length of a sequence, cut off at the last place.

`states[rows, lengths.clamp(max=T - 1)]` is the last step only of a sequence that has no padding; of a shorter one it
is the first place of the padding.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.looked_at import by_line
from tensorlens.analysis.training.loss_calls import examined_passes, recorded_above
from tensorlens.analysis.training.sequences_and_masks.padding_masks import padding_places
from tensorlens.analysis.training.sequences_and_masks.padding_signs import lengths_of
from tensorlens.analysis.training.sequences_and_masks.step_shifts import may_shift
from tensorlens.analysis.training.whole_index import is_whole_index
from tensorlens.analysis.written_call import written_call
from tensorlens.records.model import Call

_TAKING = frozenset("getitem gather take_along_dim".split())
_CLAMPS = frozenset(("clamp", "clip", "clamp_max", "minimum"))
_SAME = frozenset("view reshape unsqueeze squeeze expand long int to cpu clone contiguous repeat flatten".split())
_MAX_CALLS, _MAX_EARLIER = 10, 400


@dataclass(frozen=True, slots=True)
class LengthAsPlace:
    """A call that takes steps, the one that cuts the lengths off, and how many steps there are."""

    taken: Call
    clamp: Call
    steps: int


def lengths_as_places(facts: TraceIndex) -> Iterator[LengthAsPlace]:
    """Yields these calls, one for each line."""
    reported = set(_measured_others(facts))
    for backward in examined_passes(facts):
        above = recorded_above(facts, backward)
        lookups = [call for call in above if op_name(call) == "embedding" and len(call.inputs) > 1]
        for call in above:
            if op_name(call) in _TAKING and len(call.inputs) > 1 and call.site not in reported:
                clamp = _clamp(facts, call)
                steps = 0 if clamp is None else _steps(facts, clamp, lookups)
                is_of_steps = clamp is not None and steps > 1 and _is_of_steps(facts, call, clamp, steps)
                if clamp is not None and is_of_steps and not _is_written(facts, clamp):
                    reported.add(call.site)
                    yield LengthAsPlace(call, clamp, steps)


def _is_of_steps(facts: TraceIndex, taken: Call, clamp: Call, steps: int) -> bool:
    """Returns whether a call takes one of the steps of each row, not a row of a table for each length."""
    node, data = facts.node_at(taken.site), facts.tensor(taken.inputs[0].tensor)
    is_of_rows = op_name(taken) != "getitem" or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple))
    rows = prod(facts.tensor(clamp.outputs[0].tensor).shape)
    is_of_rows &= sorted(data.shape[:2]) == sorted((rows, steps)) and not data.type.endswith("Parameter")
    return is_of_rows and not _is_shifted(facts, taken, rows, steps)


def _is_shifted(facts: TraceIndex, taken: Call, rows: int, steps: int) -> bool:
    """Returns whether something is put before the steps of each row: place n is then the one of step n - 1."""
    earlier = islice(ancestry(facts, taken.inputs[0].tensor, taken.index), _MAX_EARLIER)
    return any(may_shift(facts, call, rows, steps) for _, call in earlier)


def _measured_others(facts: TraceIndex) -> Iterator[int]:
    """Yields the lines that take other steps than the ones after the last ids, as a run has measured."""
    for line in by_line(facts, facts.trace.inspection.picked_steps):
        for call, fact in line:
            if fact.lengths and fact.steps != tuple(min(length, fact.size - 1) for length in fact.lengths):
                yield call.site


def _clamp(facts: TraceIndex, taken: Call) -> Call | None:
    """Returns the call that gives an index, which it cuts off at a greatest value."""
    for access in taken.inputs[1:]:
        number, before = access.tensor, taken.index
        for _ in range(_MAX_CALLS):
            made = next(iter(facts.producers(number, before)), None)
            if made is None or not made.inputs or made.writes:
                break
            if op_name(made) in _CLAMPS:
                return made if _has_greatest(facts, made) else None
            if op_name(made) not in _SAME and not is_whole_index(facts, made):
                break
            number, before = made.inputs[0].tensor, made.index
    return None


def _has_greatest(facts: TraceIndex, clamp: Call) -> bool:
    """Returns whether the source gives a greatest value, which takes 1 off something, or is a number."""
    written = written_call(facts, clamp)
    place = 1 if op_name(clamp) in ("clamp_max", "minimum") else 2
    value = None if written is None else written.argument(place, "max")
    if isinstance(value, ast.UnaryOp) or value is None:
        return False
    return not (isinstance(value, ast.Constant) and value.value is None)


def _is_written(facts: TraceIndex, clamp: Call) -> bool:
    """Returns whether a line writes at the places that a call cuts off, as a last id after the others."""
    lengths = _above(facts, clamp.inputs[0].tensor, clamp.index)
    return any(
        not lengths.isdisjoint(_above(facts, access.tensor, call.index, _CLAMPS))
        for call in facts.calls
        if op_name(call) in ("setitem", "scatter_", "scatter")
        for access in call.inputs[1:]
    )


def _steps(facts: TraceIndex, clamp: Call, lookups: list[Call]) -> int:
    """Returns the places of each row, if what a call cuts off are counts of those that are no padding; else 0."""
    number, before = clamp.inputs[0].tensor, clamp.index
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is not None and op_name(made) in ("sum", "count_nonzero") and len(made.inputs) == 1:
            given = made.inputs[0].tensor, made.index
            return padding_places(facts, given, lookups) or 0 if _is_of_rows(facts, made) else 0
        is_same = made is not None and made.inputs and (op_name(made) in _SAME or _takes_rows(made))
        if made is None or not is_same:
            return _compared(facts, number)
        number, before = made.inputs[0].tensor, made.index
    return 0


def _is_of_rows(facts: TraceIndex, counted: Call) -> bool:
    shapes = [facts.tensor(access.tensor).shape for access in (counted.inputs[0], counted.outputs[0])]
    return len(shapes[0]) == 2 and shapes[1][:1] == shapes[0][:1]


def _takes_rows(call: Call) -> bool:
    return op_name(call) in ("getitem", "index_select") and len(call.inputs) == 2


def _compared(facts: TraceIndex, lengths: int) -> int:
    """Returns how many places a comparison compares with lengths, whose rows end there."""
    for call in facts.calls:
        if op_name(call) not in ("lt", "ge") or len(call.inputs) != 2:
            continue
        number = lengths_of(facts, call)
        if number is not None and lengths in _above(facts, number, call.index):
            return facts.tensor(call.outputs[0].tensor).shape[-1]
    return 0


def _above(facts: TraceIndex, number: int, before: int, cuts: frozenset[str] = frozenset()) -> set[int]:
    found = {number}
    for _ in range(_MAX_CALLS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or op_name(made) not in _SAME | cuts | {"getitem"}:
            break
        number, before = made.inputs[0].tensor, made.index
        found.add(number)
    return found
