"""Finds the leaves whose gradients a script looks at, apart from the updates that use them."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from functools import lru_cache

from tensorlens.analysis.training.timeline import GRAD_READ, GRAD_SET, Moment, Training
from tensorlens.records.model import Call


@lru_cache(maxsize=1)
def inspected_gradients(training: Training) -> frozenset[int]:
    """Returns the leaves whose `.grad` the script's own lines read, for more than to update the leaf by hand, to clear
    the gradient, or to see whether there is one. An optimizer of the program reads it in its step."""
    if not training.gradient_read:
        return frozenset()
    facts, uses = training.facts, _uses(training)
    syntax, sites = facts.names.syntax, facts.trace.sites
    found: set[int] = set()
    for call in facts.calls:
        if call.op != GRAD_READ or call.within or call.inputs[0].tensor in found:
            continue
        leaf = call.inputs[0].tensor
        if syntax.is_direct(sites[call.site], GRAD_READ) and _is_look(training, leaf, call, uses):
            found.add(leaf)
    return frozenset(found)


def _is_look(training: Training, leaf: int, read: Call, uses: dict[int, list[int]]) -> bool:
    moments = training.moments.get(leaf, [])
    place = bisect_right(moments, read.index, key=lambda moment: moment.index)
    later = moments[place] if place < len(moments) else None
    used = [index for access in read.outputs for index in uses.get(access.tensor, ()) if index > read.index]
    if later is None:
        return bool(used)
    if later.kind == "update" and isinstance(later.event, Call):
        return not later.fresh
    if later.kind == "clear" and not _is_set(later):
        used = [
            index for index in used if index < later.index
        ]  # the tensor goes on, with the gradients of other passes
    return bool(used)


def _is_set(cleared: Moment) -> bool:
    return isinstance(cleared.event, Call) and cleared.event.op == GRAD_SET


def _uses(training: Training) -> dict[int, list[int]]:
    """Maps the tensors that were a `.grad` to the calls that are given them."""
    found: dict[int, list[int]] = defaultdict(list)
    for call in training.facts.calls:
        for access in call.inputs:
            if access.tensor in training.gradient_of:
                found[access.tensor].append(call.index)
    return found
