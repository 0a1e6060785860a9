"""The values of tensors as short text."""

from __future__ import annotations

from typing import Any

import torch

SHOWN_VALUES = 6


def short_text(tensor: torch.Tensor) -> str:
    """Values for a small dense CPU tensor, its shape for any other; never a synchronisation with a device."""
    shape = "x".join(map(str, tensor.shape)) or "scalar"
    if tensor.layout is not torch.strided or tensor.device.type != "cpu" or tensor.numel() > SHOWN_VALUES:
        return f"{shape} {str(tensor.dtype).removeprefix('torch.')}"
    try:
        return _nested(tensor.tolist())
    except (RuntimeError, NotImplementedError):
        return shape


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_nested, value)) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
