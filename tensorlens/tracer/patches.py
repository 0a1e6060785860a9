"""Ways in to what a `TorchFunctionMode` does not see. Each is one entry of a table; all are undone together.

A patch replaces one attribute of torch or of the standard library by a function that calls the original and records
what it did. `installed(recorder)` puts them in place for the time of a run and leaves everything as it was.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tensorlens.journal import MODE
from tensorlens.tracer import ops
from tensorlens.tracer.backward import wrap_engine
from tensorlens.tracer.identity import NONE
from tensorlens.tracer.recorder import Recorder, gather

Wrap = Callable[[Recorder, Any], Any]
_MISSING = object()


def _seen_as_call(name: str) -> Wrap:
    """A function that the mode passes over, recorded like any other torch call."""

    def wrap(recorder: Recorder, original: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            if recorder.paused:
                return original(*args, **kwargs)
            return recorder.call(original, args, kwargs, sys._getframe(1), name)

        return call

    return wrap


def _from_numpy(recorder: Recorder, original: Any) -> Any:
    def from_numpy(array: Any) -> Any:
        if recorder.paused:
            return original(array)
        frame = sys._getframe(1)
        result = recorder.call(original, (array,), {}, frame, "torch.from_numpy")
        recorder.gap(ops.SHARED_WITH_NUMPY, frame)
        return result

    return from_numpy


def _parameter(recorder: Recorder, original: Any) -> Any:
    """`nn.Parameter(data)`: a new tensor on the memory, and with the version counter, of `data`."""
    construct = original.__func__ if isinstance(original, staticmethod) else original

    def __new__(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        if recorder.paused or not isinstance(data, torch.Tensor):
            return construct(cls, data, requires_grad)
        frame = sys._getframe(1)
        inputs = recorder.accesses([data])
        before = torch._C._autograd._get_sequence_nr()
        try:
            result = construct(cls, data, requires_grad)
        except BaseException as error:
            recorder.fail(error, "nn.Parameter", inputs, frame)
            raise
        recorder.identity.meet(result, inputs[0])
        recorder.finish((construct, "nn.Parameter", frame, False), result, [data], inputs, before)
        return result

    return __new__


def _function_apply(recorder: Recorder, original: Any) -> Any:
    """`autograd.Function.apply`: recorded under the name of the class."""
    apply = original.__func__

    def recorded(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.paused:
            return apply(cls, *args, **kwargs)

        def run(*args: Any, **kwargs: Any) -> Any:
            return apply(cls, *args, **kwargs)

        return recorder.call(run, args, kwargs, sys._getframe(1), f"{cls.__name__}.apply")

    return classmethod(recorded)


def _save_for_backward(recorder: Recorder, original: Any) -> Any:
    def save_for_backward(self: Any, *tensors: Any) -> Any:
        if recorder.paused:
            return original(self, *tensors)

        def run(*tensors: Any) -> Any:
            return original(self, *tensors)

        return recorder.call(run, tensors, {}, sys._getframe(1), "ctx.save_for_backward")

    return save_for_backward


def _optimizer(recorder: Recorder, original: Any) -> Any:
    def __init__(self: Any, params: Any, *args: Any, **kwargs: Any) -> None:
        if recorder.paused:
            original(self, params, *args, **kwargs)
            return
        frame = sys._getframe(1)
        name = f"optim.{type(self).__name__}"
        try:
            original(self, params, *args, **kwargs)
        except BaseException as error:
            given: list[torch.Tensor] = []
            gather(params, given)
            recorder.fail(error, name, recorder.accesses(given), frame)
            raise
        held: list[torch.Tensor] = []
        for group in self.param_groups:
            gather(group["params"], held)
        sequence = torch._C._autograd._get_sequence_nr()
        recorder.finish((original, name, frame, False), None, held, recorder.accesses(held), sequence)

    return __init__


def _inference_mode(entering: bool) -> Wrap:
    def wrap(recorder: Recorder, original: Any) -> Any:
        def switch(self: Any, *args: Any) -> Any:
            result = original(self, *args)
            if not recorder.paused:
                note_mode(recorder, sys._getframe(1), "inference_mode", entering)
            return result

        return switch

    return wrap


def _swap_tensors(recorder: Recorder, original: Any) -> Any:
    def swap_tensors(first: Any, second: Any) -> Any:
        numbers = recorder.identity.step_aside(first, second)
        for number in numbers:
            recorder.leaves.pop(NONE if number is None else number, None)
        try:
            return original(first, second)
        finally:
            recorder.identity.resume((first, second), numbers)

    return swap_tensors


def _thread(recorder: Recorder, original: Any) -> Any:
    """The mode is thread-local: a thread started by the script pushes it before its own work begins."""

    def _bootstrap_inner(self: Any) -> None:
        if recorder.paused:
            original(self)
            return
        with recorder:
            original(self)

    return _bootstrap_inner


def _exit(recorder: Recorder, original: Any) -> Any:
    def _exit(status: int) -> None:
        recorder.leaving(status)
        original(status)

    return _exit


def _compile(recorder: Recorder, original: Any) -> Any:
    """What the program compiles runs as compiled, with the mode out of its way: unseen, and the report says so."""

    def compile_(model: Any = None, *args: Any, **kwargs: Any) -> Any:
        compiled = original(model, *args, **kwargs)
        if recorder.paused:
            return compiled
        if model is None:
            return lambda function: _unseen(recorder, compiled(function))
        return _unseen(recorder, compiled)

    return compile_


def _unseen(recorder: Recorder, compiled: Any) -> Any:
    """A compiled function or module that steps out of the recorder's sight while it runs."""
    run = compiled.forward if isinstance(compiled, torch.nn.Module) else compiled

    @functools.wraps(run)
    def stepping_aside(*args: Any, **kwargs: Any) -> Any:
        if not recorder.paused:
            recorder.gap(ops.COMPILED, sys._getframe(1))
        with recorder.aside():
            return run(*args, **kwargs)

    if isinstance(compiled, torch.nn.Module):
        object.__setattr__(compiled, "forward", stepping_aside)
        return compiled
    return stepping_aside


_PATCHES: tuple[tuple[Any, str, Wrap], ...] = (
    (torch.nn.Parameter, "__new__", _parameter),
    (torch.Tensor, "set_", _seen_as_call("Tensor.set_")),
    (torch.autograd.Function, "apply", _function_apply),
    (torch.autograd.function.FunctionCtx, "save_for_backward", _save_for_backward),
    (torch, "from_numpy", _from_numpy),
    (torch.optim.Optimizer, "__init__", _optimizer),
    (torch.inference_mode, "__enter__", _inference_mode(True)),
    (torch.inference_mode, "__exit__", _inference_mode(False)),
    (torch.utils, "swap_tensors", _swap_tensors),
    (torch.autograd, "_engine_run_backward", wrap_engine),
    (threading.Thread, "_bootstrap_inner", _thread),
    (torch, "compile", _compile),
    (os, "_exit", _exit),
)


@contextmanager
def installed(recorder: Recorder) -> Iterator[None]:
    """Put every patch in place, and take them out again in the opposite order."""
    undo: list[tuple[Any, str, Any]] = []
    try:
        for owner, name, wrap in _PATCHES:
            own = vars(owner).get(name, _MISSING)
            undo.append((owner, name, own))
            original = own if own is not _MISSING else getattr(owner, name)
            replacement = wrap(recorder, original)
            if isinstance(original, staticmethod) or name == "__new__":
                replacement = staticmethod(replacement)
            setattr(owner, name, replacement)
        yield
    finally:
        for owner, name, own in reversed(undo):
            if own is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, own)


def note_mode(recorder: Recorder, frame: Any, cause: str, entering: bool) -> None:
    """Write a MODE row for a switch of gradient recording that the user's own code made, not torch's inside."""
    site, decorator = _switch_site(recorder, frame)
    if site != NONE:
        mode = 2 if torch.is_inference_mode_enabled() else (0 if torch.is_grad_enabled() else 1)
        recorder.rows.append((MODE, site, mode, cause, entering, decorator))


def _switch_site(recorder: Recorder, frame: Any) -> tuple[int, bool]:
    """Where the user's code switched: its own line, or the decorator above the function that torch is wrapping."""
    while frame is not None:
        filename = frame.f_code.co_filename
        if recorder.sites.is_user(filename):
            return recorder.sites.of(frame), False
        if filename.endswith("_contextlib.py"):
            function = frame.f_locals.get("func")
            code = getattr(function, "__code__", None)
            if code is not None and recorder.sites.is_user(code.co_filename):
                return recorder.sites.decorator(code, frame.f_back), True
        elif not filename.endswith(("grad_mode.py", "contextlib.py")):
            return NONE, False
        frame = frame.f_back
    return NONE, False


def _set_grad_enabled(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """`no_grad`, `enable_grad` and `set_grad_enabled` all arrive here; which one, the frame that called says."""
    result = func(*args, **kwargs)
    frame = sys._getframe(2)
    cause, _, method = frame.f_code.co_qualname.rpartition(".")
    if method == "__init__" and cause == "set_grad_enabled" and frame.f_back is not None:
        inner, _, inner_method = frame.f_back.f_code.co_qualname.rpartition(".")
        if frame.f_back.f_code.co_filename == frame.f_code.co_filename:
            frame, cause, method = frame.f_back, inner, inner_method
    note_mode(recorder, frame, cause or "set_grad_enabled", method != "__exit__")
    return result


def _enter_profiled(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """Optimizers announce `step()` to the profiler: "Optimizer.step#SGD.step"."""
    if args and isinstance(args[0], str) and args[0].startswith("Optimizer.step#"):
        recorder.within = args[0].removeprefix("Optimizer.step#")
    return func(*args, **kwargs)


def _leave_profiled(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    recorder.within = ""
    return func(*args, **kwargs)


def _sharing(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """An array or capsule on the tensor's memory leaves torch's sight: writes through it are not seen."""
    frame = sys._getframe(2)
    result = recorder.call(func, args, kwargs, frame)
    recorder.gap(ops.SHARED_WITH_NUMPY, frame)
    return result


def _fused(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """The kernels of fused optimizers write their arguments and move no version: seen as a call, told as a gap."""
    frame = sys._getframe(2)
    result = recorder.call(func, args, kwargs, frame)
    recorder.gap(ops.FUSED, frame)
    return result


def _backward(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """`Tensor.backward` is recorded where it reaches the engine; here only what is refused before that."""
    frame = sys._getframe(2)
    try:
        return func(*args, **kwargs)
    except BaseException as error:
        roots: list[torch.Tensor] = []
        gather((args, kwargs), roots)
        recorder.fail(error, ops.name_of(func), recorder.accesses(roots), frame)
        raise


def _user_reads(recorder: Recorder, func: Any, args: Any, kwargs: Any) -> Any:
    """`.grad` read by the user's own line is part of the story; read by an optimizer it is not."""
    frame = sys._getframe(2)
    if recorder.sites.is_user(frame.f_code.co_filename):
        return recorder.call(func, args, kwargs, frame)
    return func(*args, **kwargs)


ops.SPECIAL.update(
    {
        torch._C._set_grad_enabled: _set_grad_enabled,
        torch.ops.profiler._record_function_enter_new: _enter_profiled,
        torch.ops.profiler._record_function_exit._RecordFunction: _leave_profiled,
        torch.Tensor.backward: _backward,
        torch.Tensor.numpy: _sharing,
        torch.Tensor.__array__: _sharing,
        torch.Tensor.__dlpack__: _sharing,
        ops.getter("grad"): _user_reads,
        **{getattr(torch, name): _fused for name in dir(torch) if name.startswith("_fused_") and name.endswith("_")},
    }
)
