"""Records one call that the mode does not see, like any other call of PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from types import FrameType
from typing import NamedTuple

import torch

from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.recording.recorder import Recorder, collect_tensors

_next_sequence = torch._C._autograd._get_sequence_nr


class PatchedCall(NamedTuple):
    """A call of a patched function: what to run, the name to record it under, and the frame that made it."""

    function: Function
    name: str
    frame: FrameType | None


def record_patched_call(
    recorder: Recorder, called: PatchedCall, args: tuple[object, ...], kwargs: Mapping[str, object]
) -> object:
    """Runs a function that the mode does not see, and records the call.

    The program's own modes are active here, as they are not inside a mode. They must not see what the recorder reads.
    """
    function, name, frame = called
    tensors: list[torch.Tensor] = []
    try:
        with torch._C.DisableTorchFunction():
            collect_tensors((args, kwargs), tensors, 4)
            inputs = recorder.accesses(tensors)
    except Exception as internal_error:
        recorder.internal_error("a call", internal_error, frame)
        return function(*args, **kwargs)
    before = _next_sequence()
    try:
        result = function(*args, **kwargs)
    except BaseException as error:
        recorder.fail(error, name, inputs, frame)
        raise
    with torch._C.DisableTorchFunction():
        done = getattr(function, "__wrapped__", function), name, frame, False, True, (args, kwargs)
        recorder.finish(done, result, tensors, inputs, before)
    return result


def record_use(recorder: Recorder, called: PatchedCall, tensors: list[torch.Tensor]) -> None:
    """Records a call that has ended, with `tensors` as its inputs and without outputs."""
    sequence = _next_sequence()
    with torch._C.DisableTorchFunction():
        done = (*called, False, True, ())
        recorder.finish(done, None, tensors, recorder.accesses(tensors), sequence)
