"""Finds where a tensor that fails backward's version check was saved, where it was changed, and through which alias."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tensorlens.analysis.trace_index import TraceIndex, is_result_slot
from tensorlens.records.failure_context import SavedTensor
from tensorlens.records.model import Backward, Call, Failure, Write
from tensorlens.records.observations import StaleSavedTensor


@dataclass(frozen=True, slots=True)
class Save:
    """A saved tensor, the call that saved it, and the tensor object that the call saved; None for what is not known."""

    saved: SavedTensor
    call: Call | None
    tensor: int | None


@dataclass(frozen=True, slots=True)
class InplaceChange:
    """A change in place with its event: a call, or a backward pass that adds to a `.grad`."""

    event: Call | Backward
    write: Write


@dataclass(frozen=True, slots=True)
class Alias:
    """A call that made `tensor` share the memory of its input `source`: a view, or `detach()`."""

    call: Call
    tensor: int
    source: int


@dataclass(frozen=True, slots=True)
class SavedTensorChange:
    """The saved tensor that a failed backward raised on: where it was saved, changed and needed."""

    save: Save
    changes: tuple[InplaceChange, ...]  # those after the save, in order; empty if none was recorded
    alias: Alias | None  # how they share memory, if the first change was made through another tensor object
    needed_at: int | None  # the site of the failed backward
    others: tuple[Save, ...]  # further saved tensors of the same graph that fail the version check

    @property
    def first(self) -> InplaceChange | None:
        return self.changes[0] if self.changes else None


def saved_tensor_change(facts: TraceIndex, failure: Failure) -> SavedTensorChange | None:
    """Finds what changed the saved tensor that `failure` is about; None if the graph could not be read."""
    modified = [saved for saved in failure.saved if saved.problem == "version"]
    if not modified:
        return None
    save = find_save(facts, modified[0], failure.index)
    changes = tuple(changes_after(facts, save, failure.index))
    alias = _find_alias(facts, save, changes[0]) if changes else None
    others = tuple(_save_by_node(facts, saved, failure.index) for saved in modified[1:])
    return SavedTensorChange(save, changes, alias, failure.site, others)


def stale_tensor(stale: StaleSavedTensor, by: Call | None) -> int | None:
    """Returns the tensor that had changed when backward used it.

    If it was not recorded, it is the result of the call `by` that saved it, provided that the slot holds a result.
    """
    if stale.tensor is None and by is not None and by.outputs and is_result_slot(stale.slot):
        return by.outputs[0].tensor
    return stale.tensor


def is_saved_on_line(facts: TraceIndex, save: Save, site: int) -> bool:
    """Returns whether the line at `site` saves the tensor, itself or in a function that it calls."""
    sites = () if save.call is None else facts.call_chain(save.call.site)
    return any(facts.same_line(saving, site) for saving in sites)


def find_save(facts: TraceIndex, saved: SavedTensor, before: int) -> Save:
    """Finds the call before event `before` that saved a tensor, and the tensor object."""
    if not saved.node:
        return _save_by_versions(facts, saved, before)
    save = _save_by_node(facts, saved, before)
    inner = None if save.call is None else _save_for_backward(facts, save.call, saved)
    return save if inner is None else replace(save, call=inner)


def _save_by_node(facts: TraceIndex, saved: SavedTensor, before: int) -> Save:
    """Finds the save by the call that made the node which holds the saved tensor."""
    call = facts.call_of_node(saved.sequence, before, saved.node)
    return Save(saved, call, _tensor_there(facts, saved) if call is None else facts.saved_tensor(saved, call))


def _tensor_there(facts: TraceIndex, saved: SavedTensor) -> int | None:
    """Returns the saved tensor, or one with its memory if all tensors there share a version counter."""
    if saved.tensor is not None or saved.storage is None:
        return saved.tensor
    there = [number for number, tensor in enumerate(facts.trace.tensors) if tensor.storage == saved.storage]
    if len({facts.tensor(number).counter for number in there}) != 1:
        return None
    return min(there, key=lambda number: (facts.tensor(number).base is not None, number))


def _save_for_backward(facts: TraceIndex, apply: Call, saved: SavedTensor) -> Call | None:
    """Finds the `ctx.save_for_backward` call in the forward of a custom Function that saved this tensor."""
    if not apply.op.endswith(".apply"):
        return None
    for call in reversed(facts.calls):
        if call.index >= apply.index:
            continue
        if call.op == "ctx.save_for_backward" and call.nodes[0] >= apply.nodes[0]:
            if any(facts.tensor(access.tensor).storage == saved.storage for access in call.inputs):
                return call
    return None


def _save_by_versions(facts: TraceIndex, saved: SavedTensor, before: int) -> Save:
    """Finds the save of a tensor that the graph does not show, such as one of a checkpoint, by its shape and versions.

    A call can have saved it if it used a tensor of this shape at the saved version, and a later write gave that tensor
    the version that backward found. The answer is certain only if that is one memory, and one line used it.
    """
    found: list[tuple[Call, int]] = []
    for call in facts.calls:
        if call.index >= before or call.mode != "grad" or call.nodes[0] == call.nodes[1] or call.writes:
            continue
        for access in call.inputs:
            tensor = facts.tensor(access.tensor)
            if tensor.shape != saved.shape or access.version != saved.expected:
                continue
            later = (write for event, write in facts.writes(tensor.counter) if event.index > call.index)
            if any(write.after == saved.found for write in later):
                found.append((call, access.tensor))
    if not found or len({facts.tensor(number).counter for _, number in found}) > 1:
        return Save(saved, None, None)
    call, number = found[-1]
    return Save(saved, call if len({each.site for each, _ in found}) == 1 else None, number)


def changes_after(facts: TraceIndex, save: Save, before: int) -> Iterator[InplaceChange]:
    """Yields the changes in place of a saved tensor after its save and before event `before`."""
    if save.tensor is None or save.saved.expected is None:
        return
    first = 0 if save.call is None else save.call.index
    for event, write in facts.writes(facts.tensor(save.tensor).counter):
        if write.after > save.saved.expected and first <= event.index < before:
            yield InplaceChange(event, write)


def _find_alias(facts: TraceIndex, save: Save, change: InplaceChange) -> Alias | None:
    """Finds the line that made the written tensor and the saved one share memory."""
    written = change.write.tensor
    if save.tensor is None or written == save.tensor:
        return None
    for number in (written, save.tensor):
        call = facts.creator(number)
        if call is None or call.site == change.event.site:
            continue
        source = next((access.tensor for access in call.inputs if shares_memory(facts, access.tensor, number)), None)
        if source is None:
            continue
        made = facts.creator(source)
        if made is None or made.site != call.site or facts.names.is_named(source):
            return Alias(call, number, source)  # else one library call made both, and no line shows the sharing
    return None


def is_step(facts: TraceIndex, event: Call | Backward) -> bool:
    """Returns whether an optimizer's own `step()` made a change: not the closure that it calls."""
    if not isinstance(event, Call) or not event.within:
        return False
    site = facts.trace.sites[event.site]
    return not facts.names.syntax.is_direct(site, event.op) or site.function.endswith(event.within)


def shares_memory(facts: TraceIndex, one: int, other: int) -> bool:
    """Returns whether two tensors use the same storage."""
    storage = facts.tensor(one).storage
    return storage is not None and storage == facts.tensor(other).storage
