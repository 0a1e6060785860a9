"""Notes, between the recorded steps of a sampled run, what may keep tensors where PyTorch's use counts do not show it.

A recorded step takes memory for unsaved if no use count says that a node has saved it (`saved_tensors`). So it must
know whether a pack hook or a custom Function may have kept a tensor in a step without a record.
"""

from __future__ import annotations

from types import FunctionType, MethodType
from typing import Any

import torch
from torch.compiler import is_compiling

from tensorlens.tracer.isolation.guard import Function
from tensorlens.tracer.isolation.patch import Patch, existing
from tensorlens.tracer.isolation.torch_features import SAVED_TENSOR
from tensorlens.tracer.recording.recorder import Recorder

_GENERATED = "torch._library.autograd."  # the Functions of custom operators, PyTorch's own among them
_OF_TORCH = tuple(
    f"GeneratedBackwardFor_{space}_" for space in ("prims", "_c10d_functional", "flex_lib", "onnx_symbolic")
)


def is_earlier_apply(method: object) -> bool:
    """Returns whether an object is the method `apply` of a Function of the program, from before the patches."""
    if type(method) is not MethodType or type(method.__func__) is not FunctionType:
        return False
    function: Any = method.__self__
    if method.__func__.__name__ != "apply" or not issubclass(type(function), type):
        return False
    if not issubclass(function, torch.autograd.Function):
        return False
    module = f"{function.__module__}."
    return not module.startswith("torch.") or (module == _GENERATED and not function.__name__.startswith(_OF_TORCH))


def _keeping(recorder: Recorder, function: Function) -> Function:
    """Notes that the program calls in a step without a record what may keep tensors where no use count shows them."""

    def keeping(*args: object, **kwargs: object) -> object:
        if not is_compiling() and recorder.off:
            recorder.saved_tensors.note_uncounted()
        return function(*args, **kwargs)

    return keeping


PATCHES: tuple[Patch[Recorder], ...] = existing(
    (
        Patch(torch.autograd.Function, "apply", _keeping),  # it may keep tensors as attributes of `ctx`
        Patch(torch._C._autograd, "_push_saved_tensors_default_hooks", _keeping),
        Patch(SAVED_TENSOR, "register_hooks", _keeping),
    )
)
"""Installed in sampled runs only, below the other patches, which leave out what they do while nothing is recorded."""
