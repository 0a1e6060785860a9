"""The lens computes with tensors now and then, to tell what changed; the program's own classes and modes that dispatch
operations must hear nothing of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch.utils._python_dispatch import _pop_mode, _push_mode

_SILENT = torch.Tensor.__torch_dispatch__


def observed_by_program() -> bool:
    """Whether a dispatch mode of the program's own would see the operations that the lens computes with."""
    return torch._C._len_torch_dispatch_stack() > 0


def hears(tensor: torch.Tensor) -> bool:
    """Whether the class of a tensor sees every operation on it, by a `__torch_dispatch__` of its own."""
    return type(tensor).__torch_dispatch__ is not _SILENT


@contextmanager
def unheard() -> Iterator[None]:
    """Meanwhile the program's dispatch modes see no operation."""
    modes = [_pop_mode() for _ in range(torch._C._len_torch_dispatch_stack())]
    try:
        yield
    finally:
        for mode in reversed(modes):
            _push_mode(mode)
