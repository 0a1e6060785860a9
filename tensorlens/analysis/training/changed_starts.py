"""Finds runs of a model, as those of an evaluation, that change in place the data that they begin with.

`state = data[:, 0]` makes a view. `state += model(state)` in a loop then writes into the data, and the next evaluation
begins where the last one ended. A moving average that is kept in a row of a table changes once in each run.
"""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.one_memory import elements, item_size
from tensorlens.analysis.training.timeline import Training
from tensorlens.records.model import Access, Call

_ADDING = frozenset("add iadd sub isub mul imul addcmul".split())
_WITH_NUMPY = frozenset("from_numpy as_tensor numpy asarray frombuffer".split())
_MIN_RUNS = 3
_MAX_CALLS = 400


@dataclass(frozen=True, slots=True)
class ChangedStart:
    """Data of which each run changes a part in place, by values that a trained model computes."""

    data: int
    view: Call  # of the last run
    change: Call
    runs: int


def changed_starts(training: Training) -> Iterator[ChangedStart]:
    """Yields this data, if nothing else writes to it and steps run between one view and the next."""
    facts, steps = training.facts, [step.index for step in training.steps]
    by_storage: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        for storage in {facts.storage_of(write.tensor, call.index) for write in call.writes} - {None}:
            by_storage[storage].append(call)  # type: ignore[index]
    hidden = {each.tensor for each in facts.trace.inspection.overwrites}
    hidden |= {access.tensor for call in facts.calls if op_name(call) in _WITH_NUMPY for access in _all(call)}
    unseen = {storage for number in hidden if number is not None for storage in facts.storages_of(number)}
    for storage, calls in by_storage.items():
        written = {call.writes[0].tensor: call for call in calls}  # each with its last change
        is_loop = all(n > 1 for n in Counter(call.writes[0].tensor for call in calls).values())
        if len(written) < _MIN_RUNS or storage in unseen or not is_loop or not _are_runs(training, calls):
            continue
        views = [facts.creator(number) for number in written]
        known = [view for view in views if view is not None and op_name(view) == "getitem" and view.inputs]
        between = [bisect_left(steps, b.index) - bisect_left(steps, a.index) for a, b in pairwise(known)]
        size = facts.trace.storages[storage].nbytes
        parts = [facts.tensor(number) for number in written]
        is_part = all(elements(part.shape) * item_size(part.dtype) < size for part in parts)
        if len(known) == len(views) and len({view.site for view in known}) == 1 and all(between) and is_part:
            last = known[-1]
            if _is_same_part(facts, last):
                yield ChangedStart(last.inputs[0].tensor, last, written[last.outputs[0].tensor], len(known))


def _all(call: Call) -> tuple[Access, ...]:
    return (*call.inputs, *call.outputs)


def _is_same_part(facts: TraceIndex, view: Call) -> bool:
    """Returns whether the source takes the same elements each time: its indices are numbers and slices of numbers."""
    span = facts.span(view.site)
    node = None if span is None else facts.names.syntax.node(span)
    if not isinstance(node, ast.Subscript):
        return False
    return not any(isinstance(each, ast.Name | ast.Attribute | ast.Call) for each in ast.walk(node.slice))


def _are_runs(training: Training, calls: list[Call]) -> bool:
    """Returns whether one line, while gradients are off, changes memory by values that are computed from what it
    changes and from trained parameters."""
    facts, last = training.facts, calls[-1]
    if len({call.site for call in calls}) != 1 or any(
        op_name(call) not in _ADDING or call.within or call.mode == "grad" for call in calls
    ):
        return False
    memory = facts.storage_of(last.writes[0].tensor, last.index)
    read, waiting = set[int](), [(last.inputs[-1].tensor, last.index)]
    for number, before in waiting:
        read.add(number)
        made = next(iter(facts.producers(number, before)), None) if number not in training.stepped else None
        if made is not None and len(waiting) < _MAX_CALLS:
            waiting += [(access.tensor, made.index) for access in made.inputs if access.tensor not in read]
    return bool(read & training.stepped) and any(facts.storage_of(number, last.index) == memory for number in read)
