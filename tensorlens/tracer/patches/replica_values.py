"""Turns the bits of each tensor into one number, to compare the tensors of several processes without exchanging them.

A sum of integers is the same in any order, so equal tensors have equal numbers on every machine.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch

from tensorlens.tracer.isolation.readable import is_in_main_memory

NOT_COMPUTED = -1
_PRIME = (1 << 61) - 1  # so that every bit of the sum counts
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def value_numbers(tensors: Iterable[torch.Tensor | None]) -> tuple[int, ...]:
    """Returns one number for each tensor; `NOT_COMPUTED` for None and for a tensor that is not in plain CPU memory: to
    read from another device would wait for it."""
    return tuple(NOT_COMPUTED if tensor is None else _number(tensor) for tensor in tensors)


def _number(tensor: torch.Tensor) -> int:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or not is_in_main_memory(tensor):
        return NOT_COMPUTED
    if tensor.layout is not torch.strided or tensor.is_quantized:
        return NOT_COMPUTED
    flat = tensor.detach().reshape(-1)
    if flat.is_complex():
        flat = torch.view_as_real(flat.resolve_conj()).reshape(-1)
    flat = flat.resolve_neg()
    size = flat.element_size()
    if flat.numel() * size % 8 == 0:  # the sum of 64-bit words takes the least time
        if flat.data_ptr() % 8 or flat.storage_offset() * size % 8:
            flat = flat.clone()
        flat = flat.view(torch.int64)
    else:
        flat = flat.view(_INTEGERS[size])
    return int(flat.sum(dtype=torch.int64)) % _PRIME
