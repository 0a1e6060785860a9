"""Hides the lens's own tensor operations from the program's `__torch_dispatch__` classes and modes and its profiler."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager

import torch
from torch._C._autograd import _enable_record_function, _profiler_enabled
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode

_DEFAULT_DISPATCH = torch.Tensor.__torch_dispatch__
_stack_depth = torch._C._len_torch_dispatch_stack
_muted = threading.local()  # `now` is set while the profiler of this thread records nothing


def has_torch_dispatch(tensor: torch.Tensor) -> bool:
    """Returns whether the class of a tensor sees every operation on it, by a `__torch_dispatch__` of its own."""
    return type(tensor).__torch_dispatch__ is not _DEFAULT_DISPATCH


def unseen() -> AbstractContextManager[object]:
    """Makes a block whose tensor operations no `__torch_function__` sees, and nothing that `MutedDispatch` mutes."""
    if _stack_depth() or _profiler_enabled():
        return _Unseen()
    return torch._C.DisableTorchFunction()


class MutedDispatch:
    """Takes the program's dispatch modes off the stack and pauses its profiler, in a `with` block. Blocks may nest."""

    __slots__ = ("_modes", "_mutes")

    def __enter__(self) -> None:
        depth = _stack_depth()
        self._modes: list[TorchDispatchMode] | None = [_pop_mode() for _ in range(depth)] if depth else None
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


class MutedWithoutGraph(MutedDispatch):
    """Does the same as `MutedDispatch` and `torch.no_grad()` together, in a third of the time."""

    __slots__ = ("_records",)

    def __enter__(self) -> None:
        super().__enter__()
        self._records = torch.is_grad_enabled()
        torch._C._set_grad_enabled(False)

    def __exit__(self, *_: object) -> None:
        torch._C._set_grad_enabled(self._records)
        super().__exit__()


class _Unseen(MutedDispatch):
    """Does the same as `DisableTorchFunction` and `MutedDispatch` together."""

    __slots__ = ("_functions",)

    def __enter__(self) -> None:
        self._functions = torch._C.DisableTorchFunction()
        self._functions.__enter__()
        super().__enter__()

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._functions.__exit__(None, None, None)
