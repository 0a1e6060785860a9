"""Ways in to what a `TorchFunctionMode` does not see. Each is one entry of a table; all are undone together.

A patch replaces one attribute of torch or of the standard library by a function that calls the original and records
what it did. `installed(recorder)` puts them in place for the time of a run and leaves everything as it was.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from tensorlens.journal.rows import ASSIGNMENT, NONE, VALUES
from tensorlens.tracer.isolation.guard import ErrorGuard, caller, guarded_patch
from tensorlens.tracer.patches import compile_and_threads, gradcheck_and_functional, hooks
from tensorlens.tracer.patches.backward import wrap_engine
from tensorlens.tracer.patches.checkpoint_recompute import PATCHES as RECOMPUTED
from tensorlens.tracer.patches.contexts import PATCHES as REGIONS
from tensorlens.tracer.patches.functorch import PATCHES as TRANSFORMS
from tensorlens.tracer.patches.module_attributes import module_setter, scaler_method
from tensorlens.tracer.patches.optimizer_state import PATCHES as TRAINING
from tensorlens.tracer.patches.optimizer_step import PATCHES as STEPS
from tensorlens.tracer.patches.record_call import record_patched_call
from tensorlens.tracer.patches.storage_writes import PATCHES as STORAGES
from tensorlens.tracer.patches.torch_functions import note_mode
from tensorlens.tracer.patches.unregistered_parameters import SPENT, is_spent, owner_of, unregistered
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.recorder import Recorder, collect_tensors

Wrap = Callable[[Recorder, Any], Any]
_MISSING = object()


def _on_memory_of(name: str) -> Wrap:
    """A function that makes a tensor on the memory of an array or buffer, which can write past its version."""

    def wrap(recorder: Recorder, original: Any) -> Any:
        def call(source: Any, *args: Any, **kwargs: Any) -> Any:
            if recorder.paused:
                return original(source, *args, **kwargs)
            frame = caller()
            result = record_patched_call(recorder, (original, name, frame), (source, *args), kwargs)
            recorder.gap(ops.SHARED_WITH_NUMPY, frame)
            with torch._C.DisableTorchFunction():
                recorder.saved_tensors.watch(result, name, frame, True, source)
            return result

        return call

    return wrap


def _set(recorder: Recorder, original: Any) -> Any:
    """`set_` puts a tensor on memory that may be another's, with a counter of its own. A deep copy calls it on the
    empty tensor that it begins with, which nobody has seen yet: what is recorded there is the copy."""
    deep_copy = torch.Tensor.__deepcopy__.__code__

    def set_(self: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.paused:
            return original(self, *args, **kwargs)
        frame = caller()
        if frame.f_code is deep_copy:
            result = original(self, *args, **kwargs)
        else:
            result = record_patched_call(recorder, (original, "Tensor.set_", frame), (self, *args), kwargs)
        with torch._C.DisableTorchFunction():
            recorder.saved_tensors.watch(self, "Tensor.set_", frame, False)
        return result

    return set_


def _parameter(recorder: Recorder, original: Any) -> Any:
    """`nn.Parameter(data)`: a new tensor on the memory, and with the version counter, of `data`."""
    construct = original.__func__ if isinstance(original, staticmethod) else original

    def __new__(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        if recorder.paused or not isinstance(data, torch.Tensor):
            return construct(cls, data, requires_grad)
        frame = caller()
        with torch._C.DisableTorchFunction():
            inputs = recorder.accesses([data])
        before = torch._C._autograd._get_sequence_nr()
        try:
            result = construct(cls, data, requires_grad)
        except BaseException as error:
            recorder.fail(error, "nn.Parameter", inputs, frame)
            raise
        with torch._C.DisableTorchFunction():
            recorder.tensor_ids.id_of(result, recorder.tensor_ids.entry(data))
            recorder.finish((construct, "nn.Parameter", frame, False, True, ()), result, [data], inputs, before)
        return result

    return __new__


def _uninitialized(recorder: Recorder, original: Any) -> Any:
    """The parameter of a lazy module, before it has a shape."""
    construct = original.__func__ if isinstance(original, staticmethod) else original

    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.paused:
            return construct(cls, *args, **kwargs)

        called = (lambda: construct(cls, *args, **kwargs), "nn.UninitializedParameter", caller())
        return record_patched_call(recorder, called, (), {})

    return __new__


def _function_apply(recorder: Recorder, original: Any) -> Any:
    """`autograd.Function.apply`: recorded under the name of the class."""
    apply = original.__func__

    @functools.wraps(apply)
    def recorded(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if recorder.paused:
            return apply(cls, *args, **kwargs)
        frame = caller()
        recorder.callbacks.applied(cls, frame)
        result = record_patched_call(
            recorder, (functools.partial(apply, cls), f"{cls.__name__}.apply", frame), args, kwargs
        )
        with torch._C.DisableTorchFunction():
            recorder.saved_tensors.note_function_applied(result, args)
        return result

    return classmethod(recorded)


def _context_method(name: str) -> Wrap:
    """A method by which a custom Function declares something of tensors."""

    def wrap(recorder: Recorder, original: Any) -> Any:
        @functools.wraps(original)
        def declare(self: Any, *tensors: Any) -> Any:
            if recorder.paused:
                return original(self, *tensors)

            called = (functools.partial(original, self), f"ctx.{name}", caller())
            return record_patched_call(recorder, called, tensors, {})

        return declare

    return wrap


def _optimizer(recorder: Recorder, original: Any) -> Any:
    def __init__(self: Any, params: Any, *args: Any, **kwargs: Any) -> None:
        if recorder.paused:
            original(self, params, *args, **kwargs)
            return
        frame = caller()
        name = f"optim.{type(self).__name__}"
        module, spent = owner_of(params), is_spent(params)
        try:
            original(self, params, *args, **kwargs)
        except BaseException as error:
            given: list[torch.Tensor] = []
            with torch._C.DisableTorchFunction():
                collect_tensors(params if module is None else list(unregistered(module)), given)
                inputs = recorder.accesses(given)
            recorder.fail(error, name, inputs, frame)
            if spent:
                recorder.rows.append((VALUES, recorder.failures - 1, (("", SPENT, NONE, NONE),)))
            raise
        held: list[torch.Tensor] = []
        for group in self.param_groups:
            collect_tensors(group["params"], held)
        sequence = torch._C._autograd._get_sequence_nr()
        with torch._C.DisableTorchFunction():
            recorder.finish((original, name, frame, False, True, ()), None, held, recorder.accesses(held), sequence)
        recorder.training.reached.look(frame)

    return __init__


def _inference_mode(entering: bool) -> Wrap:
    def wrap(recorder: Recorder, original: Any) -> Any:
        def switch(self: Any, *args: Any) -> Any:
            result = original(self, *args)
            if not recorder.paused:
                note_mode(recorder, caller(), "inference_mode", entering)
            return result

        return switch

    return wrap


def _swap_tensors(recorder: Recorder, original: Any) -> Any:
    def swap_tensors(first: Any, second: Any) -> Any:
        entries = recorder.tensor_ids.step_aside(first, second)
        for entry in entries:
            if entry is not None:
                recorder.leaves.pop(entry[1], None)
        try:
            with recorder.quiet():  # a call inside would give the two an id each, and a weak reference again
                result = original(first, second)
        finally:
            with torch._C.DisableTorchFunction():
                recorder.tensor_ids.resume((first, second), entries)
        with torch._C.DisableTorchFunction():
            old, new = ((recorder.tensor_ids.id_of(tensor),) for tensor in (first, second))
        recorder.rows.append((ASSIGNMENT, recorder.sites.site_of(caller()), "", old, new, False))
        return result

    return swap_tensors


def _thread(recorder: Recorder, original: Any) -> Any:
    """The mode is thread-local: a thread started by the script pushes it before its own work begins."""

    def _bootstrap_inner(self: Any) -> None:
        if recorder.paused:
            original(self)
            return
        with recorder, compile_and_threads.thread_errors_stripped(self):
            original(self)

    return _bootstrap_inner


def _exit(recorder: Recorder, original: Any) -> Any:
    def _exit(status: int) -> None:
        try:
            recorder.leaving(status)
        finally:
            original(status)

    return _exit


_PATCHES: tuple[tuple[Any, str, Wrap], ...] = (
    (torch.nn.Parameter, "__new__", _parameter),
    (torch.Tensor, "set_", _set),
    (torch.autograd.Function, "apply", _function_apply),
    (torch.autograd.function.FunctionCtx, "save_for_backward", _context_method("save_for_backward")),
    (torch.autograd.function.FunctionCtx, "mark_dirty", _context_method("mark_dirty")),
    (torch, "from_numpy", _on_memory_of("torch.from_numpy")),
    (torch, "frombuffer", _on_memory_of("torch.frombuffer")),
    (torch.nn.parameter.UninitializedParameter, "__new__", _uninitialized),
    (torch.optim.Optimizer, "__init__", _optimizer),
    (torch.inference_mode, "__enter__", _inference_mode(True)),
    (torch.inference_mode, "__exit__", _inference_mode(False)),
    (torch.utils, "swap_tensors", _swap_tensors),
    (torch.autograd, "_engine_run_backward", wrap_engine),
    (threading.Thread, "_bootstrap_inner", _thread),
    (torch.nn.Module, "__setattr__", module_setter),
    (torch.amp.GradScaler, "unscale_", scaler_method("unscale_")),
    (torch.amp.GradScaler, "step", scaler_method("step")),
    (os, "_exit", _exit),
    *(
        patch for patch in (*REGIONS, *RECOMPUTED) if hasattr(patch[0], patch[1])
    ),  # inner parts of torch: they come and go
    *hooks.PATCHES,
    *gradcheck_and_functional.PATCHES,
    *TRAINING,
    *TRANSFORMS,
    *STORAGES,
    *STEPS,
    *compile_and_threads.PATCHES,
)


@contextmanager
def installed(recorder: Recorder) -> Iterator[None]:
    """Put every patch in place, and take them out again in the opposite order."""
    undo: list[tuple[Any, str, Any]] = []
    try:
        for owner, name, wrap in _PATCHES:
            with ErrorGuard(recorder, f"`{name}`"):  # of another torch, perhaps
                own = vars(owner).get(name, _MISSING)
                original = own if own is not _MISSING else getattr(owner, name)
                replacement = guarded_patch(recorder, wrap, original)
                compile_and_threads.look_like(replacement, original)
                if isinstance(original, staticmethod) or name == "__new__":
                    replacement = staticmethod(replacement)
                undo.append((owner, name, own))
                setattr(owner, name, replacement)
        ops.read_names()
        yield
    finally:
        recorder.callbacks.end()
        for owner, name, own in reversed(undo):
            if own is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, own)
