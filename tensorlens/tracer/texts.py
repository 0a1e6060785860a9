"""The values of tensors as short text."""

from __future__ import annotations

from typing import Any

import torch

from tensorlens.tracer.identity import text_of

SHOWN_VALUES = 6


def short_text(tensor: torch.Tensor) -> str:
    """Values for a small dense CPU tensor, its shape for any other; never a synchronisation with a device."""
    shape = tensor.shape
    if tensor.numel() > SHOWN_VALUES or tensor.layout is not torch.strided or tensor.device.type != "cpu":
        return f"{_shape_text(shape)} {text_of(tensor.dtype)}"
    try:
        return _nested(tensor.tolist())
    except (RuntimeError, NotImplementedError):
        return _shape_text(shape)


def _shape_text(shape: torch.Size) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _nested(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_nested, value)) + "]"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
