"""The lens computes with tensors now and then, to tell what changed; the program's own classes and modes that dispatch
operations must hear nothing of it."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import _pop_mode, _push_mode

_SILENT = torch.Tensor.__torch_dispatch__


def observed_by_program() -> bool:
    """Whether a dispatch mode of the program's own would see the operations that the lens computes with."""
    return torch._C._len_torch_dispatch_stack() > 0


def hears(tensor: torch.Tensor) -> bool:
    """Whether the class of a tensor sees every operation on it, by a `__torch_dispatch__` of its own."""
    return type(tensor).__torch_dispatch__ is not _SILENT


class Unheard:
    """A context manager: meanwhile the program's dispatch modes see no operation. It takes one frame of the stack."""

    __slots__ = ("_modes",)

    def __enter__(self) -> None:
        self._modes: list[Any] = []
        for _ in range(torch._C._len_torch_dispatch_stack()):
            self._modes.append(_pop_mode())

    def __exit__(self, *_: object) -> None:
        while self._modes:
            _push_mode(self._modes.pop())
