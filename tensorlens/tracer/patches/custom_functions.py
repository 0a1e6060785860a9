"""Records custom Functions: `apply`, their `backward`, and what they declare about tensors through `ctx`."""

from __future__ import annotations

import functools
from types import FrameType

import torch
from torch.autograd.function import BackwardCFunction, Function, FunctionCtx

from tensorlens.tracer.isolation import guard
from tensorlens.tracer.isolation.patch import Observing, Patch, observe
from tensorlens.tracer.patches.record_call import PatchedCall, record_patched_call
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.user_callbacks import Run


@observe
def _apply(recorder: Recorder, original: guard.Function) -> guard.Function:
    """Records `autograd.Function.apply` under the name of the class."""

    def apply(frame: FrameType, /, cls: type, *args: object, **kwargs: object) -> object:
        recorder.callbacks.applied(cls, frame)
        called = PatchedCall(functools.partial(original, cls), f"{cls.__name__}.apply", frame)
        result = record_patched_call(recorder, called, args, kwargs)
        with torch._C.DisableTorchFunction():
            recorder.saved_tensors.note_function_applied(result, args)
        return result

    return apply


def _context_method(name: str) -> Observing[Recorder]:
    """Records a method of `ctx` by which a custom Function declares something about tensors."""

    @observe
    def wrap(recorder: Recorder, original: guard.Function) -> guard.Function:
        def declare(frame: FrameType, self: FunctionCtx, *tensors: object) -> object:
            called = PatchedCall(functools.partial(original, self), f"ctx.{name}", frame)
            return record_patched_call(recorder, called, tensors, {})

        return declare

    return wrap


@observe
def _backward(recorder: Recorder, original: guard.Function) -> guard.Function:
    """Records that the node of a custom Function runs its `backward` or `vjp`."""

    def apply(_: FrameType, self: BackwardCFunction, *args: object) -> object:
        callbacks = recorder.callbacks
        function_class: type[Function] = self._forward_cls  # type: ignore[attr-defined]
        name = "backward" if function_class.vjp is Function.vjp else "vjp"
        added = callbacks.of_method(function_class, name) or callbacks.of_class(function_class)
        running = callbacks.running
        outer, running.node = running.node, self._sequence_nr()
        try:
            if added is None:
                return original(self, *args)
            with Run(callbacks, name, added, args) as run:
                run.result = original(self, *args)
            return run.result
        finally:
            running.node = outer

    return apply


@observe
def _instance(recorder: Recorder, original: guard.Function) -> guard.Function:
    """Notes an instance of a custom Function, which PyTorch needed before `forward` was a static method."""

    def __init__(frame: FrameType, /, self: Function, *args: object, **kwargs: object) -> None:
        recorder.callbacks.applied(type(self), frame)
        original(self, *args, **kwargs)

    return __init__


@observe
def _once_differentiable(recorder: Recorder, original: guard.Function) -> guard.Function:
    def once_differentiable(frame: FrameType, fn: guard.Function) -> object:
        marked = original(fn)
        recorder.callbacks.add("once differentiable", fn, frame)
        return marked

    return once_differentiable


PATCHES = (
    Patch(Function, "apply", _apply),
    Patch(Function, "__init__", _instance),
    Patch(FunctionCtx, "save_for_backward", _context_method("save_for_backward")),
    Patch(FunctionCtx, "mark_dirty", _context_method("mark_dirty")),
    Patch(BackwardCFunction, "apply", _backward),
    Patch(torch.autograd.function, "once_differentiable", _once_differentiable),
)
