"""The lens computes with tensors now and then, to tell what changed; the program's own classes and modes that dispatch
operations, and its profiler, must hear nothing of it."""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch._C._autograd import _enable_record_function, _profiler_enabled
from torch.utils._python_dispatch import _pop_mode, _push_mode

_SILENT = torch.Tensor.__torch_dispatch__
_muted = threading.local()  # set: the profiler of this thread has been told to record nothing


def has_torch_dispatch(tensor: torch.Tensor) -> bool:
    """Whether the class of a tensor sees every operation on it, by a `__torch_dispatch__` of its own."""
    return type(tensor).__torch_dispatch__ is not _SILENT


class MutedDispatch:
    """A context manager: meanwhile the program's dispatch modes and profiler see no operation. It takes one frame of
    the stack, and may stand in another."""

    __slots__ = ("_modes", "_mutes")

    def __enter__(self) -> None:
        self._modes: list[Any] = []
        for _ in range(torch._C._len_torch_dispatch_stack()):
            self._modes.append(_pop_mode())
        self._mutes = _profiler_enabled() and not hasattr(_muted, "now")
        if self._mutes:
            _muted.now = True
            _enable_record_function(False)

    def __exit__(self, *_: object) -> None:
        if self._mutes:
            _enable_record_function(True)
            del _muted.now
        while self._modes:
            _push_mode(self._modes.pop())
