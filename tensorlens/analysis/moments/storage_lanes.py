"""Finds what happened in each storage: the tensors that used it, the writes, and what autograd saved of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.moments.run_moments import Moments
from tensorlens.analysis.saved_tensors import changes_after, find_save, stale_tensor
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Backward, Call, Failure
from tensorlens.records.observations import Overwrite


@dataclass(frozen=True, slots=True)
class Bar:
    """The time in which a tensor used a storage: from the call that made it to the last that used it."""

    storage: int
    row: int  # of the lane: bars of a row do not overlap
    tensor: int
    first: int
    last: int
    is_open: bool  # the tensor existed when the run ended


@dataclass(frozen=True, slots=True)
class Tick:
    """A write to a storage. `after` is None if the version counter did not move."""

    storage: int
    at: int
    tensor: int
    before: int | None
    after: int | None


@dataclass(frozen=True, slots=True)
class Pin:
    """A tensor that a node saved for backward. Moments are None where the trace does not show them.

    `problem` is "version" if the memory was written after the save, "freed" or "nan"; `changed` is that write, and
    `needed` the backward pass that found it.
    """

    storage: int | None
    tensor: int | None
    node: str
    slot: str
    version: int | None
    found: int | None
    saved: int | None
    changed: int | None
    needed: int | None
    problem: str


def bars(facts: TraceIndex, moments: Moments) -> list[Bar]:
    """Lists the bars, by storage and beginning. Of a tensor that moves to other memory, each storage has one."""
    uses = _uses(facts, moments)
    alive = {state.tensor for state in facts.trace.end.states}
    end = len(moments.items) - 1
    spans: dict[int, list[tuple[int, int, int, bool]]] = defaultdict(list)
    for tensor, in_storages in uses.items():
        stays = [*in_storages.items()]
        for number, (storage, (first, last)) in enumerate(stays):
            is_last = number == len(stays) - 1
            until = last if not is_last else end if tensor in alive else last
            spans[storage].append((first, until, tensor, is_last and tensor in alive))
    found = []
    for storage in sorted(spans):
        rows: list[int] = []  # the end of the last bar of each row
        for first, last, tensor, is_open in sorted(spans[storage]):
            row = next((place for place, until in enumerate(rows) if until < first), len(rows))
            rows[row:] = [last, *rows[row + 1 :]]
            found.append(Bar(storage, row, tensor, first, last, is_open))
    return found


def _uses(facts: TraceIndex, moments: Moments) -> dict[int, dict[int, tuple[int, int]]]:
    """Maps each tensor to its storages in turn, each with the first and the last moment that used it there."""
    trace = facts.trace
    uses: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)

    def use(tensor: int, storage: int | None, at: int) -> None:
        storage = trace.tensors[tensor].storage if storage is None else storage
        if storage is not None:
            first, _ = uses[tensor].get(storage, (at, at))
            uses[tensor][storage] = first, at

    last: dict[int, int | None] = {}
    for event in trace.events:
        at = moments.since(event.index)
        if isinstance(event, Call):
            for access in event.inputs:
                use(access.tensor, last.get(access.tensor), at)
            last.update({state.tensor: state.storage for state in event.states})
            for access in event.outputs:
                use(access.tensor, last.get(access.tensor), at)
            for state in event.states:
                use(state.tensor, state.storage, at)
        elif isinstance(event, Backward):
            for number in [access.tensor for access in event.roots] + [each.tensor for each in event.gradients]:
                use(number, last.get(number), at)
            for gradient in event.gradients:
                if gradient.held is not None:
                    use(gradient.held, None, at)
    for state in trace.end.states:
        use(state.tensor, state.storage, len(moments.items) - 1)
    return uses


def ticks(facts: TraceIndex, moments: Moments) -> Iterator[Tick]:
    """Yields the writes in order, also those that moved no version counter."""
    for at, moment in enumerate(moments.items):
        what = moment.what
        if isinstance(what, Call):
            writes = list(what.writes)
        elif isinstance(what, Backward):
            writes = [each.write for each in what.gradients if each.write is not None]
        else:
            writes = []
        for write in writes:
            storage = facts.storage_of(write.tensor, moment.index)
            if storage is not None:
                yield Tick(storage, at, write.tensor, write.before, write.after)
        if isinstance(what, Overwrite) and what.tensor is not None:
            storage = facts.storage_of(what.tensor, moment.index)
            if storage is not None:
                yield Tick(storage, at, what.tensor, None, None)


def pins(facts: TraceIndex, moments: Moments) -> Iterator[Pin]:
    """Yields what nodes saved: what failed passes found, what was used in a changed state, and what custom Functions
    saved themselves."""
    for failure in facts.trace.failures:
        yield from _pins_of_failure(facts, moments, failure)
    for stale in facts.trace.inspection.stale:
        call = facts.call_of_node(stale.sequence, stale.index, stale.node)
        tensor = stale_tensor(stale, call)
        storage = None if tensor is None else facts.storage_of(tensor, stale.index)
        write = None if stale.overwrite is None else facts.trace.inspection.overwrites[stale.overwrite]
        changed = None if write is None else next(
            (place for place, moment in enumerate(moments.items) if moment.what is write), None
        )  # fmt: skip
        if write is None and tensor is not None and call is not None:
            later = (e for e, w in facts.writes(facts.tensor(tensor).counter) if e.index > call.index)
            changed = next((moments.of_event(event.index) for event in later), None)
        saved = None if call is None else moments.of_event(call.index)
        needed = max(moments.since(stale.index) - 1, changed or 0)  # some writes are noticed when the pass begins
        yield Pin(storage, tensor, stale.node, stale.slot, *stale.versions, saved, changed, needed, "stale")
    for call in facts.calls:
        if call.op == "ctx.save_for_backward":
            at = moments.of_event(call.index)
            for slot, access in enumerate(call.inputs):
                storage = facts.storage_of(access.tensor, call.index)
                name = f"saved_tensors[{slot}]"
                yield Pin(storage, access.tensor, "", name, access.version, None, at, None, None, "")


def _pins_of_failure(facts: TraceIndex, moments: Moments, failure: Failure) -> Iterator[Pin]:
    needed = moments.of_failure(failure)
    for saved in failure.saved:
        save = find_save(facts, saved, failure.index)
        changed = None
        if saved.problem == "version":
            first = next(changes_after(facts, save, failure.index), None)
            changed = None if first is None else moments.of_event(first.event.index)
        at = None if save.call is None else moments.of_event(save.call.index)
        storage = saved.storage
        if storage is None and save.tensor is not None:
            storage = facts.storage_of(save.tensor, failure.index)
        yield Pin(
            storage, save.tensor, saved.node, saved.slot, saved.expected, saved.found, at, changed, needed,
            saved.problem or "",
        )  # fmt: skip
