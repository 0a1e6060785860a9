"""Notes the functions that a program passes to `gradcheck` and to `autograd.functional`."""

from __future__ import annotations

import sys
from types import FrameType

import torch
import torch.autograd.functional

from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.patch import Patch, observe
from tensorlens.tracer.recording.recorder import Recorder

GIVEN = "given to "


@observe
def _takes_function(recorder: Recorder, original: Function) -> Function:
    """Notes the first argument, a function of the user's."""

    def take(frame: FrameType, /, func: Function, *args: object, **kwargs: object) -> object:
        recorder.callbacks.add(GIVEN + original.__name__, func, frame)
        return original(func, *args, **kwargs)

    return take


_CHECKS = sys.modules["torch.autograd.gradcheck"]

PATCHES = (
    *(
        Patch(owner, name, _takes_function)
        for owner in (torch.autograd, _CHECKS)
        for name in ("gradcheck", "gradgradcheck")
    ),
    *(
        Patch(torch.autograd.functional, name, _takes_function)
        for name in ("jacobian", "hessian", "vjp", "jvp", "vhp", "hvp")
    ),
)
