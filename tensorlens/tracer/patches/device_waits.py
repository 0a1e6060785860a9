"""Records where the program waits for a device in a way that the mode does not see.

An error in a kernel is noticed at the next wait, so what was queued before the last wait can't have failed.
"""

from __future__ import annotations

from types import FrameType

import torch

from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.patch import Observing, Patch, observe
from tensorlens.tracer.patches.record_call import PatchedCall, record_patched_call
from tensorlens.tracer.recording.recorder import Recorder


def _waiting(name: str) -> Observing[Recorder]:
    """Records a function that waits for everything that is queued on a device."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def synchronize(frame: FrameType, /, *args: object, **kwargs: object) -> object:
            return record_patched_call(recorder, PatchedCall(original, name, frame), args, kwargs)

        return synchronize

    return wrap


PATCHES = (
    Patch(torch.cuda, "synchronize", _waiting("torch.cuda.synchronize")),
    Patch(torch.accelerator, "synchronize", _waiting("torch.accelerator.synchronize")),
)
