"""Activates recorders inside a running process. Several may be active, and may end in any order: in threads, tasks
and generators.
"""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack

import torch

from tensorlens.tracer.patches.table import installed
from tensorlens.tracer.patches.warnings_and_tracebacks import warnings_and_tracebacks_cleaned
from tensorlens.tracer.recording.recorder import Recorder

_lock = threading.RLock()
_installations: list[Installation] = []  # in the order in which they were installed


def _after_fork() -> None:
    """Renews the locks in a forked child, in which the recordings go on."""
    for installation in _installations:
        installation.recorder.after_fork()


os.register_at_fork(after_in_child=_after_fork)


class Installation:
    """Installs the patches of a recorder, and pushes its mode on the stack of this thread."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self._patches = ExitStack()
        self._over = False
        with _lock:
            self._patches.enter_context(warnings_and_tracebacks_cleaned(recorder))
            self._patches.enter_context(installed(recorder))
            _installations.append(self)
        torch._C._push_on_torch_function_stack(recorder.mode)

    def stop(self) -> None:
        """Ends the recording in this thread. The patches stay installed, without effect, until `take_out`."""
        _take_off_stack(self.recorder)
        self.recorder.paused = True

    def take_out(self) -> None:
        """Ends the recording. If another recorder has patched the same functions since, these patches stay installed,
        without effect, until that one ends."""
        _take_off_stack(self.recorder)
        with _lock:
            self._over = True
            if _installations[-1] is not self:
                self.recorder.callbacks.end()
            while _installations and _installations[-1]._over:
                _installations.pop()._patches.close()
        self.recorder.paused = True  # its mode may be on the stacks of other threads


def _take_off_stack(recorder: Recorder) -> None:
    """Removes the recorder's mode from the stack of this thread. Modes above it stay."""
    above = []
    while torch._C._len_torch_function_stack():
        mode = torch._C._pop_torch_function_stack()
        if mode is recorder.mode:
            break
        above.append(mode)
    for mode in reversed(above):
        torch._C._push_on_torch_function_stack(mode)
