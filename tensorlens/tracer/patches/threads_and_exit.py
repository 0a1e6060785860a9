"""Follows the program into its threads, hides this package's frames when a thread fails, and notes `os._exit`."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.hidden_frames import strip, strip_traceback
from tensorlens.tracer.isolation.patch import Patch, observe, observe_always
from tensorlens.tracer.recording.recorder import Recorder


@observe
def _thread(recorder: Recorder, original: Function) -> Function:
    """Makes a thread of the program push the mode, which is thread-local, before its own work begins."""

    def _bootstrap_inner(_: FrameType, self: threading.Thread) -> None:
        with recorder.in_thread(), _thread_error_stripped(self):
            original(self)

    return _bootstrap_inner


@contextmanager
def _thread_error_stripped(thread: threading.Thread) -> Iterator[None]:
    """Strips the exception that ends a thread. The interpreter shows it without the `traceback` module."""
    invoke: Callable[[object], None] = thread._invoke_excepthook  # type: ignore[attr-defined]

    def invoke_stripped(ended: object) -> None:
        error = sys.exc_info()[1]
        with suppress(Exception):  # then it is shown with this package's frames
            if error is not None:
                strip(error)
        invoke(ended)

    thread._invoke_excepthook = invoke_stripped  # type: ignore[attr-defined]
    yield


@observe_always
def _unraisable(_: Recorder, original: Function) -> Function:
    """Strips the exception of a finalizer. The interpreter shows it without the `traceback` module."""

    def unraisablehook(_: FrameType, raised: sys.UnraisableHookArgs) -> None:
        if raised.exc_value is not None:
            strip(raised.exc_value)
        shown = (raised.exc_type, raised.exc_value, strip_traceback(raised.exc_traceback), raised.err_msg)
        original(type(raised)((*shown, raised.object)))  # type: ignore[call-arg]

    return unraisablehook


@observe_always
def _exit(recorder: Recorder, original: Function) -> Function:
    """Ends the recording before `os._exit` ends the process at once."""

    def _exit(_: FrameType, status: int) -> None:
        try:
            recorder.leaving(status)
        finally:
            original(status)

    return _exit


PATCHES = (
    Patch(threading.Thread, "_bootstrap_inner", _thread),
    Patch(sys, "unraisablehook", _unraisable),
    Patch(os, "_exit", _exit),
)
