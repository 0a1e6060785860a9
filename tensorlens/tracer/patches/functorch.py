"""The transforms of `torch.func`, each as one call: what runs inside are wrappers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch._functorch.apis
import torch._functorch.eager_transforms

from tensorlens.tracer.isolation.guard import caller
from tensorlens.tracer.patches.gradcheck_and_functional import GIVEN
from tensorlens.tracer.patches.record_call import record_patched_call
from tensorlens.tracer.recording.recorder import Recorder

Wrap = Callable[[Recorder, Any], Any]


def _transformed(name: str) -> Wrap:
    """A function of `torch.func` as a whole: what runs inside are wrappers, and only this leads from what it was given
    to its result."""

    def wrap(recorder: Recorder, original: Any) -> Any:
        def call(function: Any, *args: Any, **kwargs: Any) -> Any:
            if recorder.paused:
                return original(function, *args, **kwargs)
            frame = recorder.sites.user_frame(caller())
            recorder.callbacks.add(GIVEN + name, function, frame)
            return record_patched_call(recorder, (original, name, frame), (function, *args), kwargs)

        return call

    return wrap


PATCHES: tuple[tuple[Any, str, Wrap], ...] = (
    (torch._functorch.apis, "vmap_impl", _transformed("func.vmap")),
    (torch._functorch.eager_transforms, "grad_and_value_impl", _transformed("func.grad")),
    (torch._functorch.eager_transforms, "_vjp_with_argnums", _transformed("func.vjp")),
    (torch._functorch.eager_transforms, "_jvp_with_argnums", _transformed("func.jvp")),
)
