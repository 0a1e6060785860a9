"""Notes which tensors `torch.save` writes to a file. Installed in runs with `--training` only."""

from __future__ import annotations

from types import FrameType

import torch

from tensorlens.records.training import SavedToFile
from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.module_tree import Limit, module_tensors, reachable_tensors
from tensorlens.tracer.isolation.patch import Patch, observe
from tensorlens.tracer.recording.recorder import Recorder

MOST = 2_000  # tensors of one file
_DEPTH = 4


@observe
def _save(recorder: Recorder, original: Function) -> Function:
    def save(frame: FrameType, obj: object, *args: object, **kwargs: object) -> object:
        result = original(obj, *args, **kwargs)
        with torch._C.DisableTorchFunction():
            limit = Limit(MOST, MOST, collections=True)
            found = reachable_tensors(
                obj, _DEPTH, limit, lambda path, module: module_tensors(path, module, limit), lambda _: ()
            )
            numbers = (recorder.tensor_ids.find(tensor) for _, tensor in found)
            known = tuple(dict.fromkeys(number for number in numbers if number is not None))
            recorder.rows.write_fact(SavedToFile, recorder.sites.site_or_outside(frame), known[:MOST])
        return result

    return save


PATCHES = (Patch(torch, "save", _save),)
