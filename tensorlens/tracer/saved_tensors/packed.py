"""Checks the versions of tensors that the program's `saved_tensors_hooks` pack: PyTorch has no version check for them.

What a pack hook returns is kept together with the version of the tensor. If it is unpacked on the same storage at a
later version, backward is about to use values that were not saved. Nothing is kept alive that the hook does not keep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tensorlens.journal.rows import NONE
from tensorlens.records.observations import StaleSavedTensor
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.recording.recorder import Recorder, version_of
from tensorlens.tracer.recording.tensor_text import short_text

Pack = Callable[[torch.Tensor], object]
Unpack = Callable[[Any], object]


@dataclass(slots=True)
class PackedTensor:
    """Holds what a pack hook returned, and the id, storage and version of the tensor that the hook received."""

    value: object
    tensor: int = NONE
    storage: int = NONE
    version: int = NONE
    sequence: int = NONE  # of the node that saves it


def keeps_tensors(pack: object) -> bool:
    """Returns whether a pack hook may keep its tensor. Those of a checkpoint recompute it."""
    return getattr(pack, "__module__", "") != "torch.utils.checkpoint"


def with_version_check(
    recorder: Recorder, pack: Pack, unpack: Unpack, when_packed: Callable[[], None]
) -> tuple[Pack, Unpack]:
    """Returns the two hooks with a version check around them. Calls `when_packed` before each tensor that is packed."""

    def packing(tensor: torch.Tensor) -> PackedTensor:
        if recorder.paused:
            if recorder.off:
                when_packed()
            return PackedTensor(pack(tensor))
        known = (NONE, NONE, NONE, NONE)
        when_packed()
        with ErrorGuard(recorder, "what a hook packs"), torch._C.DisableTorchFunction():
            _, number, _, storage = recorder.tensor_ids.entry(tensor)
            known = number, storage, version_of(tensor), torch._C._autograd._get_sequence_nr() - 1
        return PackedTensor(pack(tensor), *known)

    def unpacking(packed: PackedTensor) -> object:
        result = unpack(packed.value)
        if not recorder.paused and isinstance(result, torch.Tensor):
            with ErrorGuard(recorder, "what a hook unpacks"), torch._C.DisableTorchFunction(), MutedDispatch():
                _check_version(recorder, packed, result)
        return result

    return packing, unpacking


def _check_version(recorder: Recorder, packed: PackedTensor, result: torch.Tensor) -> None:
    version = version_of(result)
    if NONE in (packed.storage, packed.version, version) or version <= packed.version:
        return
    if recorder.tensor_ids.entry(result)[3] == packed.storage:
        versions = (packed.version, version)
        values = ("", short_text(result))
        recorder.rows.write_fact(StaleSavedTensor, None, "", packed.sequence, "", packed.tensor, versions, *values)
