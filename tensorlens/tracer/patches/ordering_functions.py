"""Records the functions that make an order of places, and has their keys and orders measured."""

from __future__ import annotations

import torch

from tensorlens.tracer.frames.call_sites import frame_at
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch
from tensorlens.tracer.recording.ops import Args, Kwargs
from tensorlens.tracer.recording.recorder import Recorder

ORDERING = torch.sort, torch.argsort, torch.Tensor.sort, torch.Tensor.argsort, torch.randperm


def order(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records a sort or a random order. With `--training`, notes whether a sort may leave all in their place, and what
    the order does if it is taken twice."""
    frame = frame_at(2)
    keys = args[0] if args else kwargs.get("input")
    descending = args[2] if len(args) > 2 else kwargs.get("descending", False)
    is_noted = recorder.statistics is not None and "out" not in kwargs
    if recorder.statistics is not None and is_noted and type(descending) is bool:
        with ErrorGuard(recorder, "keys", frame), torch._C.DisableTorchFunctionSubclass(), MutedDispatch():
            recorder.statistics.sorts.look(keys, descending, frame)
    result = recorder.call(func, args, kwargs, frame)
    if recorder.statistics is not None and is_noted:
        with ErrorGuard(recorder, "an order", frame), torch._C.DisableTorchFunctionSubclass(), MutedDispatch():
            axis = args[1] if len(args) > 1 else kwargs.get("dim", -1)
            recorder.statistics.sorts.look_at_order(result, axis, frame)
    return result
