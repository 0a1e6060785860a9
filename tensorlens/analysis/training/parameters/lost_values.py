"""Finds values of parameters that are overwritten before anything reads them: of optimizer steps, and loaded ones."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

from tensorlens.analysis.trace_index import OPS_ENTERING_TORCH, TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining, ParameterRow
from tensorlens.analysis.training.module_loads import module_loads
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.records.model import Call

_FULL = frozenset(("copy", "zero", "fill", "normal", "uniform", "random", "exponential"))
_NEW = _FULL - {"copy"}  # the values are those of no other tensor
_SHARED = (OPS_ENTERING_TORCH - {"torch.tensor"}) | {
    f"Tensor.{name}" for name in ("numpy", "__array__", "__dlpack__", "share_memory_")
}
_MIN_STEPS = 3
_NEAR = 8  # calls of one run of a line
_MOST_KEPT = 0.1  # of the steps


@dataclass(frozen=True, slots=True)
class LostSteps:
    """A line that overwrites parameters after steps, before anything reads what the steps have made of them."""

    write: Call
    rows: tuple[ParameterRow, ...]
    lost: int  # steps of each
    steps: int


@dataclass(frozen=True, slots=True)
class LostLoad:
    """A line that overwrites tensors after `load_state_dict` has loaded them."""

    write: Call
    load: Call
    lost: int
    loaded: int
    others: bool  # other lines overwrite some of them


def lost_steps(training: MeasuredTraining) -> Iterator[LostSteps]:
    """Yields the lines that overwrite nearly all steps of a parameter.

    Code outside torch may read a parameter of which it has the memory at any time.
    """
    if not is_complete(training.facts.trace):
        return
    written: dict[int, tuple[ParameterRow, dict[int, Call]]] = {}
    outside = _shared_outside(training.facts)
    for row in training.rows:
        if not outside.isdisjoint(training.facts.storages_of(row.tensor)):
            continue
        if row.is_stepped and row.statistics is not None and row.statistics.filled > row.statistics.zero:
            calls = {call.index: call for call in training.writes(row.tensor) if _is_full(training, call, row.tensor)}
            if len(calls) >= _MIN_STEPS - 1:
                written[row.tensor] = row, calls
    uses = uses_of(training, set(written)) if written else {}
    groups: dict[tuple[int, int, int], list[tuple[Call, ParameterRow]]] = defaultdict(list)
    for row, calls in written.values():
        steps = _steps_of(training, row.tensor)
        for writes in _overwriting(uses[row.tensor], steps, calls):
            if len(writes) >= max(_MIN_STEPS - 1, (1 - _MOST_KEPT) * (len(steps) - 1)):  # nothing need follow the last
                groups[writes[0].site, len(writes), len(steps)].append((writes[0], row))
    for (_, lost, total), found in groups.items():
        yield LostSteps(found[0][0], tuple(row for _, row in found), lost, total)


def _shared_outside(facts: TraceIndex) -> set[int]:
    """Returns the memory that NumPy, another library or another process may have."""
    calls = [call for call in facts.calls if call.op in _SHARED]
    found = {facts.storage_of(each.tensor, call.index) for call in calls for each in (*call.inputs, *call.outputs)}
    return {memory for memory in found if memory is not None}


def _steps_of(training: MeasuredTraining, number: int) -> list[int]:
    """Returns the indices of the steps that found a gradient of a parameter."""
    found: list[int] = []
    for step in training.training.steps:
        at = step.parameters.index(number) if number in step.parameters else -1
        if at >= 0 and step.gradients[at] is not None:
            found.append(step.index)
    return found


def _overwriting(uses: list[int], steps: list[int], calls: dict[int, Call]) -> Iterator[list[Call]]:
    """Yields, for each line, those of some calls that are the first use after a step."""
    by_site: dict[int, list[Call]] = defaultdict(list)
    for step in steps:
        place = bisect_left(uses, step)
        call = calls.get(uses[place]) if place < len(uses) else None
        if call is not None:
            by_site[call.site].append(call)
    yield from by_site.values()


def _is_full(training: MeasuredTraining, call: Call, number: int) -> bool:
    """Returns whether a call writes each element of a parameter, and reads none of it."""
    if call.op != DATA_SET and op_name(call) not in _FULL:
        return False
    facts = training.facts
    if call.op != DATA_SET and facts.tensor(call.writes[0].tensor).shape != facts.tensor(number).shape:
        return False
    memory = facts.storage_of(number, call.index - 1)
    return all(facts.storage_of(access.tensor, call.index - 1) != memory for access in call.inputs[1:])


def uses_of(training: MeasuredTraining, numbers: set[int]) -> dict[int, list[int]]:
    """Maps parameters to the indices of the calls outside optimizer steps that read or write their memory.

    An alias may be read without a call, as by `torch.save()`: it counts, unless its own line writes to it.
    """
    facts = training.facts
    memory = {storage: number for number in numbers for storage in facts.storages_of(number)}
    uses: dict[int, list[int]] = {number: [] for number in numbers}
    for call in facts.calls:
        if call.within or ".grad." in call.op or (not call.writes and is_written_at_once(training, call)):
            continue
        touched = {access.tensor for access in call.inputs} | {write.tensor for write in call.writes}
        found = {memory.get(facts.storage_of(number, call.index - 1)) for number in touched}  # type: ignore[arg-type]
        for number in found - {None}:
            uses[number].append(call.index)  # type: ignore[index]
    return uses


def is_written_at_once(training: MeasuredTraining, call: Call) -> bool:
    """Returns whether a call makes an alias that the same run of its line writes to, as in `p.data.copy_(q)`."""
    if len(call.inputs) != 1 or len(call.outputs) != 1:
        return False
    facts, made = training.facts, call.outputs[0].tensor
    given = facts.storage_of(call.inputs[0].tensor, call.index)
    if given is None or given != facts.storage_of(made, call.index):
        return False
    events = (facts.call(index) for index in range(call.index + 1, call.index + _NEAR))
    near = (each for each in events if each is not None)  # an event of another kind may come in between
    on_line = takewhile(lambda each: facts.same_line(each.site, call.site), near)
    return any(write.tensor == made for each in on_line for write in each.writes)


def lost_loads(training: MeasuredTraining) -> Iterator[LostLoad]:
    """Yields the lines that give new values to more than half of what a line has loaded by `load_state_dict`."""
    facts = training.facts
    waiting: dict[int | None, Call] = {}  # by memory
    loads: dict[int, list[Call]] = defaultdict(list)
    lost: dict[tuple[int, int], list[tuple[Call, Call]]] = defaultdict(list)
    loaded = {call.index for call in module_loads(facts)}
    for call in facts.calls:
        if call.index in loaded:
            waiting[facts.storage_of(call.writes[0].tensor, call.index)] = call
            loads[call.site].append(call)
            continue
        for access in call.inputs if waiting else ():
            load = waiting.pop(facts.storage_of(access.tensor, call.index), None)
            if load is not None and call.writes and (call.op.startswith("nn.init.") or op_name(call) in _NEW):
                lost[load.site, call.site].append((load, call))
    by_load: dict[int, list[tuple[Call, Call]]] = defaultdict(list)
    for (site, _), pairs in lost.items():
        by_load[site] += pairs
    for site, pairs in by_load.items():
        if 2 * len(pairs) > len(loads[site]):
            others = any(write.site != pairs[0][1].site for _, write in pairs)
            yield LostLoad(pairs[0][1], pairs[0][0], len(pairs), len(loads[site]), others)
