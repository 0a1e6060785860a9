"""Watches the hooks of tensors, nodes and saved tensors, and the kernels of custom operators."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef
from torch.autograd.function import _HookMixin

from tensorlens.journal.rows import NONE
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.hidden_frames import OVERRIDES, is_ours
from tensorlens.tracer.isolation.patch import Observing, Patch, observe, observe_always
from tensorlens.tracer.isolation.torch_features import SAVED_TENSOR, marks_own_hooks
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.user_callbacks import Watched
from tensorlens.tracer.saved_tensors.packed import keeps_tensors
from tensorlens.tracer.saved_tensors.unchecked import READS_DATA, hooked_nodes

Hook = Callable[[Any], object]


def _hook_dictionary(recorder: Recorder, _: type) -> type:
    """Makes the class of the dictionaries that hold the hooks of a tensor or node.

    The engine reads their storage and finds `Watched` hooks there. Python code gets the hooks themselves. This patch
    is a class, not an `observe` function: it guards its own errors.
    """
    callbacks = recorder.callbacks

    class Hooks(OrderedDict[object, object]):
        def __setitem__(self, key: object, hook: Any) -> None:
            frame = sys._getframe(1)
            kind = _KINDS.get(frame.f_code, "node hook")
            if not callbacks.asleep and isinstance(key, int):
                with ErrorGuard(recorder, f"a {kind}", frame):
                    tensor = frame.f_locals.get("self")
                    target = recorder.tensor_ids.find(tensor) if isinstance(tensor, torch.Tensor) else None
                    hook = callbacks.watch(kind, hook, _caller(frame), NONE if target is None else target)
            super().__setitem__(key, hook)

        def __getitem__(self, key: object) -> object:
            return _bare(super().__getitem__(key))

        def get(self, key: object, default: object = None) -> object:
            return _bare(super().get(key, default))

        def pop(self, key: object, *default: object) -> object:
            return _bare(super().pop(key, *default))

        def popitem(self, last: bool = True) -> tuple[object, object]:
            key, hook = super().popitem(last)
            return key, _bare(hook)

        def values(self) -> Any:
            return OrderedDict((key, self[key]) for key in self).values()

        def items(self) -> Any:
            return OrderedDict((key, self[key]) for key in self).items()

        def copy(self) -> Any:
            return OrderedDict(self.items())

        def __reduce__(self) -> Any:
            return (OrderedDict, *super().__reduce__()[1:])

    Hooks.__name__, Hooks.__qualname__, Hooks.__module__ = "OrderedDict", "OrderedDict", "collections"
    return Hooks


def _caller(frame: FrameType | None) -> FrameType | None:
    """Returns the frame that called a method of a tensor: past the method, and past the mode that it went through."""
    while frame is not None and (
        frame.f_code in _KINDS or frame.f_code.co_filename == OVERRIDES or is_ours(frame.f_code.co_filename)
    ):
        frame = frame.f_back
    return frame


def _bare(hook: object) -> object:
    return hook.hook if type(hook) is Watched else hook


_KINDS = {
    torch.Tensor.register_hook.__code__: "tensor hook",
    torch.Tensor.register_post_accumulate_grad_hook.__code__: "post-accumulate hook",
}


@observe
def _node_hook(recorder: Recorder, register: Function) -> Function:
    """Watches hooks of `grad_fn.register_hook` and `register_prehook`, which C++ registers here."""

    def _register_hook(frame: FrameType, backward_hooks: object, hook: Hook) -> object:
        return register(backward_hooks, recorder.callbacks.watch("node hook", hook, frame))

    return _register_hook


@observe
def _saved_tensor_hooks(recorder: Recorder, original: Function) -> Function:
    """Watches the pack and unpack hooks that become active."""

    def push(frame: FrameType, pack: Hook, unpack: Hook) -> None:
        if marks_own_hooks(pack):  # a checkpoint looks for the mark on the very hooks that are active
            original(pack, unpack)
            return
        user = recorder.sites.user_frame(frame)
        keeps = keeps_tensors(pack)
        pack = _recorded(recorder, recorder.callbacks.watch("pack hook", pack, user))
        unpack = recorder.callbacks.watch("unpack hook", unpack, user)
        if keeps:
            pack, unpack = recorder.saved_tensors.with_version_check(pack, unpack)
        original(pack, unpack)

    return push


def _noting(note: Callable[[], None]) -> Observing[Recorder]:
    """Notes that saved-tensor hooks become active or inactive."""

    @observe_always
    def wrap(_: Recorder, original: Function) -> Function:
        def switch(_: FrameType, *args: object) -> object:
            note()
            return original(*args)

        return switch

    return wrap


@observe_always
def _own_saved_tensor_hooks(_: Recorder, original: Function) -> Function:
    """Notes that the program registers hooks on one saved tensor: from then on none is read."""

    def register_hooks(frame: FrameType, *args: object) -> object:
        hooked_nodes.registers = hooked_nodes.registers or not is_ours(frame.f_code.co_filename)
        return original(*args)

    return register_hooks


def _recorded(recorder: Recorder, pack: Hook) -> Hook:
    """Activates the recorder while a pack hook runs: PyTorch calls it inside an op, where the mode is off the stack."""
    if type(pack) is not Watched:
        return pack

    def packing(tensor: torch.Tensor) -> object:
        if recorder.callbacks.asleep or recorder.is_on_top():
            return pack(tensor)
        with recorder:
            return pack(tensor)

    return packing


@observe
def _operator_backward(recorder: Recorder, original: Function) -> Function:
    """Watches the derivative of a custom operator."""

    def register_autograd(frame: FrameType, self: CustomOpDef, backward: Function, /, **kwargs: object) -> None:
        kind = f"backward of {self._namespace}.{self._name}"
        original(self, recorder.callbacks.watch(kind, backward, frame), **kwargs)

    return register_autograd


@observe
def _operator_kernel(recorder: Recorder, original: Function) -> Function:
    def __init__(frame: FrameType, /, self: CustomOpDef, *args: object, **kwargs: object) -> None:
        original(self, *args, **kwargs)
        recorder.callbacks.add(f"operator {self._namespace}.{self._name}", self._init_fn, frame)

    return __init__


@observe
def _library_kernel(recorder: Recorder, original: Function) -> Function:
    def impl(
        frame: FrameType, /, self: torch.library.Library, op_name: object, fn: Function, *args: object, **kwargs: object
    ) -> object:
        recorder.callbacks.add(f"operator {self.ns}.{op_name}", fn, frame)
        return original(self, op_name, fn, *args, **kwargs)

    return impl


PATCHES: tuple[Patch[Recorder], ...] = (
    Patch(torch._tensor, "OrderedDict", _hook_dictionary),
    Patch(_HookMixin, "_register_hook", _node_hook),
    Patch(torch._C._autograd, "_push_saved_tensors_default_hooks", _saved_tensor_hooks),
    Patch(CustomOpDef, "__init__", _operator_kernel),
    Patch(CustomOpDef, "register_autograd", _operator_backward),
    Patch(torch.library.Library, "impl", _library_kernel),
)
if not READS_DATA:
    PATCHES += (
        Patch(torch._C._autograd, "_push_saved_tensors_default_hooks", _noting(hooked_nodes.push)),
        Patch(torch._C._autograd, "_pop_saved_tensors_default_hooks", _noting(hooked_nodes.pop)),
        Patch(SAVED_TENSOR, "register_hooks", _own_saved_tensor_hooks),
    )
