"""Finds buffers of an average of a model that stay as they are, while those of the trained model change.

A soft update that goes through `parameters()` moves no buffers: a target network that standardises its inputs goes on
with the statistics that it was copied with.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.averaged_parameters import AVERAGED
from tensorlens.analysis.training.checkpoints_and_averages.moving_averages import Follower, followers
from tensorlens.analysis.training.checkpoints_and_averages.statistic_changes import REDUCTIONS
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.records.model import Call

_PARTS = re.compile(r"\[[^\]]*\]|\.?[^.\[]+")
_COPYING = frozenset("clone detach deepcopy to cpu numpy item tolist".split())
_TAKING = frozenset("data buffers named_buffers _buffers state_dict load_state_dict".split())
_LEAVING = frozenset("numpy array dlpack to_dlpack from_dlpack".split())
_PAST_VERSIONS = frozenset("untyped_storage storage swap_tensors data_ptr set_ script".split())
_REDUCTIONS = REDUCTIONS - {"norm"}  # of a direction that an iteration finds
_MIN_CHANGES = 4


@dataclass(frozen=True, slots=True)
class LeftBuffer:
    """A buffer of an average, and the buffer of the same name of the model that the average follows."""

    name: str
    source: str
    update: Call  # moves the parameters of the average
    updates: int
    changes: tuple[Call, ...]  # of the buffer of the trained model, since the first update
    used: Call  # reads the buffer of the average after the first of these changes


def left_buffers(training: MeasuredTraining) -> Iterator[LeftBuffer]:
    """Yields these buffers. Nothing writes to them but loads, and the changes are statistics."""
    named = _names(training.facts)
    rows = {row.tensor: row for row in training.rows}
    models: dict[tuple[str, str], Follower] = {}
    for each in followers(training) if named else ():
        roots = None if each.row is None else _roots(each.row.name, rows[each.source].name)
        through = training.facts.trace.sites[each.writes[-1].site].through
        if roots is not None and through != AVERAGED:  # its buffers are those of `update_bn()`
            models.setdefault(roots, each)
    for (average, model), follower in models.items():
        for name in named:
            source = model + name.removeprefix(average)
            is_buffer = name.startswith((average + ".", average + "[")) and named[name] not in rows
            if is_buffer and source in named and _is_alike(training.facts, named[name], named[source]):
                yield from _left(training, follower, (name, named[name]), (source, named[source]))


def _left(
    training: MeasuredTraining, follower: Follower, buffer: tuple[str, int], source: tuple[str, int]
) -> Iterator[LeftBuffer]:
    """Yields a buffer of an average if nothing writes to it or replaces it, while lines change the other one."""
    facts, (name, number), since = training.facts, buffer, follower.writes[0].index
    changes = training.writes(source[1], since)
    if (
        len(changes) < _MIN_CHANGES
        or _may_be_written(training, number, since)
        or not _is_statistic(facts, *changes[-2:])
    ):
        return
    used = _use(facts, (number, source[1]), changes[0].index)
    is_kept = any((each.name, each.tensor) == buffer for each in facts.trace.end.bindings)
    last = max(changes[-2].index, follower.writes[-2].index, *(step.index for step in training.training.steps[-2:-1]))
    if used is None or not (is_kept or used.index > last):
        return
    if is_complete(facts.trace) or _is_surely_left(facts, number):
        yield LeftBuffer(name, source[0], follower.writes[-1], len(follower.writes), tuple(changes), used)


def _names(facts: TraceIndex) -> dict[str, int]:
    """Returns the tensors that modules have, by their names when the first pass began."""
    return {
        name: number
        for reached in facts.trace.inspection.reached[:1]
        for name, number in zip(reached.names, reached.tensors, strict=True)
    }


def _roots(average: str, source: str) -> tuple[str, str] | None:
    """Returns the names of two models by those of a parameter that both have: ("target", "net") for `target[0].weight`
    and `net[0].weight`. None if a name is all that they have in common."""
    one, other = _PARTS.findall(average), _PARTS.findall(source)
    while one and other and one[-1] == other[-1]:
        del one[-1], other[-1]
    return ("".join(one), "".join(other)) if one and other else None


def _is_alike(facts: TraceIndex, number: int, source: int) -> bool:
    one, other = facts.tensor(number), facts.tensor(source)
    return (one.shape, one.dtype) == (other.shape, other.dtype) and one.dtype.startswith(("float", "bfloat"))


def _may_be_written(training: MeasuredTraining, number: int, since: int) -> bool:
    """Returns whether anything may have written to a buffer, also past its version.

    Loads before the first update do not count.
    """
    facts = training.facts
    sites, storages = facts.trace.sites, facts.storages_of(number)
    outside = any(
        op_name(call) in _LEAVING and access.tensor == number for call in facts.calls for access in call.inputs[:1]
    )
    written = (
        call
        for call in facts.calls
        for write in call.writes
        if facts.storage_of(write.tensor, call.index) in storages
        and (call.index > since or not sites[call.site].through)
    )
    return outside or any(True for _ in written) or _has(facts, _PAST_VERSIONS)


def _has(facts: TraceIndex, attributes: frozenset[str]) -> bool:
    nodes = (node for _, tree in facts.trees() for node in ast.walk(tree))
    return any(isinstance(node, ast.Attribute) and node.attr in attributes for node in nodes)


def _use(facts: TraceIndex, numbers: tuple[int, int], since: int) -> Call | None:
    """Returns the last call that computes with a buffer, and not with that of the trained model, as to compare them."""
    found, (number, source) = None, numbers
    for call in facts.calls_between(since):
        inputs = {access.tensor for access in call.inputs}
        if number in inputs and source not in inputs and op_name(call) not in _COPYING:
            found = call
    return found


def _is_surely_left(facts: TraceIndex, number: int) -> bool:
    """Returns whether no call that a long run left out can have written to a buffer: its version has not moved, and no
    line takes buffers together or their `.data`."""
    versions = {access.version for call in facts.calls for access in call.inputs if access.tensor == number}
    return len(versions) == 1 and None not in versions and not _has(facts, _TAKING)


def _is_statistic(facts: TraceIndex, before: Call, change: Call) -> bool:
    """Returns whether a change of a buffer writes what a reduction has given since the one before, such as a mean of
    data: the noise of a layer is no such."""
    waiting, seen = [(access.tensor, change.index) for access in change.inputs[1:]], set[int]()
    for number, limit in waiting:
        for made in takewhile(lambda call: call.index > before.index, facts.producers(number, limit)):
            if op_name(made) in _REDUCTIONS:
                return True
            if made.index not in seen:
                seen.add(made.index)
                waiting += [(access.tensor, made.index) for access in made.inputs]
    return False


def by_model(found: Iterator[LeftBuffer]) -> Iterator[list[LeftBuffer]]:
    """Groups buffers by the line that moves the parameters next to them."""
    groups: dict[int, list[LeftBuffer]] = defaultdict(list)
    for each in found:
        groups[each.update.site].append(each)
    yield from groups.values()
