"""Follows a value back through the calls that made it, to its leaves or to the call that cut its history."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace

from tensorlens.analysis.graph_search import GraphSearch, UsedTensors
from tensorlens.analysis.plain_flow import plain_flow
from tensorlens.analysis.plain_values import takes_shape_only, takes_values
from tensorlens.analysis.trace_index import OPS_LEAVING_TORCH, TraceIndex
from tensorlens.records.model import Backward, Call

MAX_CALLS = 5_000
MAX_DEEP = 100_000  # calls, for the few searches that establish what is absent: more than a trace has


@dataclass(frozen=True, slots=True)
class Cut:
    """The call after which a value has no autograd history."""

    call: Call
    source: int | None  # the input that still required grad; None: nothing before the call ever did
    leaf: int | None  # the leaf that `source` was computed from; without a source, a tensor that never required grad
    left_torch: Call | None = None  # the call that took the values to Python or NumPy, if they went there
    entered: Call | None = None  # the call with plain values as inputs, through which they may have returned


def ancestry(
    facts: TraceIndex, root: int, before: int, most: int = MAX_CALLS, since: int = -1
) -> Iterator[tuple[int, Call]]:
    """Yields (tensor, call that made its value), from `root` back to its origins, the nearest first.

    It ends after about `most` calls, and follows none before event `since`: thousands of steps may have changed a
    parameter.
    """
    waiting = deque([iter([(root, before)])])  # a search may end before it gets to the thousands of inputs of a call
    new_calls, followed = facts.new_calls(), set[int]()  # a call may have made thousands of tensors
    visited = 0
    while waiting and visited < most:
        number, limit = next(waiting[0], (None, 0))
        if number is None:
            waiting.popleft()
            continue
        for call in new_calls.before(number, limit):
            if call.index < since:
                break
            visited += 1
            yield number, call
            if call.index not in followed:
                followed.add(call.index)
                waiting.append(iter([(access.tensor, call.index) for access in call.inputs]))


def find_cut(facts: TraceIndex, root: int, before: int) -> Cut | None:
    """Finds the call nearest to `root` that had an input that required grad and a result that does not.

    A leaf that was frozen counts only if nothing else cut the history: a model may train through frozen layers. If the
    call ran with recording off, the first call that was not recorded counts instead: those after it had no history to
    record.
    """
    search = _search(facts, root, before)
    cut = min(search.cuts, key=lambda each: takes_shape_only(each.call), default=None)
    if cut is None:
        same_shape = search.frozen is not None
        outside = (_cut_outside_torch(facts, call, same_shape) for call in search.origins)
        cut = next(filter(None, outside), search.frozen)
    if cut is None or cut.source is None:
        return _never_required(facts, search.first)
    cut = _first_unrecorded(facts, cut, search.cuts)
    at = cut.call.index - 1 if cut is search.frozen else cut.call.index
    return replace(cut, leaf=leaf_above(facts, cut.source or 0, at))


def cuts_above(facts: TraceIndex, root: int, before: int) -> list[Cut]:
    """Lists the calls at which the ways from `root` lost their history, the nearest first, without frozen leaves."""
    return _search(facts, root, before).cuts


@dataclass(slots=True)
class _Search:
    cuts: list[Cut] = field(default_factory=list)  # the nearest first
    frozen: Cut | None = None  # the nearest leaf that stopped requiring grad
    origins: list[Call] = field(default_factory=list)  # calls without tensors as inputs
    first: Call | None = None  # the last call that the search met: the farthest from the root


def _search(facts: TraceIndex, root: int, before: int) -> _Search:
    """Searches from `root` back through values without a history, as far as values that have one."""
    search = _Search()
    lost: dict[int, dict[int, None]] = {}  # call -> those of its inputs that required grad
    queue: deque[tuple[int, int]] = deque([(root, before)])
    new_calls = facts.new_calls()
    visited = 0
    while queue and visited < MAX_CALLS:
        number, limit = queue.popleft()
        for call in new_calls.before(number, limit):
            if number != root and facts.requires_grad(number, call.index):
                continue
            visited += 1
            if _dropped_history(facts, number, call):
                _note_dropped(facts, search, Cut(call, number, None))
                break
            if not call.inputs:
                search.origins += [call] if takes_values(facts, call) else []
                continue
            search.first = call
            if call.index not in lost:
                tensors = dict.fromkeys(access.tensor for access in call.inputs)
                lost[call.index] = {tensor: None for tensor in tensors if facts.requires_grad(tensor, call.index - 1)}
                queue.extend((tensor, call.index) for tensor in tensors if tensor not in lost[call.index])
            other = next((tensor for tensor in lost[call.index] if tensor != number), None)
            search.cuts += () if other is None else (Cut(call, other, None),)
            if number in lost[call.index]:
                queue.append((number, call.index))
    return search


def _note_dropped(facts: TraceIndex, search: _Search, cut: Cut) -> None:
    state = facts.state(cut.source or 0, cut.call.index - 1)
    if state is None or not state.is_leaf:
        search.cuts.append(cut)
    elif search.frozen is None:
        search.frozen = cut


def _first_unrecorded(facts: TraceIndex, cut: Cut, cuts: list[Cut]) -> Cut:
    switch = None if cut.call.mode == "grad" or cut not in cuts else facts.mode_switch(cut.call.index)
    if switch is None:
        return cut
    same = [c for c in cuts if c.call.mode == cut.call.mode and facts.mode_switch(c.call.index) is switch]
    computed = [c for c in same if not reads_gradient(c.call)]  # `weight.grad` had no history to begin with
    return min(computed or same, key=lambda c: c.call.index)


def reads_gradient(call: Call) -> bool:
    """Returns whether a call reads a `.grad`."""
    return call.op.endswith(".grad.__get__")


def _dropped_history(facts: TraceIndex, number: int, call: Call) -> bool:
    """Returns whether a call removed the history of an existing tensor, or made a leaf stop requiring grad."""
    if facts.tensor(number).created_by == call.index:
        return False
    return facts.requires_grad(number, call.index - 1) and not facts.requires_grad(number, call.index)


def _cut_outside_torch(facts: TraceIndex, entry: Call, same_shape: bool) -> Cut | None:
    """Finds the cut of values that went through plain Python or NumPy and came back at `entry`.

    The trace does not show which values came back, but the source shows which can: the last of those that still
    required grad when they left torch, if they are no root of a backward; else the last that had lost their history
    before. `same_shape` leaves out tensors of other shapes.
    """
    leaving = leaving_before(facts, entry)
    if same_shape:
        shapes = [facts.tensor(access.tensor).shape for access in entry.outputs[:1]]
        leaving = [call for call in leaving if facts.tensor(call.inputs[0].tensor).shape in shapes]
    roots = {root.tensor for backward in facts.backwards for root in backward.roots}
    for call in leaving:
        number = call.inputs[0].tensor
        if number not in roots and facts.requires_grad(number, call.index):
            return Cut(call, number, None, left_torch=call, entered=entry)
    lost = next(filter(None, (_lost_before(facts, call) for call in leaving)), None)
    return None if lost is None else replace(lost, entered=entry)


def leaving_before(facts: TraceIndex, entry: Call) -> list[Call]:
    """Lists the calls that took values out of torch which, by the source, can be those of `entry`, the last first."""
    flow, back = plain_flow(facts.trace), facts.span(entry.site)
    calls = [call for call in facts.calls if call.op in OPS_LEAVING_TORCH and call.inputs and call.index < entry.index]
    spans = {call.site: facts.span(call.site) for call in calls}
    leading = {n for n, span in spans.items() if span is not None and back is not None and flow.leads(span, back)}
    return [call for call in calls if call.site in leading][::-1]


def _lost_before(facts: TraceIndex, leaving: Call) -> Cut | None:
    """Finds the cut at or before a call that takes values out of torch, if the values ever had a history."""
    number = leaving.inputs[0].tensor
    if facts.requires_grad(number, leaving.index):
        return Cut(leaving, number, None, left_torch=leaving)
    for made, producer in ancestry(facts, number, leaving.index):
        for access in producer.inputs:
            if access.tensor != made and facts.requires_grad(access.tensor, producer.index - 1):
                return Cut(producer, access.tensor, None, left_torch=leaving)
    return None


def _never_required(facts: TraceIndex, first: Call | None) -> Cut | None:
    """Returns the cut for a value whose origins never required grad: its first call, and one of the call's tensors."""
    if first is None:
        return None
    leaves = [a.tensor for a in first.inputs]
    parameters = [number for number in leaves if facts.tensor(number).type == "Parameter"]
    return Cut(first, None, (parameters or leaves)[0])


def leaf_above(facts: TraceIndex, number: int, before: int) -> int | None:
    """Finds the nearest leaf that requires grad and that a tensor was computed from; the tensor itself if it is one."""
    if facts.is_leaf_requiring_grad(number, before):
        return _owner(facts, number)
    return next(iter(_leaves(facts, number, before)), None)


def leaf_origin(facts: TraceIndex, number: int, before: int) -> Call | None:
    """Finds the call that made a tensor a leaf that requires grad, when it was created or later."""
    for call in facts.calls:
        if call.index >= before:
            break
        state = next((s for s in call.states if s.tensor == number), None)
        if state is not None and state.requires_grad:
            return call
    return facts.first_use(number)


def _owner(facts: TraceIndex, number: int) -> int:
    """Returns the leaf that owns the memory of a leaf: a view made without recording is itself a leaf."""
    base = facts.tensor(number).base
    return number if base is None else _owner(facts, base)


def leaves_above(facts: TraceIndex, number: int, before: int) -> list[int]:
    """Lists the leaves that require grad and that a tensor was computed from, the nearest first."""
    return list(dict.fromkeys(_leaves(facts, number, before)))


def _leaves(facts: TraceIndex, number: int, before: int) -> Iterator[int]:
    for _, call in ancestry(facts, number, before):
        for access in call.inputs:
            if facts.is_leaf_requiring_grad(access.tensor, call.index):
                yield _owner(facts, access.tensor)


def backward_reaches(facts: TraceIndex, backward: Backward, call: Call) -> bool:
    """Returns whether a backward pass went through the graph of `call`: recorded operations connect a root to it."""
    return any(_is_connected(facts, root.tensor, backward.index, call) for root in backward.roots)


def _is_connected(facts: TraceIndex, root: int, before: int, call: Call) -> bool:
    queue: deque[tuple[int, int]] = deque([(root, before)])
    new_calls, followed = facts.new_calls(), set[int]()
    visited = 0
    while queue and visited < MAX_CALLS:
        number, limit = queue.popleft()
        for producer in new_calls.before(number, limit):
            if not facts.requires_grad(number, producer.index):
                continue
            if producer is call:
                return True
            visited += 1
            if producer.index not in followed:
                followed.add(producer.index)
                queue.extend((access.tensor, producer.index) for access in producer.inputs)
    return False


@dataclass(frozen=True, slots=True)
class ReachedCalls:
    """The recorded calls whose nodes a backward pass ran."""

    backward: Backward
    calls: frozenset[int]  # their indices
    complete: bool  # every path was followed to a leaf, so no other call was reached


def calls_reached_by(facts: TraceIndex, backward: Backward) -> ReachedCalls:
    """Follows a backward pass from its roots through the calls that recorded its graph."""
    search, used = GraphSearch(facts), UsedTensors(facts, backward)
    queue = deque((root.tensor, backward.index) for root in backward.roots)
    complete = True
    while queue:
        number, user = queue.popleft()
        complete &= len(used) < MAX_CALLS
        state = facts.state(number, user - 1)
        if len(used) >= MAX_CALLS or (state is not None and (state.is_leaf or not state.requires_grad)):
            continue
        calls = search.new_calls(number, user)
        complete &= search.is_made(number, user)
        used.note(number, user)
        for call in calls:
            if used.add(call):
                queue.extend((access.tensor, call.index) for access in call.inputs)
    return ReachedCalls(backward, frozenset(used.leading_to(backward.inputs)), complete)


def graph_leaves(facts: TraceIndex, root: int, before: int) -> set[int]:
    """Returns the leaves that a backward pass from `root` would reach: it goes no further than a leaf, whatever the
    leaf's values were computed from."""
    return set(_each_leaf(facts, root, before))


def leads_to(facts: TraceIndex, root: int, before: int, leaves: Collection[int]) -> bool:
    """Returns whether a backward pass from `root` would reach one of some leaves."""
    return any(leaf in leaves for leaf in _each_leaf(facts, root, before))


def _each_leaf(facts: TraceIndex, root: int, before: int) -> Iterator[int]:
    """Yields the leaves of `graph_leaves`, some of them again."""
    queue, seen = deque([(root, before)]), set[tuple[int, int]]()
    search, followed = GraphSearch(facts), set[int]()
    while queue and len(seen) < MAX_CALLS:
        number, user = queue.popleft()
        state = facts.state(number, user - 1)
        if (number, user) in seen or state is None or not state.requires_grad:
            continue
        seen.add((number, user))
        if state.is_leaf:
            yield _owner(facts, number)
            continue
        for call in search.new_calls(number, user):
            if call.index not in followed:
                followed.add(call.index)
                queue.extend((access.tensor, call.index) for access in call.inputs)
