"""Inspects the value that an operand returned, its tensors and their memory, and writes to it as a user would."""

from __future__ import annotations

from typing import Any

import torch


def first_tensor(value: object) -> torch.Tensor | None:
    """Returns the value itself if it is a tensor, else the first tensor in a tuple, list or mapping."""
    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return next((tensor for each in value if (tensor := first_tensor(each)) is not None), None)
    return None


def tensors_in(value: object) -> list[torch.Tensor]:
    """Returns all tensors in a value; a number, a list of numbers or an array counts as a tensor."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)) and any(isinstance(each, (torch.Tensor, tuple, dict)) for each in value):
        return [tensor for each in value for tensor in tensors_in(each)]
    if isinstance(value, (bool, int, float, complex, list)) or hasattr(value, "__array_interface__"):
        try:
            return [torch.as_tensor(value)]
        except (TypeError, ValueError, RuntimeError):
            return []
    return []


def filler(tensor: torch.Tensor) -> torch.Tensor:
    """Returns a mask of the elements with the value that PyTorch's `fill_uninitialized_memory` writes."""
    dense = tensor.detach() if strided(tensor) else tensor.detach().to_dense()
    if dense.dtype.is_floating_point or dense.dtype.is_complex:
        return dense.isnan()
    return dense == (True if dense.dtype == torch.bool else torch.iinfo(dense.dtype).max)


def memory(value: Any) -> tuple[int, int] | None:
    """Returns (start, end) of the memory of a tensor or a NumPy array; None if it has none."""
    if isinstance(value, torch.Tensor):
        try:
            storage = value.untyped_storage()
            return storage.data_ptr(), storage.data_ptr() + storage.nbytes()
        except (NotImplementedError, RuntimeError):
            return None
    interface = getattr(value, "__array_interface__", None)
    if interface is None:
        return None
    return interface["data"][0], interface["data"][0] + value.nbytes


def overlap(one: Any, other: Any) -> bool | None:
    """Returns whether two values share memory; None if one of them has no memory."""
    first, second = memory(one), memory(other)
    if first is None or second is None:
        return None
    return first[0] < second[1] and second[0] < first[1]


def write(target: Any) -> None:
    """Changes a tensor or array in place, as a user would: `target.add_(1)`."""
    if not isinstance(target, torch.Tensor):
        target += 1
    elif target.dtype == torch.bool:
        target.logical_not_()
    else:
        target.add_(1)


def version(tensor: torch.Tensor) -> int | None:
    """Returns the version counter; None for an inference tensor, which has none."""
    return None if tensor.is_inference() else tensor._version


def strided(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided
