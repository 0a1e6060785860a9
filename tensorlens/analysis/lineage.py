"""Where a value came from: back through the calls that made it, to leaves and to the place where history was lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tensorlens.analysis.trace_index import OPS_LEAVING_TORCH, TraceIndex
from tensorlens.records.model import Backward, Call, Tensor

MAX_CALLS = 5_000


@dataclass(frozen=True, slots=True)
class Cut:
    """The call after which a value has no autograd history, and what was lost there."""

    call: Call
    source: int | None  # the input that still required grad; None: nothing upstream ever did
    leaf: int | None  # the leaf that requires grad above `source`; without one, the leaf that never did
    left_torch: Call | None = None  # the call that took the values out of torch, where `call` brought them back


def ancestry(facts: TraceIndex, root: int, before: int) -> Iterator[tuple[int, Call]]:
    """(tensor, call that made its value) from a tensor back to where it began, breadth first, nearest first."""
    queue: deque[tuple[int, int]] = deque([(root, before)])
    seen: set[tuple[int, int]] = set()
    visited = 0
    while queue and visited < MAX_CALLS:
        number, limit = queue.popleft()
        for call in facts.producers(number, limit):
            if (number, call.index) in seen:
                continue
            seen.add((number, call.index))
            visited += 1
            yield number, call
            for access in call.inputs:
                queue.append((access.tensor, call.index))


def find_cut(facts: TraceIndex, root: int, before: int) -> Cut | None:
    """The call nearest to `root` that had an input that required grad and gave a result that does not.

    A leaf that was frozen is the cause only where nothing else was lost: what trains through a frozen net is lost
    elsewhere. Where recording was off, the first call that was not recorded is the one: the others follow from it.
    """
    search = _search(facts, root, before)
    cut = search.cuts[0] if search.cuts else None
    if cut is None:
        shape = search.frozen is not None
        cut = next(filter(None, (_left_torch(facts, call, shape) for call in search.origins)), search.frozen)
    if cut is None or cut.source is None:
        return _never(facts, root, before, search.first)
    cut = _first_unrecorded(facts, cut, search.cuts)
    at = cut.call.index - 1 if cut is search.frozen else cut.call.index
    return replace(cut, leaf=leaf_above(facts, cut.source or 0, at))


@dataclass(slots=True)
class _Search:
    cuts: list[Cut] = field(default_factory=list)  # the nearest first
    frozen: Cut | None = None  # the nearest leaf that stopped requiring grad
    origins: list[Call] = field(default_factory=list)  # calls without tensors as inputs
    first: Call | None = None  # the call farthest from the root


def _search(facts: TraceIndex, root: int, before: int) -> _Search:
    """Back from `root` through all that has no history, up to where there was some."""
    found = _Search()
    queue: deque[tuple[int, int]] = deque([(root, before)])
    seen: set[tuple[int, int]] = set()
    while queue and len(seen) < MAX_CALLS:
        number, limit = queue.popleft()
        for call in facts.producers(number, limit):
            if (number, call.index) in seen or (number != root and facts.requires_grad(number, call.index)):
                continue
            seen.add((number, call.index))
            if _switched_off(facts, number, call):
                _note_switch(facts, found, Cut(call, number, None))
                break
            if not call.inputs:
                found.origins.append(call)
                continue
            found.first = call
            others = [access.tensor for access in call.inputs if access.tensor != number]
            lost = [tensor for tensor in others if facts.requires_grad(tensor, call.index - 1)]
            found.cuts.extend(Cut(call, tensor, None) for tensor in lost[:1])
            queue.extend((access.tensor, call.index) for access in call.inputs if access.tensor not in lost)
    return found


def _note_switch(facts: TraceIndex, found: _Search, cut: Cut) -> None:
    state = facts.state(cut.source or 0, cut.call.index - 1)
    if state is None or not state.is_leaf:
        found.cuts.append(cut)
    elif found.frozen is None:
        found.frozen = cut


def _first_unrecorded(facts: TraceIndex, cut: Cut, cuts: list[Cut]) -> Cut:
    switch = None if cut.call.mode == "grad" or cut not in cuts else facts.mode_switch(cut.call.index)
    if switch is None:
        return cut
    same = [c for c in cuts if c.call.mode == cut.call.mode and facts.mode_switch(c.call.index) is switch]
    computed = [c for c in same if not reads_gradient(c.call)]  # `weight.grad` had no history to begin with
    return min(computed or same, key=lambda c: c.call.index)


def reads_gradient(call: Call) -> bool:
    """Whether a call is the `.grad` of a tensor."""
    return call.op.endswith(".grad.__get__")


def is_update_by_hand(facts: TraceIndex, cut: Cut) -> bool:
    """Whether what was cut off is a leaf's next value, made from the leaf and its own gradient."""
    made = cut.call.outputs[0].tensor if cut.call.outputs else None
    state = None if cut.source is None else facts.state(cut.source, cut.call.index)
    if made is None or state is None or not state.is_leaf:
        return False
    above = (call for _, call in ancestry(facts, made, cut.call.index + 1) if reads_gradient(call))
    return any(call.inputs and call.inputs[0].tensor == cut.source for call in above)


def _switched_off(facts: TraceIndex, number: int, call: Call) -> bool:
    """Whether a call made an existing tensor lose its history, or a leaf stop requiring grad, in place."""
    if facts.tensor(number).created_by == call.index:
        return False
    return facts.requires_grad(number, call.index - 1) and not facts.requires_grad(number, call.index)


def _left_torch(facts: TraceIndex, entry: Call, same_shape: bool) -> Cut | None:
    """The cut where values went through plain Python or NumPy and came back at `entry`.

    What left last comes first, but values of a tensor with history that no backward has started from yet, and of the
    kind that came back, come before all others.
    """
    made = facts.tensor(entry.outputs[0].tensor) if entry.outputs else None
    leaving = [
        call for call in facts.calls if call.op in OPS_LEAVING_TORCH and call.inputs and call.index < entry.index
    ][::-1]
    if same_shape:
        leaving = [c for c in leaving if made is not None and facts.tensor(c.inputs[0].tensor).shape == made.shape]
    for call in leaving:
        number = call.inputs[0].tensor
        if made is not None and _real(facts.tensor(number)) == _real(made) and number not in _roots(facts):
            if facts.requires_grad(number, call.index):
                return Cut(call, number, None, left_torch=call)
    return next(filter(None, (_lost_before(facts, call) for call in leaving)), None)


def _real(tensor: Tensor) -> bool:
    return tensor.dtype.startswith("float")


def _roots(facts: TraceIndex) -> set[int]:
    return {root.tensor for backward in facts.backwards for root in backward.roots}


def _lost_before(facts: TraceIndex, leaving: Call) -> Cut | None:
    """The cut in or before a call that hands out values, if they ever had a history."""
    number = leaving.inputs[0].tensor
    if facts.requires_grad(number, leaving.index):
        return Cut(leaving, number, None, left_torch=leaving)
    for made, producer in ancestry(facts, number, leaving.index):
        for access in producer.inputs:
            if access.tensor != made and facts.requires_grad(access.tensor, producer.index - 1):
                return Cut(producer, access.tensor, None, left_torch=leaving)
    return None


def _never(facts: TraceIndex, root: int, before: int, first: Call | None) -> Cut | None:
    """Nothing above `root` required grad: the first call on the path, and the first of the tensors it began with."""
    if first is None:
        return None
    leaves = [a.tensor for a in first.inputs]
    parameters = [number for number in leaves if facts.tensor(number).type == "Parameter"]
    return Cut(first, None, (parameters or leaves)[0])


def leaf_above(facts: TraceIndex, number: int, before: int) -> int | None:
    """The nearest leaf that requires grad and that a tensor was computed from; itself if it is one."""
    state = facts.state(number, before)
    if state is not None and state.is_leaf and state.requires_grad:
        return _owner(facts, number)
    return next(iter(_leaves(facts, number, before)), None)


def leaf_origin(facts: TraceIndex, number: int, before: int) -> Call | None:
    """The call from which on a tensor was a leaf that requires grad: the one that made it, or switched it on later."""
    for call in facts.calls:
        if call.index >= before:
            break
        state = next((s for s in call.states if s.tensor == number), None)
        if state is not None and state.requires_grad:
            return call
    return facts.first_use(number)


def _owner(facts: TraceIndex, number: int) -> int:
    """The leaf itself, where a view of it was made without recording: such a view counts as a leaf as well."""
    base = facts.tensor(number).base
    return number if base is None else _owner(facts, base)


def leaves_above(facts: TraceIndex, number: int, before: int) -> list[int]:
    """Every leaf that requires grad and that a tensor was computed from, the nearest first."""
    return list(dict.fromkeys(_leaves(facts, number, before)))


def _leaves(facts: TraceIndex, number: int, before: int) -> Iterator[int]:
    for _, call in ancestry(facts, number, before):
        for access in call.inputs:
            state = facts.state(access.tensor, call.index)
            if state is not None and state.is_leaf and state.requires_grad:
                yield _owner(facts, access.tensor)


def backward_reaches(facts: TraceIndex, backward: Backward, call: Call) -> bool:
    """Whether a backward pass went through the graph of `call`: one of its roots hangs on it by recorded operations."""
    return any(_hangs_on(facts, root.tensor, backward.index, call) for root in backward.roots)


def _hangs_on(facts: TraceIndex, root: int, before: int, call: Call) -> bool:
    queue: deque[tuple[int, int]] = deque([(root, before)])
    seen: set[tuple[int, int]] = set()
    while queue and len(seen) < MAX_CALLS:
        number, limit = queue.popleft()
        for producer in facts.producers(number, limit):
            if (number, producer.index) in seen or not facts.requires_grad(number, producer.index):
                continue
            if producer is call:
                return True
            seen.add((number, producer.index))
            queue.extend((access.tensor, producer.index) for access in producer.inputs)
    return False


@dataclass(frozen=True, slots=True)
class ReachedCalls:
    """The calls whose nodes a backward pass went through, as far as they were recorded."""

    backward: Backward
    calls: frozenset[int]  # their indices
    complete: bool  # whether every path was followed to a leaf: what is not among the calls was not reached


def calls_reached_by(facts: TraceIndex, backward: Backward) -> ReachedCalls:
    """Follow a backward pass from its roots through the calls that recorded its graph."""
    below: dict[int, set[int]] = {backward.index: set()}  # call -> the calls that made its inputs
    queue = deque((root.tensor, backward.index) for root in backward.roots)
    complete = True
    while queue:
        number, user = queue.popleft()
        complete &= len(below) < MAX_CALLS
        state = facts.state(number, user - 1)
        if state is not None and (state.is_leaf or not state.requires_grad):
            continue
        makers = [] if len(below) >= MAX_CALLS else _makers(facts, number, user)
        complete &= bool(makers)
        for call in makers:
            if call.index not in below:
                below[call.index] = set()
                queue.extend((access.tensor, call.index) for access in call.inputs)
            below[user].add(call.index)
    del below[backward.index]
    return ReachedCalls(backward, frozenset(_leading_to(facts, below, backward.inputs)), complete)


def _makers(facts: TraceIndex, number: int, user: int) -> list[Call]:
    """The calls that gave a tensor the history that it has for the event `user`, the latest first."""
    found = []
    base = facts.tensor(number).base
    for call in (*facts.producers(number, user), *(() if base is None else facts.producers(base, user))):
        if facts.requires_grad(number if base is None else base, call.index) or facts.requires_grad(number, call.index):
            found.append(call)
        elif base is None:
            break  # detached in place: what came before is not below it any more
    if not any(call.nodes[1] > call.nodes[0] for call in found):  # met first by a hook, while it was being made
        state = facts.state(number, user - 1)
        made = None if state is None else facts.call_of_node(state.node, user)
        found += () if made is None else (made,)
    return found


def _leading_to(facts: TraceIndex, below: dict[int, set[int]], asked: tuple[int, ...]) -> Iterator[int]:
    """Those of the calls that a gradient passes on its way to the tensors asked for; all where none were."""
    found: set[int] = set()
    for index in sorted(below):  # what is computed from a tensor comes after what made it
        call = facts.call(index)
        inputs = () if call is None else [access.tensor for access in call.inputs]
        if not asked or below[index] & found or not set(asked).isdisjoint(inputs):
            found.add(index)
            yield index
