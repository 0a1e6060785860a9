"""Finds averages of parameters that begin with what the parameters were made with: a line loads others into these.

So it is where a run goes on from a checkpoint that has no averages.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.checkpoints_and_averages.left_parameters import is_as_made, writes_before
from tensorlens.analysis.training.checkpoints_and_averages.moving_averages import Follower, followers, moving_averages
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.measured import MeasuredTraining
from tensorlens.analysis.training.module_loads import module_loads
from tensorlens.analysis.training.one_memory import origin
from tensorlens.analysis.training.run_summary import is_complete
from tensorlens.analysis.training.timeline import DATA_SET
from tensorlens.records.model import Call

_COPIES = frozenset("clone deepcopy __deepcopy__".split())
_THROUGH = frozenset("detach get requires_grad to Parameter".split())
_LEAST = 0.001  # of the first values that is left in the end
_MAX_CALLS = 8


@dataclass(frozen=True, slots=True)
class UnloadedAverage:
    """A line that updates averages, and the load of what it averages; none of the averages was loaded."""

    write: Call
    load: Call
    copied: Call  # the call that gave an average its first values
    averages: int
    updates: int
    left: float  # the weight that the first values have in the last ones


def unloaded_averages(training: MeasuredTraining) -> Iterator[UnloadedAverage]:
    """Yields these lines, if the program has trained parameters of the same shape before the load."""
    facts = training.facts
    loads = {call.writes[0].tensor: call for call in reversed(list(module_loads(facts)))}  # the first of each
    if not loads or not is_complete(facts.trace):
        return
    shares = {each.write.site: each.share for each in moving_averages(training)}
    lines: dict[tuple[int, int, int], list[tuple[Follower, Call, Call]]] = defaultdict(list)
    for each in followers(training):
        load, share = loads.get(each.source), shares.get(each.writes[-1].site)
        if load is None or share is None or not 0 < share < 0.5 or (1 - share) ** len(each.writes) < _LEAST:
            continue
        copied = _first_copy(training, each, load)
        if copied is not None and _loads_trained(training, each, load) and not _uses_first(facts, each, load):
            lines[each.writes[-1].site, load.site, len(each.writes)].append((each, load, copied))
    for (site, _, updates), found in lines.items():
        each, load, copied = found[0]
        left = (1 - (shares[site] or 0)) ** updates
        yield UnloadedAverage(each.writes[-1], load, copied, len(found), updates, left)


def _first_copy(training: MeasuredTraining, each: Follower, load: Call) -> Call | None:
    """Returns the call that copied parameters, as they were made, to an average before they were loaded. Nothing else
    writes to the average but one line, which begins after the load and does not copy the loaded values first."""
    facts = training.facts
    written = training.written_after(each.tensor, -1)
    updates = [call for call in written if facts.same_line(call.site, each.writes[0].site)]  # `a.mul_(d).add_(p)`
    first = updates[0] if updates else each.writes[0]
    before = [call for call in written if call.index < first.index]
    made = facts.creator(origin(facts, each.tensor))
    copied = before[-1] if before else made
    if copied is None or not copied.index < load.index < first.index:
        return None
    if len(written) > len(before) + len(updates) or _source(facts, first) == each.source:
        return None
    if before and op_name(copied) not in ("copy", "set") and copied.op != DATA_SET:
        return None
    if _source(facts, copied) != each.source:
        return None
    is_new = is_as_made(facts, each.source, list(writes_before(facts, each.source, copied.index)))
    return copied if is_new else None


def _uses_first(facts: TraceIndex, each: Follower, load: Call) -> bool:
    """Returns whether a line reads another copy of the first values after the updates: it can take out what is left of
    them."""
    own, copies = facts.storages_of(each.tensor), set[int]()
    for call in facts.calls_between(0, load.index):
        if op_name(call) in _COPIES and call.outputs and _source(facts, call) == each.source:
            copies |= {access.tensor for access in call.outputs if not own & facts.storages_of(access.tensor)}
    kept = {number for number in copies if not any(facts.writes(facts.tensor(number).counter))}
    later = facts.calls_between(each.writes[-1].index + 1) if kept else iter(())
    return any(access.tensor in kept for call in later for access in call.inputs)


def _source(facts: TraceIndex, call: Call) -> int | None:
    """Returns the tensor of which a call copies all values, without a change."""
    is_copy = op_name(call) in _COPIES | {"copy", "set"} or call.op == DATA_SET
    number = call.inputs[-1].tensor if is_copy and call.inputs else None
    for _ in range(_MAX_CALLS):
        made = None if number is None else facts.creator(number)
        if made is None or op_name(made) not in _COPIES | _THROUGH or len(made.inputs) != 1:
            return number
        if op_name(made) == "Parameter" and made.inputs[0].tensor != number and not _is_copy(facts, made):
            return number
        number = made.inputs[0].tensor
    return number


def _is_copy(facts: TraceIndex, made: Call) -> bool:
    """Returns whether a new parameter has what a call copied."""
    inner = facts.creator(made.inputs[0].tensor)
    return inner is not None and op_name(inner) in _COPIES | {"detach"}


def _loads_trained(training: MeasuredTraining, each: Follower, load: Call) -> bool:
    """Returns whether steps had trained parameters of the same shape before a load, but not the loaded ones, and what
    is loaded comes neither from these nor from the average."""
    facts, shape = training.facts, training.facts.tensor(each.source).shape
    trained = {n for step in training.training.steps if step.index < load.index for n in step.parameters}
    if each.source in trained or not any(facts.tensor(number).shape == shape for number in trained):
        return False
    own = facts.storages_of(each.source) | facts.storages_of(each.tensor)
    loaded = load.inputs[-1].tensor
    behind = {access.tensor for _, call in ancestry(facts, loaded, load.index) for access in call.inputs}
    return not any(facts.storages_of(number) & own for number in {loaded, *behind})
