"""The ways in for the functions that a program hands to autograd: one entry a place where torch takes them."""

from __future__ import annotations

import functools
import sys
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef
from torch.autograd.function import BackwardCFunction, Function, _HookMixin

from tensorlens.journal.rows import NONE
from tensorlens.tracer.isolation.guard import ErrorGuard, caller
from tensorlens.tracer.isolation.hidden_frames import is_ours
from tensorlens.tracer.patches import module_hooks
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.user_callbacks import Run, Watched
from tensorlens.tracer.saved_tensors.packed import keeps_tensors

Wrap = Callable[[Recorder, Any], Any]


def hook_dictionary(recorder: Recorder, original: Any) -> Any:
    """The class of the dictionaries that hold a tensor's or node's hooks. The engine reads their storage and finds what
    watches the hooks; Python code finds the hooks themselves."""
    callbacks = recorder.callbacks

    class Hooks(OrderedDict):  # type: ignore[type-arg]
        def __setitem__(self, key: Any, hook: Any) -> None:
            frame = sys._getframe(1)
            kind = _KINDS.get(frame.f_code, "node hook")
            if not callbacks.asleep and isinstance(key, int):
                with ErrorGuard(recorder, f"a {kind}", frame):
                    tensor = frame.f_locals.get("self")
                    target = recorder.tensor_ids.find(tensor) if isinstance(tensor, torch.Tensor) else None
                    hook = callbacks.watch(kind, hook, _caller(frame), NONE if target is None else target)
            super().__setitem__(key, hook)

        def __getitem__(self, key: Any) -> Any:
            return _bare(super().__getitem__(key))

        def get(self, key: Any, default: Any = None) -> Any:
            return _bare(super().get(key, default))

        def pop(self, key: Any, *default: Any) -> Any:
            return _bare(super().pop(key, *default))

        def popitem(self, last: bool = True) -> Any:
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


def _caller(frame: Any) -> Any:
    """The frame that called a method of a tensor: past the method itself, and past the mode that it went through."""
    while frame is not None and (
        frame.f_code in _KINDS
        or frame.f_code.co_filename == torch.overrides.__file__
        or is_ours(frame.f_code.co_filename)
    ):
        frame = frame.f_back
    return frame


def _bare(hook: Any) -> Any:
    return hook.hook if type(hook) is Watched else hook


_KINDS = {
    torch.Tensor.register_hook.__code__: "tensor hook",
    torch.Tensor.register_post_accumulate_grad_hook.__code__: "post-accumulate hook",
}


def _node_hook(recorder: Recorder, original: Any) -> Any:
    """`grad_fn.register_hook` and `register_prehook` end here, called from C++ by the user's line."""
    register = original.__func__ if isinstance(original, staticmethod) else original

    def _register_hook(backward_hooks: Any, hook: Any) -> Any:
        if not recorder.callbacks.asleep:
            hook = recorder.callbacks.watch("node hook", hook, caller())
        return register(backward_hooks, hook)

    return _register_hook


def _saved_tensor_hooks(recorder: Recorder, original: Any) -> Any:
    def push(pack: Any, unpack: Any) -> None:
        if not recorder.callbacks.asleep:
            frame = recorder.sites.user_frame(caller())
            keeps = keeps_tensors(pack)
            pack = _seeing(recorder, recorder.callbacks.watch("pack hook", pack, frame))
            unpack = recorder.callbacks.watch("unpack hook", unpack, frame)
            if keeps:
                pack, unpack = recorder.saved_tensors.with_version_check(pack, unpack)
        original(pack, unpack)

    return push


def _seeing(recorder: Recorder, pack: Any) -> Any:
    """A pack function runs inside the op that saves, where the mode is off; what it does itself is to be seen."""
    if type(pack) is not Watched:
        return pack

    def packing(tensor: Any) -> Any:
        if recorder.callbacks.asleep or recorder.is_on_top():
            return pack(tensor)
        with recorder:
            return pack(tensor)

    return packing


def _backward_apply(recorder: Recorder, original: Any) -> Any:
    """The node of a custom Function, running its `backward` or `vjp`."""

    def apply(self: Any, *args: Any) -> Any:
        callbacks = recorder.callbacks
        if callbacks.asleep:
            return original(self, *args)
        kind = self._forward_cls
        name = "backward" if kind.vjp is Function.vjp else "vjp"
        added = callbacks.of_method(kind, name) or callbacks.of_class(kind)
        outer, callbacks.node = callbacks.node, self._sequence_nr()
        try:
            if added is None:
                return original(self, *args)
            with Run(callbacks, name, added, args) as ran:
                ran.result = original(self, *args)
            return ran.result
        finally:
            callbacks.node = outer

    return apply


def _function_object(recorder: Recorder, original: Any) -> Any:
    """A custom Function is made an object of, as in PyTorch before static methods."""

    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if not recorder.callbacks.asleep:
            recorder.callbacks.applied(type(self), caller())
        original(self, *args, **kwargs)

    return __init__


def _once_differentiable(recorder: Recorder, original: Any) -> Any:
    @functools.wraps(original)
    def once_differentiable(fn: Any) -> Any:
        marked = original(fn)
        if not recorder.callbacks.asleep:
            recorder.callbacks.add("once differentiable", fn, caller())
        return marked

    return once_differentiable


def _op_backward(recorder: Recorder, original: Any) -> Any:
    """The derivative of a custom operator."""

    @functools.wraps(original)
    def register_autograd(self: Any, backward: Any, /, **kwargs: Any) -> None:
        if not recorder.callbacks.asleep:
            kind = f"backward of {self._namespace}.{self._name}"
            backward = recorder.callbacks.watch(kind, backward, caller())
        original(self, backward, **kwargs)

    return register_autograd


def _op_kernel(recorder: Recorder, original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        if not recorder.callbacks.asleep:
            recorder.callbacks.add(f"operator {self._namespace}.{self._name}", self._init_fn, caller())

    return __init__


def _library_kernel(recorder: Recorder, original: Any) -> Any:
    @functools.wraps(original)
    def impl(self: Any, op_name: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
        if not recorder.callbacks.asleep:
            recorder.callbacks.add(f"operator {self.ns}.{op_name}", fn, caller())
        return original(self, op_name, fn, *args, **kwargs)

    return impl


PATCHES: tuple[tuple[Any, str, Wrap], ...] = (
    (torch._tensor, "OrderedDict", hook_dictionary),
    (_HookMixin, "_register_hook", _node_hook),
    (BackwardCFunction, "apply", _backward_apply),
    (Function, "__init__", _function_object),
    (torch.autograd.function, "once_differentiable", _once_differentiable),
    (torch._C._autograd, "_push_saved_tensors_default_hooks", _saved_tensor_hooks),
    (CustomOpDef, "__init__", _op_kernel),
    (CustomOpDef, "register_autograd", _op_backward),
    (torch.library.Library, "impl", _library_kernel),
    *module_hooks.PATCHES,
)
