"""Tensors that the program's saved-tensor hooks pack: no version check guards them, so their versions are kept here.

What a hook has packed travels with the version that the tensor had; when it is unpacked on the same memory at another
version, backward is about to use values that were not saved. Nothing is kept alive that the hook does not keep.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from tensorlens.journal.rows import NONE
from tensorlens.records.observations import Stale
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.recording.recorder import Recorder, version_of
from tensorlens.tracer.recording.tensor_text import short_text


@dataclass(slots=True)
class PackedTensors:
    """What a pack hook returned, and the tensor that it was given: its id, storage and version then."""

    value: Any
    tensor: int
    storage: int
    version: int
    sequence: int  # of the node that saves it


def keeps_tensors(pack: Any) -> bool:
    """Whether a pack hook may keep what it is given: those of a checkpoint have it computed again."""
    return getattr(pack, "__module__", "") != "torch.utils.checkpoint"


def with_version_check(recorder: Recorder, pack: Any, unpack: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The two hooks, with the version of what they pack noted on the way."""

    def packing(tensor: torch.Tensor) -> PackedTensors:
        if recorder.paused:
            return PackedTensors(pack(tensor), NONE, NONE, NONE, NONE)
        known = (NONE, NONE, NONE, NONE)
        recorder.untracked.packs = True
        with ErrorGuard(recorder, "what a hook packs"), torch._C.DisableTorchFunction():
            _, number, _, storage = recorder.identity.entry(tensor)
            known = number, storage, version_of(tensor), torch._C._autograd._get_sequence_nr() - 1
        return PackedTensors(pack(tensor), *known)

    def unpacking(packed: PackedTensors) -> Any:
        result = unpack(packed.value)
        if not recorder.paused and isinstance(result, torch.Tensor):
            with ErrorGuard(recorder, "what a hook unpacks"), torch._C.DisableTorchFunction(), MutedDispatch():
                _compare(recorder, packed, result)
        return result

    return packing, unpacking


def _compare(recorder: Recorder, packed: PackedTensors, result: torch.Tensor) -> None:
    version = version_of(result)
    if NONE in (packed.storage, packed.version, version) or version <= packed.version:
        return
    if recorder.identity.entry(result)[3] == packed.storage:
        versions = (packed.version, version)
        values = ("", short_text(result))
        recorder.rows.write_fact(Stale, None, "", packed.sequence, "", packed.tensor, versions, *values)
