"""Records functions of PyTorch that make or change tensors out of the mode's sight: `nn.Parameter`, `from_numpy`."""

from __future__ import annotations

from functools import wraps
from types import FrameType

import torch

from tensorlens.journal.rows import NONE, AssignmentRow, optional
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.patch import Observing, Patch, observe, observe_always
from tensorlens.tracer.patches.record_call import PatchedCall, record_patched_call
from tensorlens.tracer.patches.shared_arrays import is_usual_array, tensor_of_array
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.recorder import Recorder


def _on_memory_of(name: str) -> Observing[Recorder]:
    """Records a function that makes a tensor on the memory of an array. The array can write past version counters."""

    @observe
    def wrap(recorder: Recorder, original: Function) -> Function:
        def call(frame: FrameType, /, source: object, *args: object, **kwargs: object) -> object:
            below = _tensor_below(source)
            if below is None and not args and not kwargs and is_usual_array(recorder, source):
                return tensor_of_array(recorder, (original, name, frame), source)
            function = original if below is None else _on_storage_of(recorder, original, below, frame)
            result = record_patched_call(recorder, PatchedCall(function, name, frame), (source, *args), kwargs)
            recorder.gap(ops.SHARED_WITH_NUMPY, frame)
            if isinstance(result, torch.Tensor):
                with torch._C.DisableTorchFunction():
                    recorder.saved_tensors.watch(result, name, frame, True, source)
                    if recorder.statistics is not None:
                        site = recorder.sites.site_or_outside(frame)
                        recorder.statistics.arrays.given(source, (recorder.tensor_ids.id_of(result), result), site)
            return result

        return call

    return wrap


def _on_storage_of(recorder: Recorder, original: Function, below: torch.Tensor, frame: FrameType) -> Function:
    """Returns a function that makes a tensor on the memory of another one's `.numpy()`, with the same storage id."""

    @wraps(original)
    def made(*args: object, **kwargs: object) -> object:
        result = original(*args, **kwargs)
        with ErrorGuard(recorder, "shared memory", frame), torch._C.DisableTorchFunction():
            storage = recorder.tensor_ids.entry(below)[3]
            if storage != NONE and isinstance(result, torch.Tensor):
                recorder.tensor_ids.write_row(result, recorder.tensor_ids.add_alias(result, storage))
        return result

    return made


def _tensor_below(array: object) -> torch.Tensor | None:
    """Returns the tensor that owns the memory of an array."""
    base = getattr(array, "base", None)
    while type(base).__name__ == "ndarray":
        base = getattr(base, "base", None)
    return base if isinstance(base, torch.Tensor) else None


@observe
def _set(recorder: Recorder, original: Function) -> Function:
    """Records `Tensor.set_`, which puts a tensor on memory that may be another's, with a version counter of its own.

    A deep copy calls it on a new, empty tensor. That call is not recorded: the mode records the whole deep copy.
    """
    deep_copy = torch.Tensor.__deepcopy__.__code__

    def set_(frame: FrameType, /, self: torch.Tensor, *args: object, **kwargs: object) -> object:
        if frame.f_code is deep_copy:
            result: object = original(self, *args, **kwargs)
        else:
            called = PatchedCall(original, "Tensor.set_", frame)
            result = record_patched_call(recorder, called, (self, *args), kwargs)
        with torch._C.DisableTorchFunction():
            recorder.saved_tensors.watch(self, "Tensor.set_", frame, False)
        return result

    return set_


@observe
def _parameter(recorder: Recorder, construct: Function) -> Function:
    """Records `nn.Parameter(data)`: a new tensor on the memory, and with the version counter, of `data`."""

    def __new__(frame: FrameType, cls: type, data: object = None, requires_grad: bool = True) -> object:
        if not isinstance(data, torch.Tensor):
            return construct(cls, data, requires_grad)
        with torch._C.DisableTorchFunction():
            inputs = recorder.accesses([data])
        before = torch._C._autograd._get_sequence_nr()
        try:
            result: torch.Tensor = construct(cls, data, requires_grad)
        except BaseException as error:
            recorder.fail(error, "nn.Parameter", inputs, frame)
            raise
        with torch._C.DisableTorchFunction():
            recorder.tensor_ids.id_of(result, recorder.tensor_ids.entry(data))
            recorder.finish((construct, "nn.Parameter", frame, False, True, ()), result, [data], inputs, before)
        return result

    return __new__


@observe
def _uninitialized_parameter(recorder: Recorder, construct: Function) -> Function:
    """Records the parameter of a lazy module, which has no shape yet."""

    def __new__(frame: FrameType, /, cls: type, *args: object, **kwargs: object) -> object:
        def make() -> object:
            return construct(cls, *args, **kwargs)

        return record_patched_call(recorder, PatchedCall(make, "nn.UninitializedParameter", frame), (), {})

    return __new__


@observe_always
def _swap_tensors(recorder: Recorder, original: Function) -> Function:
    """Records `torch.utils.swap_tensors`. The ids follow the objects even while the recorder is paused."""

    def swap_tensors(frame: FrameType, first: torch.Tensor, second: torch.Tensor) -> object:
        entries = recorder.tensor_ids.step_aside(first, second)
        for entry in entries:
            if entry is not None:
                recorder.leaves.pop(entry[1], None)
        try:
            with recorder.quiet():  # a recorded call would give both tensors new ids, and weak references again
                result: object = original(first, second)
        finally:
            with torch._C.DisableTorchFunction():
                recorder.tensor_ids.resume((first, second), entries)
        with torch._C.DisableTorchFunction():
            old, new = ((recorder.tensor_ids.id_of(tensor),) for tensor in (first, second))
        recorder.rows.write(AssignmentRow, optional(recorder.sites.site_of(frame)), "", old, new, False)
        return result

    return swap_tensors


PATCHES = (
    Patch(torch.nn.Parameter, "__new__", _parameter),
    Patch(torch.nn.parameter.UninitializedParameter, "__new__", _uninitialized_parameter),
    Patch(torch.Tensor, "set_", _set),
    Patch(torch, "from_numpy", _on_memory_of("torch.from_numpy")),
    Patch(torch, "frombuffer", _on_memory_of("torch.frombuffer")),
    Patch(torch.utils, "swap_tensors", _swap_tensors),
)
