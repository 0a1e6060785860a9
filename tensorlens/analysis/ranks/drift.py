"""Finds the lines that wrote parameters while replicas that were equal became different."""

from __future__ import annotations

from dataclasses import dataclass

from tensorlens.analysis.ranks.replicas import Replica, StateDifference
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Call

Place = tuple[str, int]  # file, line


@dataclass(frozen=True)
class Writes:
    """The first call of each line that wrote the parameters on one rank, in order. `is_complete`: no other line can
    have written them."""

    rank: int
    calls: dict[Place, Call]
    is_complete: bool


def writes_before(facts: TraceIndex, replica: Replica, found: StateDifference) -> Writes:
    """Returns the writes on one rank between the state before and the one that differs."""
    state = found.state(replica)
    start, trace = replica.before(state), facts.trace
    events = trace.events[trace.position(start) : trace.position(state.index)]
    counters = {trace.tensors[replica.wrapped.tensors[position]].counter for position in found.positions}
    tensors = {replica.wrapped.tensors[position] for position in found.positions}
    calls: dict[Place, Call] = {}
    for event in events:
        if not isinstance(event, Call) or (span := facts.span(event.site)) is None:
            continue
        moved = event.op == "Tensor.data.__set__" and bool(event.inputs) and event.inputs[0].tensor in tensors
        if moved or any(trace.tensors[write.tensor].counter in counters for write in event.writes):
            calls.setdefault((span.file, span.line), event)
    is_whole = len(events) == state.index - start and found.step in (1, _next_step(replica, start))
    hidden = any(start <= each.index <= state.index for each in trace.inspection.overwrites)
    return Writes(replica.rank, calls, is_whole and not hidden)


def had_equal_gradients(found: StateDifference) -> bool:
    """Returns whether the step before found equal gradients of the parameters that differ now."""
    one, other = (replica.states.get(abs(found.step) - (found.step > 0)) for replica in (found.one, found.other))
    return (
        one is not None
        and other is not None
        and all(-1 != one.gradients[position] == other.gradients[position] for position in found.positions)
    )


def _next_step(replica: Replica, start: int) -> int | None:
    """Returns the number of the state that follows the one at an index: of the next step, or of the run's end."""
    step = next((each.step for each in replica.states.values() if each.index == start), None)
    if step is None:
        return None
    return -step if -step in replica.states else step + 1
