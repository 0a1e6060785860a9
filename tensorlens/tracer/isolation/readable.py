"""Decides which tensors the lens may read.

A tensor on a device is not read in a plain run: the program would have to wait for the device. Where a failed pass is
explained, anomaly mode has made the program wait already (`saved_tensors/failed_backward.py`).
"""

from __future__ import annotations

import torch

from tensorlens.tracer.isolation.muted_dispatch import has_torch_dispatch


def is_in_main_memory(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor is on the CPU. One on `meta` is not, and has no values at all."""
    if type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter:
        return tensor.is_cpu  # a tenth of the time
    return tensor.device.type == "cpu"


def may_read(tensor: torch.Tensor) -> bool:
    """Returns whether the values of a tensor can be read without a wait for a device and without code of the program.

    They are in main memory, one by one as strides say, and no `__torch_dispatch__` of the tensor's class sees the read.
    """
    return tensor.layout is torch.strided and is_in_main_memory(tensor) and not has_torch_dispatch(tensor)


def is_measurable(tensor: torch.Tensor) -> bool:
    """Returns whether the values of a tensor can be read, on any device, without code of the program.

    Those of a tensor inside a `torch.func` transform can't.
    """
    if type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter:  # in a third of the time
        is_plain = tensor.layout is torch.strided and not tensor.is_meta
    else:
        is_plain = tensor.layout is torch.strided and tensor.device.type != "meta" and not has_torch_dispatch(tensor)
    return is_plain and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
