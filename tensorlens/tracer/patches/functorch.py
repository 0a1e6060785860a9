"""Records each transform of `torch.func` as one call."""

from __future__ import annotations

from types import FrameType

import torch
import torch._functorch.apis
import torch._functorch.eager_transforms

from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.patch import Observing, Patch, observe
from tensorlens.tracer.patches.gradcheck_and_functional import GIVEN
from tensorlens.tracer.patches.record_call import PatchedCall, record_patched_call
from tensorlens.tracer.recording.recorder import Recorder


def _transform(name: str) -> Observing[Recorder]:
    """Records a transform as one call: the calls inside use wrapped tensors, which do not link inputs and result."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def call(frame: FrameType, /, function: Function, *args: object, **kwargs: object) -> object:
            user = recorder.sites.user_frame(frame)
            recorder.callbacks.add(GIVEN + name, function, user)
            return record_patched_call(recorder, PatchedCall(original, name, user), (function, *args), kwargs)

        return call

    return wrap


PATCHES = (
    Patch(torch._functorch.apis, "vmap_impl", _transform("func.vmap")),
    Patch(torch._functorch.eager_transforms, "grad_and_value_impl", _transform("func.grad")),
    Patch(torch._functorch.eager_transforms, "_vjp_with_argnums", _transform("func.vjp")),
    Patch(torch._functorch.eager_transforms, "_jvp_with_argnums", _transform("func.jvp")),
)
