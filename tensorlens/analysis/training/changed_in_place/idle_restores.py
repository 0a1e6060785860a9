"""Finds assignments that give parameters the memory that they have already, as `p.data = backup[name]` does where
`backup[name] = p.data` made no copy: what was changed in between stays."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.one_memory import is_one
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.records.model import Call

_ALIASES = frozenset("Tensor.data.__get__ Tensor.detach torch.detach".split())


@dataclass(frozen=True, slots=True)
class IdleRestore:
    """An assignment of `.data` that changes nothing, although the memory was changed since the alias was made."""

    call: Call
    made: Call  # the alias
    change: Call


def idle_restores(facts: TraceIndex, stepped: set[int]) -> Iterator[IdleRestore]:
    """Yields the first such assignment of each line that makes no others."""
    lines: dict[int, list[Call]] = defaultdict(list)
    for call in facts.calls:
        if call.op == DATA_SET and not call.within and not facts.trace.sites[call.site].through:
            lines[call.site].append(call)
    writes: dict[int | None, list[Call]] = defaultdict(list)
    for call in facts.calls if lines else ():
        for storage in {facts.storage_of(write.tensor, call.index) for write in call.writes}:
            writes[storage].append(call)
    for calls in lines.values():
        found = [_restored(facts, call, writes) for call in calls if call.inputs and call.inputs[0].tensor in stepped]
        idle = [each for each in found if each is not None]
        if len(idle) == len(calls):
            yield idle[0]


def _restored(facts: TraceIndex, call: Call, writes: dict[int | None, list[Call]]) -> IdleRestore | None:
    """Returns what a line assigns, if it is an alias of the memory that a parameter already has, and was made on
    another line. Whoever changes the memory through this alias does it on purpose."""
    if len(call.inputs) != 2:
        return None
    target, source = (access.tensor for access in call.inputs)
    made = facts.creator(source)
    if made is None or made.op not in _ALIASES or [access.tensor for access in made.inputs] != [target]:
        return None
    if facts.same_line(made.site, call.site) or not is_one(facts, target, source, call.index - 1):
        return None
    memory = facts.storage_of(source, call.index - 1)
    changes = [each for each in writes[memory] if made.index < each.index < call.index]
    if any(each.op == DATA_SET or source in {write.tensor for write in each.writes} for each in changes):
        return None
    return IdleRestore(call, made, changes[0]) if changes else None
