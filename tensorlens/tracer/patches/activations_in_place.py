"""Records activations, and has it noted what the program keeps of a tensor that one of them changes in place."""

from __future__ import annotations

from types import FrameType

import torch
from torch.nn import functional

from tensorlens.tracer.frames.call_sites import frame_at
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.ops import Args, Kwargs
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.training.changed_while_kept import Kept

ACTIVATIONS: tuple[Function, ...] = (
    functional.relu, functional.relu6, functional.leaky_relu, functional.elu, functional.selu, functional.celu,
    functional.hardtanh, functional.hardswish, functional.hardsigmoid, functional.silu, functional.mish,
)  # fmt: skip
_MOST_PLAIN = 256  # calls that change nothing


def activate(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records an activation. A function that never works in place takes the fast path after some calls."""
    frame = frame_at(2)
    if recorder.statistics is None:
        return recorder.call(func, args, kwargs, frame)
    if kwargs.get("inplace") is True:
        return change(recorder, func, args, kwargs, frame)
    if recorder.statistics.kept.count_plain(func) == _MOST_PLAIN:
        recorder.call_kinds[func] = ops.ORDINARY
    return recorder.call(func, args, kwargs, frame)


def change(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs, frame: FrameType | None) -> object:
    """Records a call that changes its first argument in place."""
    kept: Kept | None = None
    with ErrorGuard(recorder, "what is kept", frame), torch._C.DisableTorchFunctionSubclass(), MutedDispatch():
        if recorder.statistics is not None and args:
            kept = recorder.statistics.kept.before(func, args[0], frame)
    result = recorder.call(func, args, kwargs, frame)
    if kept is not None and recorder.statistics is not None:
        with ErrorGuard(recorder, "what is kept", frame), torch._C.DisableTorchFunctionSubclass(), MutedDispatch():
            recorder.statistics.kept.after(kept, args[0])
    return result
