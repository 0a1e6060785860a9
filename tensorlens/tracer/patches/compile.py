"""Where the lens steps out of the way of what surrounds it: `torch.jit` while it traces, the exceptions that threads
and finalizers end with, other processes, and whoever looks at what is patched."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FunctionType
from typing import Any

import torch

from tensorlens.tracer.isolation.guard import ErrorGuard, caller
from tensorlens.tracer.patches.child_processes import PATCHES as PROCESSES
from tensorlens.tracer.patches.warnings_and_tracebacks import strip, strip_traceback
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.recorder import Recorder

JIT = "traced by `torch.jit`: what runs inside is not seen"


def look_like(replacement: Any, original: Any) -> None:
    """Give a patch the name and the signature of what it stands for."""
    function = getattr(replacement, "__func__", replacement)
    if isinstance(function, FunctionType):
        functools.update_wrapper(function, getattr(original, "__func__", original), updated=())


def _tracing(recorder: Recorder, original: Any) -> Any:
    """The graph that `torch.jit` records names the program's lines and values only with no handler in between."""

    def trace(*args: Any, **kwargs: Any) -> Any:
        if not recorder.paused:
            recorder.gap(JIT, caller())
        with recorder.aside():
            return original(*args, **kwargs)

    return trace


def _unraisable(recorder: Recorder, original: Any) -> Any:
    """What a finalizer raises is shown by the interpreter, which walks the traceback itself."""

    def unraisablehook(raised: Any) -> None:
        if raised.exc_value is not None:
            strip(raised.exc_value)
        shown = (raised.exc_type, raised.exc_value, strip_traceback(raised.exc_traceback), raised.err_msg)
        original(type(raised)((*shown, raised.object)))

    return unraisablehook


@contextmanager
def thread_errors_stripped(thread: Any) -> Iterator[None]:
    """What ends a thread is shown by the interpreter, too."""
    invoke: Callable[[Any], None] = thread._invoke_excepthook

    def stripped(ended: Any) -> None:
        error = sys.exc_info()[1]
        with suppress(Exception):  # it is shown with our frames, then
            if error is not None:
                strip(error)
        invoke(ended)

    thread._invoke_excepthook = stripped
    yield


def _compile(recorder: Recorder, original: Any) -> Any:
    """What the program compiles runs as compiled, with the mode out of its way: unseen, and the report says so."""

    def compile_(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        compiled = original(model, *args, **kwargs)
        if recorder.paused:
            return compiled
        if model is None:
            return lambda function: _unseen(recorder, compiled(function))
        return _unseen(recorder, compiled)

    return compile_


def _unseen(recorder: Recorder, compiled: Any) -> Any:
    """A compiled function or module that steps out of the recorder's sight while it runs."""
    run = compiled.forward if isinstance(compiled, torch.nn.Module) else compiled

    @functools.wraps(run)
    def stepping_aside(*args: Any, **kwargs: Any) -> Any:
        if not recorder.paused:
            with ErrorGuard(recorder, "compiled code"):
                recorder.gap(ops.COMPILED, sys._getframe(1))
        with recorder.aside():
            return run(*args, **kwargs)

    if isinstance(compiled, torch.nn.Module):
        object.__setattr__(compiled, "forward", stepping_aside)
        return compiled
    return stepping_aside


PATCHES: tuple[tuple[Any, str, Any], ...] = (
    (torch, "compile", _compile),
    (torch.jit, "trace", _tracing),
    (torch.jit, "trace_module", _tracing),
    (torch.jit, "_get_trace_graph", _tracing),
    (sys, "unraisablehook", _unraisable),
    *PROCESSES,
)
