"""Finds the hooks of parameters that return their gradients with some elements set to zero, at fixed places."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tensorlens.analysis.lineage import ancestry
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.constant_terms import op_name
from tensorlens.analysis.training.parameters.masked_gradients import zeroing_mask
from tensorlens.analysis.training.value_ranges import ZEROS, assigned_number, is_zero_or_one
from tensorlens.records.callbacks import Registration, Run
from tensorlens.records.model import Call

_MASKING = frozenset("mul rmul imul where masked_fill".split())
_FILLING = frozenset("zero index_fill masked_fill mul imul".split())
_CHOOSING = frozenset(("setitem", "where", "masked_fill"))  # by a mask: the other tensors are values
_COPIES = frozenset(("clone", "detach"))
_MAX_CALLS = 64


def masking_hook(facts: TraceIndex, leaf: int, since: int = 0) -> Registration | None:
    """Returns the hook of a leaf that returned its gradient with masked elements, after event `since`."""
    callbacks = facts.trace.callbacks
    known = {each.id: each for each in callbacks.registrations if each.kind == "tensor hook" and each.target == leaf}
    for run in callbacks.runs if known else ():
        for value in run.values if run.registration in known and run.index > since else ():
            made = None if value.tensor is None or value.tensor in run.given else facts.creator(value.tensor)
            if made is not None and value.tensor is not None and _is_masked(facts, made, value.tensor, run):
                return known[run.registration]
    return None


def _is_masked(facts: TraceIndex, made: Call, number: int, run: Run) -> bool:
    """Returns whether a hook multiplies a gradient by several values, or chooses between values, or sets items of a
    copy to zero, or puts items into zeros."""
    if op_name(made) in _MASKING:
        return _has_values(facts, made, run)
    writes = list(_writes(facts, made, number, run.index)) if op_name(made) in _COPIES | ZEROS else []
    if op_name(made) in ZEROS:
        return any(op_name(call) == "setitem" and _is_at_fixed_places(facts, call, run) for call in writes)
    return any(_sets_zeros(facts, call, run) for call in writes)


def _has_values(facts: TraceIndex, call: Call, run: Run) -> bool:
    """Returns whether a call gets a mask of several values, which is not computed from the gradient. A factor that has
    other numbers than zeros and ones makes no zeros: it may weigh the rows."""
    own = {run.given[0]} if run.given else set[int]()
    own |= {access.tensor for access in call.outputs}
    others = [access.tensor for access in call.inputs if access.tensor not in own]
    masks = [each for each in others if facts.tensor(each).dtype == "bool" or is_zero_or_one(facts, each, call.index)]
    return any(prod(facts.tensor(each).shape) > 1 for each in masks) and _is_at_fixed_places(facts, call, run)


def _is_at_fixed_places(facts: TraceIndex, call: Call, run: Run) -> bool:
    """Returns whether no mask that a call gets is computed from the gradient, as `grad.isfinite()` is."""
    masks = [access.tensor for access in call.inputs if access.tensor not in run.given]
    if op_name(call) in _CHOOSING:
        masks = [each for each in masks if facts.tensor(each).dtype == "bool"]
    written = {write.tensor for write in call.writes}
    above = (made for each in masks if each not in written for _, made in ancestry(facts, each, call.index, _MAX_CALLS))
    return not any(access.tensor in run.given for made in above for access in made.inputs)


def _sets_zeros(facts: TraceIndex, call: Call, run: Run) -> bool:
    name = op_name(call)
    if name == "setitem":
        is_zero = assigned_number(facts, call) == 0 or zeroing_mask(facts, call) is not None
        return is_zero and _is_at_fixed_places(facts, call, run)
    if name in ("mul", "imul"):
        return _has_values(facts, call, run)
    return name in _FILLING and _is_at_fixed_places(facts, call, run)


def _writes(facts: TraceIndex, made: Call, number: int, before: int) -> Iterator[Call]:
    """Yields the calls that write to the memory of what a call has made, before an event."""
    storages = facts.storages_of(number)
    for call in facts.calls_between(made.index + 1, before - 1):
        if any(facts.storage_of(write.tensor, call.index) in storages for write in call.writes):
            yield call
