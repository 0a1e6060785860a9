"""What a backward pass is about to use although it changed after it was kept: read from the graph before the pass.

Only where memory was changed past its version counter (`untracked`), or where a custom Function keeps tensors as plain
attributes of its `ctx`. The walk reads what nodes have saved without their version check; it changes nothing.
"""

from __future__ import annotations

import dis
import weakref
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import torch

from tensorlens.journal.rows import NONE
from tensorlens.records.observations import Nested, Stale
from tensorlens.tracer.isolation.guard import reraise_user_error
from tensorlens.tracer.isolation.muted_dispatch import has_torch_dispatch
from tensorlens.tracer.isolation.torch_originals import (
    as_strided,
    detach,
    element_size,
    frombuffer,
    isclose,
    numel,
    some,
    stride,
    untyped_storage,
)
from tensorlens.tracer.recording.recorder import Recorder, collect_tensors, version_of
from tensorlens.tracer.recording.tensor_text import SHOWN_VALUES, short_text
from tensorlens.tracer.saved_tensors.graph import LEAF_SEQUENCE, check_of, nodes_of, raw_saved_of
from tensorlens.tracer.saved_tensors.memory_watch import Mark, MemoryWatcher
from tensorlens.tracer.saved_tensors.watched_storage import address_of, extent_of

MAX_STALE = 50
CLOSE = 1e-4  # memory that was changed and put back, up to rounding, does no harm


class ContextAttributes:
    """Tensors that custom Functions keep as attributes of `ctx`, with the versions they had when `forward` ended."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self.kept: dict[int, tuple[weakref.ref[Any], dict[str, tuple[weakref.ref[torch.Tensor], int]]]] = {}

    def note(self, result: Any) -> None:
        """Remember the attributes of the node behind what a Function's `apply` returned."""
        first = result[0] if isinstance(result, tuple) and result else result
        node: Any = first.grad_fn if isinstance(first, torch.Tensor) else None
        found = {
            name: (weakref.ref(value), version_of(value))
            for name, value in (vars(node) if hasattr(node, "__dict__") else {}).items()
            if isinstance(value, torch.Tensor)
        }
        if found:
            self.kept[node._sequence_nr()] = (weakref.ref(node), found)

    def note_nested(self, args: tuple[Any, ...]) -> None:
        """Write a row for the tensors that a Function was given inside containers, after its call."""
        tensors: list[torch.Tensor] = []
        collect_tensors([value for value in args if isinstance(value, list | tuple | dict)], tensors)
        if tensors:
            numbers = tuple(self._recorder.identity.meet(tensor) for tensor in tensors)
            self._recorder.rows.write_fact(Nested, numbers)

    def changed(self) -> dict[int, list[tuple[str, torch.Tensor, int]]]:
        """By sequence number of the node: (attribute, tensor, version then) of those that have another version now."""
        found: dict[int, list[tuple[str, torch.Tensor, int]]] = {}
        for sequence, (node, attributes) in list(self.kept.items()):
            if node() is None:
                del self.kept[sequence]
                continue
            for name, (ref, version) in attributes.items():
                tensor = ref()
                if tensor is not None and version != NONE and version_of(tensor) != version:
                    found.setdefault(sequence, []).append((name, tensor, version))
        return found


def note_stale_saved_tensors(recorder: Recorder, roots: list[torch.Tensor], frame: Any) -> None:
    """Write a row for each saved tensor below `roots` that is not what it was when it was saved."""
    untracked: MemoryWatcher = recorder.untracked
    try:
        untracked.look(frame)
        attributes = recorder.attributes.changed() if recorder.attributes.kept else {}
        if not untracked.marks and not attributes:
            return
        latest = max((mark.sequence for mark in untracked.marks), default=NONE)
        found = 0
        for node in nodes_of(roots):
            sequence = node._sequence_nr()
            for row in _of_node(recorder, node, attributes.get(sequence, ()), sequence < latest):
                recorder.rows.write_fact(Stale, *row)
                found += 1
            if found >= MAX_STALE:
                return
    except Exception as trouble:  # ours: the user's backward goes on
        reraise_user_error(trouble)
        recorder.gap(f"the graph could not be read before backward ({type(trouble).__name__}: {trouble})", frame)


def _of_node(recorder: Recorder, node: Any, attributes: Any, saved_before: bool) -> Iterator[tuple[Any, ...]]:
    sequence = node._sequence_nr()
    if sequence >= LEAF_SEQUENCE:
        return
    for name, tensor, version in attributes:
        versions = (version, version_of(tensor))
        known = recorder.identity.meet(tensor)
        site = _kept_at(recorder, node, name)
        yield None, node.name(), sequence, f"ctx.{name}", known, versions, "", short_text(tensor), site
    if not saved_before:
        return
    held = [(f"ctx.{name}", value) for name, value in getattr(node, "__dict__", {}).items()]
    for slot, raw in (*raw_saved_of(node), *held):
        if slot.startswith("running_") and node._saved_training:
            continue  # saved, and not used: it normalised with the statistics of its batch
        data = raw if isinstance(raw, torch.Tensor) else _data(raw)
        if (
            data is not None
            and not has_torch_dispatch(data)
            and (isinstance(raw, torch.Tensor) or check_of(node, slot) is None)
        ):
            row = _compare(recorder, sequence, data)
            if row is not None:
                version = version_of(data)
                yield row[0], node.name(), sequence, slot, row[1], (version, version), row[2], row[3]


def _kept_at(recorder: Recorder, node: Any, name: str) -> int | None:
    """The instruction in the Function's own code that sets the attribute, if there is one only."""
    forms = (getattr(node._forward_cls, form, None) for form in ("forward", "setup_context"))
    codes = [form.__code__ for form in forms if type(form) is FunctionType]
    found = [
        (code, instruction.offset)
        for code in codes
        for instruction in dis.get_instructions(code)
        if instruction.opname == "STORE_ATTR" and instruction.argval == name
    ]
    return recorder.sites.at(*found[0], None) if len(found) == 1 else None


def _data(raw: Any) -> torch.Tensor | None:
    try:
        data = raw.data
    except (RuntimeError, AttributeError):
        return None
    return data if isinstance(data, torch.Tensor) else None


def _compare(recorder: Recorder, sequence: int, data: torch.Tensor) -> tuple[int, int | None, str, str] | None:
    """(OVERWRITE row, tensor, values before, values now) if what a node saved was changed after it did."""
    known = recorder.identity.of(data)
    if known is None and data._base is not None:
        known = recorder.identity.of(data._base)
    start, size = address_of(data), extent_of(data)
    moved = False
    for mark in recorder.untracked.marks:  # the first change after the node is the one that did it
        if mark.sequence <= sequence:
            continue
        if mark.moved != NONE:
            if mark.moved == known and not moved:
                if mark.storage is not None and mark.storage() is untyped_storage(data):
                    moved = True  # what the node saved lies where it lay: a view keeps its memory, or it was put back
                    continue
                return mark.number, known, "", short_text(data)
        elif mark.start < start + size and start < mark.start + mark.size:
            values = _values(mark, data)
            if values is not None:
                return mark.number, known, *values
            if mark.content is not None:
                return None  # it was put back
    return None


def _values(mark: Mark, data: torch.Tensor) -> tuple[str, str] | None:
    """The first values that differ, then and now; None where none does. ("", now) where the old ones were not kept."""
    now = detach(data)
    offset, rest = divmod(address_of(data) - mark.base, element_size(data))
    if mark.content is None or rest or offset < 0 or offset * element_size(data) + extent_of(data) > len(mark.content):
        return "", short_text(now)
    memory = frombuffer(bytearray(mark.content), dtype=now.dtype)
    then = as_strided(memory, now.shape, stride(now), offset)
    differs = ~isclose(then, now, rtol=CLOSE, atol=0.0, equal_nan=True)
    if not some(differs):
        return None
    return _shown(then, differs), _shown(now, differs)


def _shown(tensor: torch.Tensor, differs: torch.Tensor) -> str:
    return short_text(tensor if numel(tensor) <= SHOWN_VALUES else tensor[differs][:SHOWN_VALUES])
