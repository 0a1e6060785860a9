"""Finds losses of masked models whose targets are all the id that hides the places, as a run has measured."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.counted_masks import FILLS, filled_value
from tensorlens.analysis.training.looked_at import by_line
from tensorlens.analysis.training.pair_tables import made_by
from tensorlens.records.model import Call

_SAME = frozenset("view reshape flatten ravel long int to contiguous t T transpose permute squeeze unsqueeze".split())
_CHOOSING = frozenset("getitem masked_select".split())
_LEAST_LOOKS, _MOST_CALLS = 2, 12


@dataclass(frozen=True, slots=True)
class TargetsOfOne:
    """A loss, the call that has made its targets, how many of these count, and the id that they all are."""

    loss: Call
    made: Call
    places: int
    target: int


def targets_of_one(facts: TraceIndex) -> Iterator[TargetsOfOne]:
    """Yields these, one for each line, where all passes that were looked at have one id."""
    for line in by_line(facts, facts.trace.inspection.counted_targets):
        call, fact = line[0]
        is_one = fact.target >= 0 and all(each.target == fact.target for _, each in line)
        if len(line) >= _LEAST_LOOKS and is_one and len(call.inputs) > 1:
            yield TargetsOfOne(call, _origin(facts, call), fact.places, fact.target)


def _origin(facts: TraceIndex, loss: Call) -> Call:
    """Returns the call that has made the targets of a loss, before others that take some of them as they are."""
    number, before, found = loss.inputs[1].tensor, loss.index, loss
    for _ in range(_MOST_CALLS):
        made = made_by(facts, number, before)
        if made is None:
            return found
        found = made
        whole = [each.tensor for each in made.inputs if facts.tensor(each.tensor).dtype.startswith("int")]
        is_fill = op_name(made) in FILLS and (filled_value(facts, made) or 0) < 0  # of what does not count
        if not whole or not (is_fill or op_name(made) in _SAME | _CHOOSING):
            return found
        number, before = whole[0], made.index
    return found
