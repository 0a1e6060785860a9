"""Functions that the mode passes over, recorded like any other torch call."""

from __future__ import annotations

from typing import Any

import torch

from tensorlens.tracer.recording.recorder import Recorder, collect_tensors


def record_patched_call(recorder: Recorder, called: tuple[Any, str, Any], args: Any, kwargs: Any) -> Any:
    """Run a function that the mode passes over, recorded like any other torch call: (function, name, frame). The
    program's own modes are active here, other than in a mode's handler; they are not to see what we read."""
    func, name, frame = called
    tensors: list[torch.Tensor] = []
    try:
        with torch._C.DisableTorchFunction():
            collect_tensors((args, kwargs), tensors, 4)
            inputs = recorder.accesses(tensors)
    except Exception as trouble:  # ours, never the user's
        recorder.internal_error("a call", trouble, frame)
        return func(*args, **kwargs)
    before = torch._C._autograd._get_sequence_nr()
    try:
        result = func(*args, **kwargs)
    except BaseException as error:
        recorder.fail(error, name, inputs, frame)
        raise
    with torch._C.DisableTorchFunction():
        done = getattr(func, "__wrapped__", func), name, frame, False, True, (args, kwargs)
        recorder.finish(done, result, tensors, inputs, before)
    return result
