"""A recorder put in place in a process where others may be, and may leave in any order: threads, tasks, generators."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import torch

from tensorlens.tracer.patches.table import installed
from tensorlens.tracer.patches.warnings_and_tracebacks import warnings_and_tracebacks_cleaned
from tensorlens.tracer.recording.recorder import Recorder

_lock = threading.RLock()
_installations: list[Installation] = []  # in the order in which their patches lie on each other


class Installation:
    """The patches of a recorder, and its mode on the stack of this thread."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._patches = ExitStack()
        self._over = False
        with _lock:
            self._patches.enter_context(warnings_and_tracebacks_cleaned(recorder))
            self._patches.enter_context(installed(recorder))
            _installations.append(self)
        torch._C._push_on_torch_function_stack(recorder)

    def take_out(self) -> None:
        """Record no more. Patches that others lie on stay, idle, until those are taken out."""
        _take_off_stack(self._recorder)
        with _lock:
            self._over = True
            if _installations[-1] is not self:
                self._recorder.callbacks.end()
            while _installations and _installations[-1]._over:
                _installations.pop()._patches.close()
        self._recorder.paused = True  # threads that it was on go on without it


def _take_off_stack(recorder: Recorder) -> None:
    """Take the recorder's mode off, from below others that were pushed since and are still there."""
    above = []
    while torch._C._len_torch_function_stack():
        mode = torch._C._pop_torch_function_stack()
        if mode is recorder:
            break
        above.append(mode)
    for mode in reversed(above):
        torch._C._push_on_torch_function_stack(mode)
