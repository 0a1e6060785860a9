"""Finds saved tensors that changed after they were saved, by reading the graph before a backward pass.

This is done only if memory was changed past its version counter (`overwrites`), or if a custom Function keeps tensors
as plain attributes of its `ctx`. Saved tensors are read without their version check; nothing is changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from tensorlens.journal.rows import NONE
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
from tensorlens.tracer.recording.recorder import Recorder, version_of
from tensorlens.tracer.recording.tensor_text import SHOWN_VALUES, short_text
from tensorlens.tracer.saved_tensors.context_attributes import Attribute, ContextAttributes, stored_at
from tensorlens.tracer.saved_tensors.graph import (
    LEAF_SEQUENCE,
    MAX_NODES,
    Node,
    check_of,
    data_of,
    nodes_of,
    raw_saved_of,
)
from tensorlens.tracer.saved_tensors.overwrites import Overwrite, Overwrites
from tensorlens.tracer.saved_tensors.watched_storage import address_of, extent_of

MAX_STALE = 50
NOT_COMPARED = f"a graph has more than {MAX_NODES:,} nodes: what the others saved was not checked for unnoticed changes"
CLOSE = 1e-4  # relative: memory that was changed and restored, up to rounding, does no harm
StaleRow = tuple[int | None, str, int, str, int | None, tuple[int, int], str, str, int | None]
"""(change, node, its sequence number, slot, tensor, (version saved, version now), values then, values now, site)"""


def stale_saved_tensors(
    recorder: Recorder, overwrites: Overwrites, attributes: ContextAttributes, roots: list[torch.Tensor]
) -> Iterator[StaleRow]:
    """Finds the saved tensors below `roots` whose values are not those that were saved."""
    changed = attributes.changed() if attributes else {}
    if not overwrites and not changed:
        return
    latest, count = overwrites.latest_sequence(), 0
    for node in nodes_of(roots, on_cut=lambda: recorder.gap(NOT_COMPARED)):
        sequence = node._sequence_nr()
        if sequence < LEAF_SEQUENCE:
            rows = [*_changed_attributes(recorder, node, changed.get(sequence, ()))]
            if sequence < latest:
                rows += _overwritten(recorder, overwrites.after(sequence), node)
            yield from rows
            count += len(rows)
        if count >= MAX_STALE:
            return


def _changed_attributes(recorder: Recorder, node: Node, changed: Sequence[Attribute]) -> Iterator[StaleRow]:
    for name, tensor, version in changed:
        versions = (version, version_of(tensor))
        number = recorder.tensor_ids.id_of(tensor)
        site = stored_at(recorder.sites, node, name)
        yield None, node.name(), node._sequence_nr(), f"ctx.{name}", number, versions, "", short_text(tensor), site


def _overwritten(recorder: Recorder, overwrites: list[Overwrite], node: Node) -> Iterator[StaleRow]:
    for slot, data in _unguarded(node):
        stale = _first_overwrite(recorder, overwrites, data)
        if stale is not None:
            change, number, before, now = stale
            version = version_of(data)
            yield change, node.name(), node._sequence_nr(), slot, number, (version, version), before, now, None


def _unguarded(node: Node) -> Iterator[tuple[str, torch.Tensor]]:
    """Finds (slot, tensor) of the saved tensors whose version check passes, and of the attributes of `ctx`."""
    for slot, raw in raw_saved_of(node):
        if slot.startswith("running_") and getattr(node, "_saved_training", False):
            continue  # saved, and not used: the layer normalised with the statistics of its batch
        data = data_of(raw)
        if data is not None and not has_torch_dispatch(data) and check_of(node, slot) is None:
            yield slot, data
    for name, value in getattr(node, "__dict__", {}).items():
        data = value if isinstance(value, torch.Tensor) else data_of(value)
        if data is not None and not has_torch_dispatch(data):
            yield f"ctx.{name}", data


def _first_overwrite(
    recorder: Recorder, overwrites: list[Overwrite], data: torch.Tensor
) -> tuple[int, int | None, str, str] | None:
    """Returns (change, tensor, values before, values now) of the first change after the tensor was saved."""
    number = recorder.tensor_ids.find(data)
    if number is None and data._base is not None:
        number = recorder.tensor_ids.find(data._base)
    start, size = address_of(data), extent_of(data)
    is_where_it_was = False
    for change in overwrites:
        if change.moved_tensor != NONE:
            if change.moved_tensor == number and not is_where_it_was:
                if change.storage is not None and change.storage() is untyped_storage(data):
                    is_where_it_was = True  # a view keeps its memory, or the tensor was put back on it
                    continue
                return change.number, number, "", short_text(data)
        elif change.start < start + size and start < change.start + change.size:
            values = _different_values(change, data)
            if values is not None:
                return change.number, number, *values
            if change.contents is not None:
                return None  # the values were restored
    return None


def _different_values(change: Overwrite, data: torch.Tensor) -> tuple[str, str] | None:
    """Returns the first values that differ, before and now; None if none does. Without a copy: ("", now)."""
    now, contents = detach(data), change.contents
    offset, rest = divmod(address_of(data) - change.contents_start, element_size(data))
    if contents is None or rest or offset < 0 or offset * element_size(data) + extent_of(data) > len(contents):
        return "", short_text(now)
    memory = frombuffer(bytearray(contents), dtype=now.dtype)
    before = as_strided(memory, now.shape, stride(now), offset)
    differs = ~isclose(before, now, rtol=CLOSE, atol=0.0, equal_nan=True)
    if not some(differs):
        return None
    return _text_of(before, differs), _text_of(now, differs)


def _text_of(tensor: torch.Tensor, differs: torch.Tensor) -> str:
    return short_text(tensor if numel(tensor) <= SHOWN_VALUES else tensor[differs][:SHOWN_VALUES])
