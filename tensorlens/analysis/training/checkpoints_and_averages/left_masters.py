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

_CASTS = frozenset("to half bfloat16 float double type detach data clone get".split())
_VIEWS = frozenset(
    "split split_with_sizes chunk tensor_split unbind narrow select getitem view view_as reshape reshape_as unflatten "
    "squeeze unsqueeze expand_as as_strided".split()
)
_KEEPING = frozenset("clone deepcopy copy stack cat lerp add sub setitem foreach_copy foreach_lerp".split())
_MAX_CASTS = 8


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
    if write.op != DATA_SET and op_name(write) not in ("copy", "foreach_copy"):
        return None
    master = _root(training, load, write)
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
    is_left = not is_source and not _is_written(facts, master, made.index, write.index)
    is_left = is_left and not _is_given_away(facts, master, write.index)
    return LeftMaster(load, write, made) if is_left else None


def _comes_from(facts: TraceIndex, numbers: list[int], before: int, storages: set[int]) -> bool:
    """Returns whether tensors are in some storages, or were computed from what is."""
    behind = {each.tensor for n in numbers for _, call in ancestry(facts, n, before) for each in call.inputs}
    return any(facts.storages_of(number) & storages for number in {*numbers, *behind})


def _is_written(facts: TraceIndex, master: int, since: int, before: int) -> bool:
    """Returns whether a line, and no step, writes to a tensor or to a part of it."""
    storages = facts.storages_of(master)
    calls = (call for call in facts.calls_between(since + 1, before) if call.writes and not call.within)
    return any(facts.storages_of(each.tensor) & storages for call in calls for each in call.writes)


def _is_given_away(facts: TraceIndex, master: int, before: int) -> bool:
    """Returns whether NumPy or a call that is not recorded may have written to a tensor: it has other memory then, or
    an array has the same."""
    storages = facts.storages_of(master)
    if len(storages) > 1:
        return True
    calls = facts.calls_between(0, before)
    arrays = (call for call in calls if call.op in ("Tensor.numpy", "Tensor.__array__", "Tensor.__dlpack__"))
    return any(facts.storages_of(access.tensor) & storages for call in arrays for access in call.inputs)


def _root(training: MeasuredTraining, load: Call, write: Call) -> int:
    """Returns the tensor that a write copies to what was loaded, without the casts since the last step, and the whole
    of which it is a part."""
    facts, number, before = training.facts, _given(training, load, write), write.index
    since = max((step.index for step in training.training.steps if step.index < write.index), default=0)
    for _ in range(_MAX_CASTS):
        made = next(iter(facts.producers(number, before)), None)
        if made is None or not made.inputs or not (_is_view(facts, number, made) or op_name(made) in _CASTS):
            break
        if made.index < since and not _is_view(facts, number, made):
            break
        number, before = made.inputs[0].tensor, made.index
    return number


def _given(training: MeasuredTraining, load: Call, write: Call) -> int:
    """Returns the tensor that a write copies to what was loaded: of `torch._foreach_copy_(...)`, the one in its
    place."""
    facts, count = training.facts, len(write.writes)
    if op_name(write) == "foreach_copy" and len(write.inputs) == 2 * count:
        place = facts.storage_of(load.writes[0].tensor, load.index)
        targets = [facts.storage_of(access.tensor, write.index - 1) for access in write.inputs[:count]]
        return write.inputs[count + targets.index(place)].tensor if place in targets else write.inputs[-1].tensor
    return write.inputs[-1].tensor


def _is_view(facts: TraceIndex, number: int, made: Call) -> bool:
    """Returns whether a call makes a tensor that has a part of the memory of the one that it reads."""
    own = facts.storage_of(number, made.index)
    return op_name(made) in _VIEWS and own is not None and own == facts.storage_of(made.inputs[0].tensor, made.index)
