"""Writes to storages and exports of memory, which move no version and are no call of torch's.

`PATCHES` goes with the table in `patches.py`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.dlpack

from tensorlens.tracer.isolation.guard import caller
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.recorder import Recorder

Wrap = Callable[[Recorder, Any], Any]


def _writes(recorder: Recorder, original: Any) -> Any:
    """A method of a storage that writes to it: what has changed before is another line's."""

    @functools.wraps(original)
    def write(self: Any, *args: Any, **kwargs: Any) -> Any:
        frame = caller()
        if recorder.paused or not recorder.sites.is_user(frame.f_code.co_filename):
            return original(self, *args, **kwargs)
        recorder.saved_tensors.compare_all(frame)
        result = original(self, *args, **kwargs)
        recorder.saved_tensors.note_storage_write(frame)
        return result

    return write


def _exports(recorder: Recorder, original: Any) -> Any:
    """`to_dlpack(tensor)`: a capsule on the memory, through which anything can write."""

    @functools.wraps(original)
    def to_dlpack(tensor: Any) -> Any:
        capsule = original(tensor)
        if not recorder.paused and isinstance(tensor, torch.Tensor):
            frame = caller()
            recorder.gap(ops.SHARED_WITH_NUMPY, frame)
            recorder.saved_tensors.watch(tensor, "torch.to_dlpack", frame, True)
        return capsule

    return to_dlpack


PATCHES: tuple[tuple[Any, str, Wrap], ...] = (
    *((torch.UntypedStorage, name, _writes) for name in ("fill_", "copy_", "__setitem__")),
    (torch, "to_dlpack", _exports),
    (torch.utils.dlpack, "to_dlpack", _exports),
)
