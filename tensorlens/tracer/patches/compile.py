"""Takes the mode off the stack while `torch.compile`d code runs and while `torch.jit` traces."""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import cast

import torch

from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Patch, observe, observe_always
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.recorder import Recorder

JIT = "traced by `torch.jit`: what runs inside is not seen"


@observe_always
def _jit_trace(recorder: Recorder, original: Function) -> Function:
    """Lets `torch.jit` trace without the mode: with it, the graph would not name the program's lines and values."""

    def trace(frame: FrameType, /, *args: object, **kwargs: object) -> object:
        if not recorder.paused:
            recorder.gap(JIT, frame)
        with recorder.aside():
            return original(*args, **kwargs)

    return trace


@observe
def _compile(recorder: Recorder, original: Function) -> Function:
    """Lets compiled code run as compiled. The recorder does not see it, and the report says so."""

    def compile_(_: FrameType, /, model: Function | None = None, *args: object, **kwargs: object) -> object:
        compiled = original(model, *args, **kwargs)
        if model is None:
            return lambda function: _without_mode(recorder, compiled(function))
        return _without_mode(recorder, compiled)

    return compile_


def _without_mode(recorder: Recorder, compiled: Function) -> Function:
    """Makes a compiled function or module take the mode off the stack while it runs."""
    run = compiled.forward if isinstance(compiled, torch.nn.Module) else compiled

    @functools.wraps(run)
    def run_compiled(*args: object, **kwargs: object) -> object:  # no patch: it wraps an object of the program
        if not recorder.paused:
            with ErrorGuard(recorder, "compiled code"):
                recorder.gap(ops.COMPILED, sys._getframe(1))
        with recorder.aside():
            return run(*args, **kwargs)

    if isinstance(compiled, torch.nn.Module):
        object.__setattr__(compiled, "forward", run_compiled)
        return cast(Function, compiled)
    return run_compiled


PATCHES = (
    Patch(torch, "compile", _compile),
    Patch(torch.jit, "trace", _jit_trace),
    Patch(torch.jit, "trace_module", _jit_trace),
    Patch(torch.jit, "_get_trace_graph", _jit_trace),
)
