"""Finds why ranks have different gradients of one parameter, from what each rank did since its last optimizer step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tensorlens.analysis.ranks.replicas import Replica, ReplicaGroup, StateDifference
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call, Region, Trace

Cause = Literal["frozen when wrapped", "hook lost", "no forward", "no sync", "second pass", "checkpoints"]


@dataclass(frozen=True)
class Unaveraged:
    """Parameters whose gradients ranks have not averaged, for one cause that the facts of a rank establish.

    `passes` are the sites of the forward and backward passes that the cause is about, in their order.
    """

    cause: Cause
    difference: StateDifference
    replica: Replica
    positions: tuple[int, ...]
    passes: tuple[int | None, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.replica.wrapped.names[position] for position in self.positions)


def unaveraged(group: ReplicaGroup) -> Unaveraged | None:
    """Returns the first gradients that differ, if a rank's facts establish the cause. The cause of a difference that
    one parameter has for itself is searched for before one that all have."""
    found = group.gradient_difference
    if found is None or any(each.trace.inspection.compiled for each in group.replicas):
        return None  # of compiled code, no pass is seen
    for replica in (found.one, found.other):
        for cause, positions in (
            ("frozen when wrapped", _frozen(replica, found)),
            ("hook lost", _unhooked(replica, found)),
        ):
            if positions:
                return Unaveraged(cause, found, replica, positions, ())  # type: ignore[arg-type]
    for replica in (found.one, found.other):
        cause_of_all = _cause_in(found.state(replica).moments)
        if cause_of_all is not None:
            sites = found.state(replica).sites
            return Unaveraged(
                cause_of_all[0], found, replica, found.positions, tuple(sites[number] for number in cause_of_all[1])
            )
    for replica in (found.one, found.other):
        checkpoints = _checkpoints(replica, found)
        if checkpoints is not None:
            return Unaveraged("checkpoints", found, replica, found.positions, checkpoints)
    return None


def _checkpoints(replica: Replica, found: StateDifference) -> tuple[int | None, ...] | None:
    """Returns the checkpoints with passes of their own that gave all these parameters a gradient within the last pass,
    in the order of these passes, if there are several: the gradients were averaged before the last of them."""
    trace, state = replica.trace, found.state(replica)
    passes = [event for event in trace.events[: trace.position(state.index)] if isinstance(event, Backward)]
    if not passes or state.moments[-2:] != "FB":
        return None
    outer, tensors = passes[-1], {replica.wrapped.tensors[position] for position in found.positions}
    nested = [
        each
        for each in passes[:-1]
        if outer.started <= each.index and tensors <= {gradient.tensor for gradient in each.gradients}
    ]
    sites = [recomputed_checkpoint(trace, each) for each in nested]
    return tuple(sites) if len(sites) > 1 and None not in sites else None


def recomputed_checkpoint(trace: Trace, backward: Backward) -> int | None:
    """Returns the site of the checkpoint whose recomputation a pass goes through."""
    position = trace.position(backward.index) - 1
    while position >= 0:
        event = trace.events[position]
        if isinstance(event, Region) and event.name == "recomputation" and event.checkpoint is not None:
            entered = trace.event(event.checkpoint)
            return entered.site if isinstance(entered, Region) else None
        position -= 1
    return None


def _frozen(replica: Replica, found: StateDifference) -> tuple[int, ...]:
    return tuple(number for number in found.positions if replica.wrapped.kinds[number] == "frozen")


def _unhooked(replica: Replica, found: StateDifference) -> tuple[int, ...]:
    unhooked, tensors = found.state(replica).unhooked, replica.wrapped.tensors
    return tuple(number for number in found.positions if tensors[number] in unhooked)


def _cause_in(moments: str) -> tuple[Cause, tuple[int, ...]] | None:
    """Returns why the gradients that the last backward pass left are not averaged, and the passes that show it.

    The first backward pass after a forward pass "F" averages what has been accumulated until then.
    """
    last = moments.rfind("B")
    if last < 0 or len(moments) >= _CUT:
        return None
    forwards = [number for number, moment in enumerate(moments[:last]) if moment in "Ff"]
    if not forwards:
        return "no forward", (last,)
    averaging, waits = -1, False
    for number, moment in enumerate(moments[: last + 1]):
        if moment == "F":
            waits = True
        elif moment == "B" and waits:
            averaging, waits = number, False
    if averaging == last:
        return None
    if moments[forwards[-1]] == "f" and forwards[-1] > averaging:
        return "no sync", (forwards[-1], last)
    return ("second pass", (forwards[-1], averaging, last)) if averaging > forwards[-1] else None


_CUT = 64  # moments of a step that are noted


def unaveraged_forward(facts: TraceIndex, found: Unaveraged) -> Call | None:
    """Returns the first call since the step before that used one of the parameters and recorded a node."""
    state, tensors = found.difference.state(found.replica), set(found.replica.wrapped.tensors)
    first = facts.trace.position(found.replica.before(state))
    for event in facts.trace.events[first : facts.trace.position(state.index)]:
        if isinstance(event, Call) and not event.within and event.nodes[1] > event.nodes[0]:
            if any(access.tensor in tensors for access in event.inputs):
                return event
    return None


def used_between_passes(facts: TraceIndex, found: Unaveraged) -> bool | None:
    """Returns whether a call used a parameter between the last two backward passes; None if events are missing."""
    state, tensors = found.difference.state(found.replica), set(found.replica.wrapped.tensors)
    events = facts.trace.events[: facts.trace.position(state.index)]
    passes = [
        position
        for position, event in enumerate(events)
        if isinstance(event, Backward) and any(gradient.tensor in tensors for gradient in event.gradients)
    ]
    if len(passes) < 2:
        return None
    between = events[passes[-2] + 1 : passes[-1]]
    if between and between[-1].index - between[0].index != len(between) - 1:
        return None
    return any(
        isinstance(event, Call)
        and event.nodes[1] > event.nodes[0]
        and any(access.tensor in tensors for access in event.inputs)
        for event in between
    )
