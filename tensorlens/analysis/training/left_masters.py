"""Finds loaded parameters that a step's copy of other parameters overwrites: nothing was loaded into those.

So it is where a model in half precision is loaded, but not the float32 copies of its weights that the optimizer steps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.module_loads import module_loads
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.records.model import Call

_CASTS = frozenset("to half bfloat16 float double type detach data clone".split())
_KEEPING = frozenset("clone deepcopy copy stack cat lerp add sub".split())
_MAX_CASTS = 4


@dataclass(frozen=True, slots=True)
class LeftMaster:
    """A load of a parameter, and the write that overwrites it with a master that was made before the load."""

    load: Call
    write: Call
    made: Call  # what made the master


def left_masters(training: MeasuredTraining) -> Iterator[tuple[list[LeftMaster], int]]:
    """Yields those of one load, and the number of tensors that it has loaded, if they are more than half of these."""
    facts = training.facts
    loads = {call.index: call for call in module_loads(facts)}
    if not loads or not is_complete(facts.trace):
        return
    found: dict[int, list[LeftMaster]] = defaultdict(list)
    for load, write in _overwrites(training, loads):
        left = _left(training, load, write)
        if left is not None:
            found[load.site].append(left)
    for site, group in found.items():
        loaded = sum(load.site == site for load in loads.values())
        if 2 * len(group) > loaded and len({each.write.site for each in group}) == 1:
            yield group, loaded


def _overwrites(training: MeasuredTraining, loads: dict[int, Call]) -> Iterator[tuple[Call, Call]]:
    """Yields loads with the first write to what they loaded, unless it is a step's, or the values are kept before."""
    facts, waiting = training.facts, dict[int | None, Call]()
    for call in facts.calls:
        if call.index in loads:
            waiting[facts.storage_of(call.writes[0].tensor, call.index)] = call
            continue
        for number in {access.tensor for access in call.inputs} if waiting else ():
            place = facts.storage_of(number, call.index - 1)
            if place is None or place not in waiting:
                continue
            if call.op == DATA_SET or any(facts.storage_of(w.tensor, call.index - 1) == place for w in call.writes):
                load = waiting.pop(place)
                if not call.within:
                    yield load, call
            elif op_name(call) in _KEEPING:
                del waiting[place]


def _left(training: MeasuredTraining, load: Call, write: Call) -> LeftMaster | None:
    facts = training.facts
    if write.op != DATA_SET and op_name(write) != "copy":
        return None
    master = _root(training, write)
    used = {n for step in training.training.steps if load.index < step.index < write.index for n in step.parameters}
    if master not in used or facts.storage_of(master, write.index) == facts.storage_of(
        load.writes[0].tensor, load.index
    ):
        return None
    made = facts.creator(master)
    own = facts.storages_of(load.writes[0].tensor)
    if made is None or made.index > load.index or not _comes_from(facts, [master], made.index + 1, own):
        return None
    loaded = [access.tensor for access in load.inputs[1:]]
    is_source = _comes_from(facts, loaded, load.index, own | facts.storages_of(master))
    is_left = not is_source and not training.writes(master, since=0) and not _is_given_away(facts, master, write.index)
    return LeftMaster(load, write, made) if is_left else None


def _comes_from(facts: TraceIndex, numbers: list[int], before: int, storages: set[int]) -> bool:
    """Returns whether tensors are in some storages, or were computed from what is."""
    behind = {each.tensor for n in numbers for _, call in ancestry(facts, n, before) for each in call.inputs}
    return any(facts.storages_of(number) & storages for number in {*numbers, *behind})


def _is_given_away(facts: TraceIndex, master: int, before: int) -> bool:
    """Returns whether NumPy or a call that is not recorded may have written to a tensor: it has other memory then, or
    an array has the same."""
    storages = facts.storages_of(master)
    if len(storages) > 1:
        return True
    calls = facts.calls_between(0, before)
    arrays = (call for call in calls if call.op in ("Tensor.numpy", "Tensor.__array__", "Tensor.__dlpack__"))
    return any(facts.storages_of(access.tensor) & storages for call in arrays for access in call.inputs)


def _root(training: MeasuredTraining, write: Call) -> int:
    """Returns the tensor that a write copies, without the casts between."""
    facts, number, before = training.facts, write.inputs[-1].tensor, write.index
    for _ in range(_MAX_CASTS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or op_name(made) not in _CASTS or not made.inputs or made.index < write.index - _MAX_CASTS:
            break
        number, before = made.inputs[0].tensor, made.index
    return number
