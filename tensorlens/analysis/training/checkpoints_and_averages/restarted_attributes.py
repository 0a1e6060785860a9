"""Finds tensors that a class keeps as plain attributes, and that begin anew where a training goes on from a checkpoint.

An optimizer that loads its averages goes on with a training. A mean of batches, or a queue of keys, that only an
attribute holds is in no state dict: the new object has the one that its constructor makes.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.checkpoints_and_averages.statistic_changes import is_reset, is_statistic
from tensorlens.analysis.training.checkpoints_and_averages.unsaved_attributes import (
    MIN_CHANGES,
    is_registered,
    resume_after,
    set_attributes,
)
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.records.model import Backward, Call
from tensorlens.records.training_values import LoadedAverages

_PUTS = frozenset(("setitem", "index_copy", "index_put", "scatter"))
_PARTS = frozenset("getitem index_select gather take select narrow setitem index_copy index_put scatter".split())
_MAX_CALLS, _MAX_PASSES, _MAX_TEXT = 400, 8, 200


@dataclass(frozen=True, slots=True)
class RestartedAttribute:
    """An attribute of a new object with its first value, where an optimizer has loaded the averages of a training."""

    name: str  # "self.center"
    made: Call  # in the constructor of the new object
    changed: Call  # the last call that changed the attribute of the object before
    times: int
    load: LoadedAverages
    used: Call  # after the load
    is_queue: bool
    is_buffer: bool


def restarted_attributes(facts: TraceIndex) -> Iterator[RestartedAttribute]:
    """Yields these attributes, if they had a part in the losses before the load and have one after it, and nothing
    uses or sets the one of the object before any more."""
    loads = facts.trace.inspection.loaded_averages
    for key, constructed, every in set_attributes(facts) if loads and is_complete(facts.trace) else ():
        last = constructed[-1]
        load = resume_after(facts, last)
        if len(constructed) < 2 or load is None or not _is_new(facts, last):
            continue
        queued = _puts(facts, constructed[:-1], last.index)
        changes = queued or [each for each in every if each.index < last.index]
        if len(changes) < MIN_CHANGES or not (queued or _is_mean(facts, every, changes)):
            continue
        if queued and _is_filled_again(facts, last, load, queued):
            continue
        used = _first_use(facts, last, load, changes)
        own = _tensors([*changes, *constructed[:-1]])
        if used is None or not _has_part(facts, last, own, load, bool(queued)):
            continue
        times = sum(each.site == changes[-1].site for each in changes)
        parts = bool(queued), is_registered(facts, last)
        yield RestartedAttribute(key[1], last, changes[-1], times, load, used, *parts)


def _is_new(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a value is computed of nothing that was there at the last pass before."""
    first = max(each.index for each in facts.backwards if each.index < made.index)
    above = [call for _, call in islice(ancestry(facts, made.outputs[0].tensor, made.index + 1), _MAX_CALLS)]
    makers = [facts.creator(access.tensor) for call in above for access in call.inputs]
    return all(maker is not None and maker.index > first for maker in (*above, *makers))


def _tensors(calls: list[Call]) -> set[int]:
    """Returns the tensors that calls return or write to."""
    made = {access.tensor for each in calls for access in each.outputs}
    return made | {write.tensor for each in calls for write in each.writes}


def _puts(facts: TraceIndex, constructed: list[Call], before: int) -> list[Call]:
    """Returns the calls that put rows into what the constructors have made."""
    own = {access.tensor for each in constructed for access in each.outputs}
    calls = (call for call in facts.calls if call.index < before and op_name(call) in _PUTS)
    first = facts.backwards[0].index
    found = [call for call in calls if any(write.tensor in own for write in call.writes)]
    return found if any(call.index > first for call in found) else []


def _is_filled_again(facts: TraceIndex, made: Call, load: LoadedAverages, puts: list[Call]) -> bool:
    """Returns whether a line fills the new tensor before the first pass after the load, as a storage of one rollout, or
    each put replaces all rows."""
    number = made.outputs[0].tensor
    shape = facts.tensor(number).shape
    if all(_is_whole(facts, put, shape) for put in puts):
        return True
    begun = next((each.started for each in facts.backwards if each.started > load.index), load.index)
    calls = (call for call in facts.calls_between(made.index + 1) if call.index < begun and op_name(call) in _PUTS)
    later = [call for call in calls if any(write.tensor == number for write in call.writes)]
    elements = sum(prod(facts.tensor(call.inputs[-1].tensor).shape) for call in later if len(call.inputs) > 1)
    return bool(shape) and (len(later) >= shape[0] or elements >= prod(shape))


def _is_whole(facts: TraceIndex, put: Call, shape: tuple[int, ...]) -> bool:
    span = facts.span(put.site)
    text = "" if span is None else facts.names.syntax.text(span, _MAX_TEXT).replace(" ", "")
    values = facts.tensor(put.inputs[-1].tensor).shape
    return "[:]" in text or "[...]" in text or (len(put.inputs) == 2 and values == shape)


def _is_mean(facts: TraceIndex, every: list[Call], changes: list[Call]) -> bool:
    """Returns whether changes update an average, and none of them gives it a value without the one before: a method
    that begins anew now and then does so on purpose."""
    return all(each.inputs for each in every) and not is_reset(facts, every) and is_statistic(facts, changes)


def _first_use(facts: TraceIndex, made: Call, load: LoadedAverages, changes: list[Call]) -> Call | None:
    """Returns the first call that takes what the constructor has made, if it runs after the load, where one has used or
    changed the attribute before."""
    number = made.outputs[0].tensor
    own = _tensors(changes)
    sites = {call.site for call in facts.calls if call.index < made.index and own & {a.tensor for a in call.inputs}}
    for call in facts.calls_between(made.index + 1):
        if any(each.tensor == number for each in call.inputs) or any(each.tensor == number for each in call.writes):
            return call if call.index > load.index and call.site in sites else None
    return None


def _has_part(facts: TraceIndex, made: Call, own: set[int], load: LoadedAverages, is_queue: bool) -> bool:
    """Returns whether a loss before the load is made of the attribute before, one after it of the new one, and none
    after it of the one before."""
    number = made.outputs[0].tensor
    later = [each for each in facts.backwards if each.started > load.index]
    earlier = [each for each in facts.backwards if each.index < made.index]
    if any(own & {access.tensor for access in call.inputs} for call in facts.calls_between(load.index)):
        return False
    return _is_in(facts, own, earlier[-_MAX_PASSES:], is_queue) and _is_in(
        facts, {number}, later[:_MAX_PASSES], is_queue
    )


def _is_in(facts: TraceIndex, numbers: set[int], passes: list[Backward], is_whole: bool) -> bool:
    """Returns whether a loss is made of one of these tensors; of a queue, whether it takes all rows."""
    ended = [each.index for each in facts.backwards]
    for each in passes:
        place = bisect_left(ended, each.index)
        since = facts.backwards[place - 2].index if place > 1 else -1  # many steps have changed the parameters before
        for root in each.roots:
            for _, call in islice(ancestry(facts, root.tensor, each.started, _MAX_CALLS, since), _MAX_CALLS):
                taken = numbers & {access.tensor for access in call.inputs}
                if taken and not (is_whole and op_name(call) in _PARTS):
                    return True
    return False
