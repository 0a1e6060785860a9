"""Turns the values of tensors into short text."""

from __future__ import annotations

from functools import lru_cache

import torch

from tensorlens.journal.rows import values_text
from tensorlens.tracer.isolation.muted_dispatch import has_torch_dispatch
from tensorlens.tracer.isolation.torch_originals import numel, tolist
from tensorlens.tracer.recording.tensor_ids import text_of

SHOWN_VALUES = 6


def short_text(tensor: torch.Tensor) -> str:
    """Returns the values of a small dense CPU tensor, else its shape. Never waits for a device."""
    return values_text(short_values(tensor))


def short_values(tensor: torch.Tensor) -> object:
    """Returns what `short_text` turns into text: nested lists of numbers, a number, or a string."""
    if numel(tensor) > SHOWN_VALUES:
        return _kind_text(tensor.shape, tensor.dtype)
    dense = tensor.layout is torch.strided and tensor.device.type == "cpu"
    if not dense or has_torch_dispatch(tensor):
        return _kind_text(tensor.shape, tensor.dtype)
    try:
        return tolist(tensor)
    except (RuntimeError, NotImplementedError):
        return _shape_text(tensor.shape)


@lru_cache(4096)
def _kind_text(shape: torch.Size, dtype: torch.dtype) -> str:
    return f"{_shape_text(shape)} {text_of(dtype)}"


def _shape_text(shape: torch.Size) -> str:
    return "x".join(map(str, shape)) or "scalar"


def token_of(error: BaseException) -> object:
    """Returns an object that a later exception at the same address does not have. It keeps no tensor alive."""
    arguments: tuple[object, ...] = BaseException.__dict__["args"].__get__(error)
    return arguments if arguments and all(isinstance(value, str | int) for value in arguments) else type(error)
