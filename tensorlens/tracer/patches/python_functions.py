"""Gives the calls of PyTorch's Python functions to the mode in C.

`relu`, `cross_entropy`, `Tensor.backward` and their like ask for a mode themselves and call `handle_torch_function`,
which takes the mode off the stack, calls it, and puts it back. The compiled fast path does the same.
"""

from __future__ import annotations

import torch
from torch.overrides import handle_torch_function

from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.patch import Patch, existing
from tensorlens.tracer.recording.recorder import Recorder


def _handle(recorder: Recorder, original: Function) -> Function:
    """No `observe` patch: it observes nothing."""
    in_c = recorder.tensor_ids.in_c
    return original if in_c is None or original is not handle_torch_function else in_c.handle


PATCHES: tuple[Patch[Recorder], ...] = existing(
    Patch(module, "handle_torch_function", _handle) for module in (torch._tensor, torch.functional, torch.nn.functional)
)
