"""Notes writes to storages and exports of memory, which move no version counter and are no torch function."""

from __future__ import annotations

from types import FrameType

import torch
import torch.utils.dlpack

from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.patch import Patch, observe
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.recorder import Recorder


@observe
def _write(recorder: Recorder, original: Function) -> Function:
    """Notes a write by a method of a storage. Compares memory first: an earlier change is another line's write."""

    def write(frame: FrameType, /, self: torch.UntypedStorage, *args: object, **kwargs: object) -> object:
        if not recorder.sites.is_user(frame.f_code.co_filename):
            return original(self, *args, **kwargs)
        recorder.saved_tensors.compare_all(frame)
        result: object = original(self, *args, **kwargs)
        recorder.saved_tensors.note_storage_write(frame)
        return result

    return write


@observe
def _export(recorder: Recorder, original: Function) -> Function:
    """Notes `to_dlpack(tensor)`: through the capsule that it returns, any code can write to the tensor's memory."""

    def to_dlpack(frame: FrameType, tensor: object) -> object:
        capsule: object = original(tensor)
        if isinstance(tensor, torch.Tensor):
            recorder.gap(ops.SHARED_WITH_NUMPY, frame)
            recorder.saved_tensors.watch(tensor, "torch.to_dlpack", frame, True)
        return capsule

    return to_dlpack


PATCHES = (
    *(Patch(torch.UntypedStorage, name, _write) for name in ("fill_", "copy_", "__setitem__")),
    Patch(torch, "to_dlpack", _export),
    Patch(torch.utils.dlpack, "to_dlpack", _export),
)
