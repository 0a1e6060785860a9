"""Records the calls that put a tensor and a NumPy array on the same memory: `as_tensor`, `numpy()` and their like.

PyTorch does not see writes through the array. A program that gets its data from NumPy makes such calls in each step, so
the rows of the usual ones are written here: those of a plain tensor or array. The slow path records the others.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch

from tensorlens.journal.rows import CallRow, GapRow, optional
from tensorlens.tracer.frames.call_sites import frame_at
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.readable import is_in_main_memory
from tensorlens.tracer.isolation.torch_originals import data_ptr
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.fast_path import ATOMS
from tensorlens.tracer.recording.ops import Args, Kwargs
from tensorlens.tracer.recording.recorder import Recorder, current_mode
from tensorlens.tracer.recording.tensor_ids import Entry
from tensorlens.tracer.recording.tensor_states import version_of

_next_sequence = torch._C._autograd._get_sequence_nr
_modes = torch._C._len_torch_function_stack


def to_array(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records `numpy()` and its like. PyTorch does not see writes through the array or capsule that they return."""
    frame = frame_at(2)
    tensor: Any = args[0] if len(args) == 1 and not kwargs else None
    entry = _written_entry(recorder, tensor) if type(tensor) is torch.Tensor and _is_usual(recorder) else None
    if entry is not None and frame is not None:
        first, inputs = _next_sequence(), (entry[1], version_of(tensor))
        try:
            result = func(tensor)
        except BaseException as error:
            _fail(recorder, error, func, inputs, frame)
            raise
        if _is_array(result) and _next_sequence() == first:
            _record_array(recorder, (func, frame, first), (tensor, entry, inputs), result)
            return result
        recorder.finish((func, "", frame, False, False, (args, kwargs)), result, [tensor], [*inputs], first)
    else:
        result = recorder.call(func, args, kwargs, frame)
    recorder.gap(ops.SHARED_WITH_NUMPY, frame)
    with ErrorGuard(recorder, "shared memory", frame):
        if args and isinstance(args[0], torch.Tensor):
            array = result if type(result).__name__ == "ndarray" else None  # a capsule leads to no array
            recorder.saved_tensors.watch(args[0], ops.name_of(func), frame, True, array)
            if recorder.statistics is not None:
                recorder.statistics.arrays.answers.look(args[0], frame)
    return result


def from_array(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records `as_tensor` and `asarray`, which put a tensor on an array's memory if they can."""
    frame = frame_at(2)
    source: Any = args[0] if args else None
    is_alone = len(args) == 1 and not kwargs
    if frame is not None and _is_array(source) and _is_usual(recorder) and (is_alone or _are_atoms(args, kwargs)):
        first = _next_sequence()
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            _fail(recorder, error, func, (), frame)
            raise
        if type(result) is torch.Tensor and not result.requires_grad and _next_sequence() == first:
            # other modes and arguments may ask for a copy
            _record_tensor(recorder, (ops.name_of(func), frame, first), result, source, is_alone and not _modes())
            return result
        recorder.finish((func, "", frame, False, False, (args, kwargs)), result, [], [], first)
    else:
        result = recorder.call(func, args, kwargs, frame)
    with ErrorGuard(recorder, "shared memory", frame):
        shares = type(source).__name__ == "ndarray" and is_in_main_memory(result)
        if shares and _address_of(source) == data_ptr(result):
            recorder.gap(ops.SHARED_WITH_NUMPY, frame)
            recorder.saved_tensors.watch(result, ops.name_of(func), frame, True, source)
            if recorder.statistics is not None:
                made = recorder.tensor_ids.id_of(result), result
                recorder.statistics.arrays.given(source, made, recorder.sites.site_or_outside(frame))
    return result


def is_usual_array(recorder: Recorder, value: Any) -> bool:
    """Returns whether a value is a NumPy array with items, of no subclass, and nothing asks to see every call."""
    return _is_array(value) and value.size > 0 and _is_usual(recorder)


def tensor_of_array(recorder: Recorder, called: tuple[Function, str, FrameType], source: Any) -> object:
    """Records `from_numpy`, which the mode does not see, for a usual array."""
    function, name, frame = called
    first = _next_sequence()
    try:
        result = function(source)
    except BaseException as error:
        recorder.fail(error, name, (), frame)
        raise
    with torch._C.DisableTorchFunction():  # the program's own modes are active here
        if type(result) is torch.Tensor and not result.requires_grad and _next_sequence() == first:
            _record_tensor(recorder, (name, frame, first), result, source, True)
            return result
        recorder.finish((function, name, frame, False, True, ((source,), {})), result, [], [], first)
        recorder.gap(ops.SHARED_WITH_NUMPY, frame)
        if isinstance(result, torch.Tensor):
            recorder.saved_tensors.watch(result, name, frame, True, source)
    return result


def _record_tensor(
    recorder: Recorder, called: tuple[str, FrameType | None, int], result: torch.Tensor, source: Any, shares: bool
) -> None:
    """Writes the rows of a call that made a plain tensor of an array, and watches memory that both have.

    `called`: the operation, the frame that called it, and the sequence number then, which is that of the next node
    still. `shares`: the tensor is new, and surely on the array's memory if it is in main memory and has any.
    """
    op, frame, first = called
    try:
        if recorder.guarded:
            recorder.saved_tensors.after_call((None, op, frame, False, False, ()), [], [], first)
        site = recorder.sites.site_or_outside(frame)
        entry, version = recorder.tensor_ids.add(result), version_of(result)
        number = entry[1]
        state = (number, optional(version), False, True, None, None, False, optional(entry[3]))
        recorder.rows.write(CallRow, op, site, (), (number, version), (), (state,), first, first, current_mode())
        address = data_ptr(result) if is_in_main_memory(result) else 0
        if address and (shares or _address_of(source) == address):
            is_outside = site == recorder.sites.outside
            recorder.rows.write(GapRow, ops.SHARED_WITH_NUMPY, None if is_outside else site)
            recorder.saved_tensors.watch(result, op, frame, True, source, None if is_outside else (entry, site, shares))
            if recorder.statistics is not None:
                recorder.statistics.arrays.given(source, (number, result), site)
    except Exception as error:  # ours, never the user's
        recorder.internal_error("shared memory", error, frame)


def _record_array(
    recorder: Recorder,
    called: tuple[Function, FrameType, int],
    given: tuple[torch.Tensor, Entry, tuple[int, int]],
    result: object,
) -> None:
    """Writes the rows of a call that made an array of a plain tensor without a history, and watches the memory."""
    func, frame, first = called
    tensor, entry, inputs = given
    try:
        op, saved_tensors = ops.name_of(func), recorder.saved_tensors
        if recorder.guarded or saved_tensors.saved_storages:
            saved_tensors.after_call((func, "", frame, False, False, ()), [tensor], inputs, first)
        site = recorder.sites.site_or_outside(frame)
        recorder.rows.write(CallRow, op, site, inputs, (), (), (), first, first, current_mode())
        is_outside = site == recorder.sites.outside
        recorder.rows.write(GapRow, ops.SHARED_WITH_NUMPY, None if is_outside else site)
        saved_tensors.watch(tensor, op, frame, True, result, None if is_outside else (entry, site, False))
        if recorder.statistics is not None:
            recorder.statistics.arrays.answers.look(tensor, frame)
    except Exception as error:  # ours, never the user's
        recorder.internal_error("shared memory", error, frame)


def _is_array(value: object) -> bool:
    kind = type(value)
    return kind.__name__ == "ndarray" and kind.__module__ == "numpy"


def _is_usual(recorder: Recorder) -> bool:
    return not recorder.slow_path_reasons


def _written_entry(recorder: Recorder, tensor: torch.Tensor) -> Entry | None:
    """Returns the entry of a tensor without a history whose state is written."""
    entry: Entry | None = None if tensor.requires_grad else recorder.tensor_ids.known.get(id(tensor))
    return entry if entry is not None and entry[0]() is tensor else None


def _are_atoms(args: Args, kwargs: Kwargs) -> bool:
    """Returns whether there is no tensor among the arguments after the first."""
    return all(type(value) in ATOMS for value in (*args[1:], *kwargs.values()))


def _address_of(array: Any) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _fail(recorder: Recorder, error: BaseException, func: Function, inputs: tuple[int, ...], frame: FrameType) -> None:
    """Writes a FAILURE row, as `SlowPath.call` does."""
    try:
        recorder.fail(error, func, inputs, frame)
    except RecursionError:  # ours: the stack has no room left to record it
        pass
