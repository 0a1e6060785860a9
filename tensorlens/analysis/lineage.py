"""Where a value came from: back through the calls that made it, to leaves and to the place where history was lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from tensorlens.analysis.facts import LEAVING, Facts
from tensorlens.model import Backward, Call

MAX_CALLS = 5_000


@dataclass(frozen=True, slots=True)
class Cut:
    """The call after which a value has no autograd history, and what was lost there."""

    call: Call
    source: int | None  # the input that still required grad; None: nothing upstream ever did
    leaf: int | None  # the leaf that requires grad above `source`; without one, the leaf that never did
    left: Call | None = None  # the call that took the values out of torch, where `call` brought them back


def ancestry(facts: Facts, root: int, before: int) -> Iterator[tuple[int, Call]]:
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


def find_cut(facts: Facts, root: int, before: int) -> Cut | None:
    """The call nearest to `root` that had an input that required grad and gave a result that does not."""
    origins: list[Call] = []
    first: Call | None = None
    for number, call in ancestry(facts, root, before):
        if facts.requires_grad(number, call.index) and number != root:
            continue
        if _switched_off(facts, number, call):
            return Cut(call, number, leaf_above(facts, number, call.index - 1))
        if not call.inputs:
            origins.append(call)
            continue
        first = call
        for access in call.inputs:
            if access.tensor != number and facts.requires_grad(access.tensor, call.index - 1):
                return Cut(call, access.tensor, leaf_above(facts, access.tensor, call.index))
    for call in origins:
        cut = _left_torch(facts, call)
        if cut is not None:
            return cut
    return _never(facts, root, before, first)


def _switched_off(facts: Facts, number: int, call: Call) -> bool:
    """Whether a call made an existing tensor lose its history, or a leaf stop requiring grad, in place."""
    if facts.tensor(number).created_by == call.index:
        return False
    return facts.requires_grad(number, call.index - 1) and not facts.requires_grad(number, call.index)


def _left_torch(facts: Facts, entry: Call) -> Cut | None:
    """The cut where values went through plain Python or NumPy and came back at `entry`."""
    for call in reversed(facts.calls):
        if call.index >= entry.index or call.op not in LEAVING or not call.inputs:
            continue
        number = call.inputs[0].tensor
        if facts.requires_grad(number, call.index):
            return Cut(call, number, leaf_above(facts, number, call.index), left=call)
        for made, producer in ancestry(facts, number, call.index):
            for access in producer.inputs:
                if access.tensor != made and facts.requires_grad(access.tensor, producer.index - 1):
                    return Cut(producer, access.tensor, leaf_above(facts, access.tensor, producer.index), left=call)
    return None


def _never(facts: Facts, root: int, before: int, first: Call | None) -> Cut | None:
    """Nothing above `root` required grad: the first call on the path, and the first of the tensors it began with."""
    if first is None:
        return None
    leaves = [a.tensor for a in first.inputs]
    parameters = [number for number in leaves if facts.tensor(number).type == "Parameter"]
    return Cut(first, None, (parameters or leaves)[0])


def leaf_above(facts: Facts, number: int, before: int) -> int | None:
    """The nearest leaf that requires grad and that a tensor was computed from; itself if it is one."""
    state = facts.state(number, before)
    if state is not None and state.is_leaf and state.requires_grad:
        return _owner(facts, number)
    return next(iter(_leaves(facts, number, before)), None)


def _owner(facts: Facts, number: int) -> int:
    """The leaf itself, where a view of it was made without recording: such a view counts as a leaf as well."""
    base = facts.tensor(number).base
    return number if base is None else _owner(facts, base)


def leaves_above(facts: Facts, number: int, before: int) -> list[int]:
    """Every leaf that requires grad and that a tensor was computed from, the nearest first."""
    return list(dict.fromkeys(_leaves(facts, number, before)))


def _leaves(facts: Facts, number: int, before: int) -> Iterator[int]:
    for _, call in ancestry(facts, number, before):
        for access in call.inputs:
            state = facts.state(access.tensor, call.index)
            if state is not None and state.is_leaf and state.requires_grad:
                yield _owner(facts, access.tensor)


def calls_above(facts: Facts, number: int, before: int) -> set[int]:
    """The indices of all calls that went into a tensor's value."""
    return {call.index for _, call in ancestry(facts, number, before)}


def reaches(facts: Facts, backward: Backward, call: Call) -> bool:
    """Whether a backward pass went through the graph of `call`: one of its roots was computed from it."""
    return any(call.index in calls_above(facts, root.tensor, backward.index) for root in backward.roots)
