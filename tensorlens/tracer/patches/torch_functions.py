"""Handles the torch functions that the mode sees and that need more than a CALL row: grad mode, shared memory, `.data`.

`HANDLERS` says which functions. It is registered with `ops` when a recorder is made.
"""

from __future__ import annotations

from types import FrameType
from typing import Any

import torch
from torch.nn.parameter import is_lazy

from tensorlens.journal.rows import NONE, GradModeRow, optional
from tensorlens.tracer.frames.call_sites import frame_at
from tensorlens.tracer.isolation.guard import ErrorGuard, Function
from tensorlens.tracer.isolation.muted_dispatch import MutedDispatch, has_torch_dispatch
from tensorlens.tracer.isolation.readable import is_in_main_memory, may_read
from tensorlens.tracer.isolation.torch_originals import data_ptr, detach, equal, untyped_storage
from tensorlens.tracer.patches.activations_in_place import ACTIVATIONS, activate, change
from tensorlens.tracer.patches.ordering_functions import ORDERING, order
from tensorlens.tracer.patches.shared_arrays import from_array, to_array
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.ops import Args, Kwargs
from tensorlens.tracer.recording.recorder import Recorder, collect_tensors, current_mode
from tensorlens.tracer.recording.tensor_ids import PLAIN

_DROPOUTS = tuple(
    getattr(torch.nn.functional, name)
    for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
)


def note_mode(recorder: Recorder, frame: FrameType, cause: str, entering: bool) -> None:
    """Writes a GRAD_MODE row for a switch of the grad mode by the user's own code, not by code of PyTorch."""
    site, decorator = switch_site(recorder, frame)
    if site != NONE:
        recorder.sites.shared.note_switch(site)
        recorder.rows.write(GradModeRow, site, current_mode(), cause, entering, decorator)


def switch_site(
    recorder: Recorder, frame: FrameType | None, through: tuple[str, ...] = ("grad_mode.py",)
) -> tuple[int, bool]:
    """Finds the user's line that entered or left a context; True if that is the decorator of a function.

    `through`: the files of PyTorch between that line and `frame`.
    """
    while frame is not None:
        filename = frame.f_code.co_filename
        if recorder.sites.is_user(filename):
            return recorder.sites.site_of(frame), False
        if filename.endswith("_contextlib.py"):
            function = frame.f_locals.get("func")
            code = getattr(function, "__code__", None)
            if code is not None and recorder.sites.is_user(code.co_filename):
                return recorder.sites.decorator(code, frame.f_back), True
        elif not filename.endswith((*through, "contextlib.py")):
            return NONE, False
        frame = frame.f_back
    return NONE, False


def _set_grad_enabled(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Notes `no_grad`, `enable_grad` and `set_grad_enabled`. The calling frame says which of them it is."""
    result: object = func(*args, **kwargs)
    with ErrorGuard(recorder, "a switch of gradient recording", frame_at(2)):
        _note_switch(recorder, frame_at(2))
    return result


def _note_switch(recorder: Recorder, frame: FrameType | None) -> None:
    if frame is None:
        return
    cause, _, method = frame.f_code.co_qualname.rpartition(".")
    if method == "__init__" and cause == "set_grad_enabled" and frame.f_back is not None:
        inner, _, inner_method = frame.f_back.f_code.co_qualname.rpartition(".")
        if frame.f_back.f_code.co_filename == frame.f_code.co_filename:
            frame, cause, method = frame.f_back, inner, inner_method
    note_mode(recorder, frame, cause or "set_grad_enabled", method != "__exit__")


def _data(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records a read of `.data`, an alias with a version counter of its own."""
    frame = frame_at(2)
    tensor: Any = args[0]
    tensor_ids = recorder.tensor_ids
    known = type(tensor) in PLAIN and not recorder.slow_path_reasons and tensor_ids.find(tensor) is not None
    if not known or tensor_ids.entry(tensor)[3] == NONE or not untyped_storage(tensor).data_ptr():
        result = recorder.call(func, args, kwargs, frame)
        with ErrorGuard(recorder, "shared memory", frame):
            recorder.saved_tensors.watch(result, ops.name_of(func), frame, False, tensor)
        return result
    result = func(*args, **kwargs)
    recorder.finish_alias(func, tensor, result, frame, False)
    return result


def _assign_data(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records `.data = ...`: the nodes that saved the tensor get other memory, and no version moves."""
    frame = frame_at(2)
    before = None
    with ErrorGuard(recorder, "what was there", frame), torch._C.DisableTorchFunctionSubclass(), MutedDispatch():
        if not (is_lazy(args[0]) or has_torch_dispatch(args[0])):  # a lazy parameter raises on every question
            before = detach(args[0])
    result = recorder.call(func, args, kwargs, frame)
    if before is None:
        return result
    with ErrorGuard(recorder, "other memory", frame), torch._C.DisableTorchFunctionSubclass(), MutedDispatch():
        if torch._C._autograd._get_sequence_nr() and _differ(before, args[0]):
            recorder.saved_tensors.note_moved_tensor(before, args[0], ops.name_of(func), frame)
    return result


def _differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Returns whether two tensors have different values. Tensors that can't be read count as different."""
    if one.shape != other.shape or one.dtype != other.dtype or not (may_read(one) and may_read(other)):
        return True
    try:
        return data_ptr(one) != data_ptr(other) and not equal(one, detach(other))
    except (RuntimeError, NotImplementedError):  # tensors without plain memory
        return True


def _assign_items(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records an assignment to items. With `--training`, notes an index that names a place more than once."""
    frame = frame_at(2)
    if recorder.statistics is not None and len(args) > 2 and not (kwargs.get("accumulate") or args[3:4] == (True,)):
        with ErrorGuard(recorder, "an index", frame), torch._C.DisableTorchFunctionSubclass(), MutedDispatch():
            recorder.statistics.indices.look(args[1], frame)
    return recorder.call(func, args, kwargs, frame)


# among their arguments
_PADDING_PLACES: dict[Function, int] = {torch.nn.functional.embedding: 2, torch.nn.functional.embedding_bag: 10}


def _look_up(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records a look-up in an embedding or its bags. With `--training`, looks at the ids if one of them is padding."""
    frame, place = frame_at(2), _PADDING_PLACES[func]
    padding = args[place] if len(args) > place else kwargs.get("padding_idx")
    if recorder.statistics is not None and type(padding) is int:
        with ErrorGuard(recorder, "ids", frame), torch._C.DisableTorchFunctionSubclass(), MutedDispatch():
            ids, weight = (
                args[at] if at < len(args) else kwargs.get(name) for at, name in enumerate(("input", "weight"))
            )
            recorder.statistics.ids.look(ids, weight, padding, optional(recorder.sites.site_of(frame)))
    return recorder.call(func, args, kwargs, frame)


def _storage(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Watches a storage that the user's own line asks for: it can be written past every version counter."""
    frame = frame_at(2)
    result = func(*args, **kwargs)
    with ErrorGuard(recorder, "shared memory", frame):
        if frame is not None and recorder.sites.is_user(frame.f_code.co_filename):
            recorder.saved_tensors.watch(args[0], ops.name_of(func), frame, True)
    return result


def _fused(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records a kernel of a fused optimizer, and a gap: the kernel writes its arguments and moves no version."""
    frame = frame_at(2)
    result = recorder.call(func, args, kwargs, frame)
    recorder.gap(ops.FUSED, frame)
    with ErrorGuard(recorder, "a fused step", frame):
        for parameter in args[0] if args else kwargs.get("params", ()):
            recorder.saved_tensors.note_kernel_write(parameter, ops.name_of(func), frame)
    return result


def _normalise(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records batch norm. It saves the running statistics in `eval()` mode, and updates them without a version in
    `train()` mode."""
    frame = frame_at(2)
    result = recorder.call(func, args, kwargs, frame)
    with ErrorGuard(recorder, "running statistics", frame):
        _note_statistics(recorder, func, args, kwargs, frame, result)
    return result


def _note_statistics(
    recorder: Recorder, func: Function, args: Args, kwargs: Kwargs, frame: FrameType | None, result: torch.Tensor
) -> None:
    """Notes whether batch norm used its running statistics or updated them."""
    if len(args) == 3:  # as PyTorch passes them on
        _, mean, variance = args
        training, momentum = kwargs.get("training", False), kwargs.get("momentum", 0.1)
    else:
        mean, variance, training, momentum = (
            args[position] if position < len(args) else kwargs.get(name, default)
            for position, name, default in (
                (1, "running_mean", None), (2, "running_var", None), (5, "training", False), (6, "momentum", 0.1),
            )
        )  # fmt: skip
    if isinstance(mean, torch.Tensor) and isinstance(variance, torch.Tensor):
        if not training:
            recorder.saved_tensors.note_statistics_used(result, mean, variance)
        elif momentum:
            recorder.saved_tensors.note_statistics_updated(ops.name_of(func), frame, mean, variance)
        if recorder.statistics is not None:
            recorder.statistics.functional.normalised(mean, bool(training), momentum, frame)


def _drop(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records dropout. With `--training`, notes a call that a line of the script makes itself, and its mode."""
    frame = frame_at(2)
    if recorder.statistics is not None:
        with ErrorGuard(recorder, "dropout", frame):
            recorder.statistics.functional.dropped(bool(kwargs.get("training", True)), frame)
        if kwargs.get("inplace") is True:
            return change(recorder, func, args, kwargs, frame)
    return recorder.call(func, args, kwargs, frame)


def _backward(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records an exception of `Tensor.backward` before the engine call, which a patch records."""
    frame = frame_at(2)
    try:
        return func(*args, **kwargs)
    except BaseException as error:
        with ErrorGuard(recorder, "an exception", frame):
            roots: list[torch.Tensor] = []
            collect_tensors((args, kwargs), roots)
            recorder.training.call_backward(recorder.tensor_ids.find(root) for root in roots)
            recorder.fail(error, func, recorder.accesses(roots), frame)
        raise


def _user_reads(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records a read of `.grad_fn` by the user's own line. Reads by PyTorch's code are not recorded."""
    frame = frame_at(2)
    read_by_user = False
    with ErrorGuard(recorder, "a read", frame):
        read_by_user = frame is not None and recorder.sites.is_user(frame.f_code.co_filename)
    return recorder.call(func, args, kwargs, frame) if read_by_user else func(*args, **kwargs)


def _gradient(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records a read of `.grad` by the user's own line. Reads by PyTorch's code are not recorded."""
    frame = frame_at(2)
    read_by_user = False
    with ErrorGuard(recorder, "a read", frame):
        read_by_user = frame is not None and recorder.sites.is_user(frame.f_code.co_filename)
    return recorder.read_gradient(func, args, kwargs, frame) if read_by_user else func(*args, **kwargs)


def _shown(recorder: Recorder, func: Function, args: Args, kwargs: Kwargs) -> object:
    """Records that a tensor on a device is printed or searched, which waits for the device."""
    on_device, frame = False, frame_at(2)
    with ErrorGuard(recorder, "a printed tensor", frame), torch._C.DisableTorchFunctionSubclass():
        on_device = isinstance(args[0], torch.Tensor) and not (is_in_main_memory(args[0]) or args[0].is_meta)
    return recorder.call(func, args, kwargs, frame) if on_device else func(*args, **kwargs)


HANDLERS: dict[Function, ops.Handler] = {
    **dict.fromkeys((torch.Tensor.__repr__, torch.Tensor.__format__, torch.Tensor.__contains__), _shown),
    torch._C._set_grad_enabled: _set_grad_enabled,
    torch.Tensor.backward: _backward,
    torch.Tensor.numpy: to_array,
    torch.Tensor.__array__: to_array,
    torch.Tensor.__dlpack__: to_array,
    torch.as_tensor: from_array,
    torch.asarray: from_array,
    torch.Tensor.untyped_storage: _storage,
    torch.Tensor.storage: _storage,
    ops.DATA: _data,
    ops.setter("data"): _assign_data,
    torch.Tensor.__setitem__: _assign_items,
    torch.Tensor.index_put_: _assign_items,
    torch.nn.functional.batch_norm: _normalise,
    **dict.fromkeys(_PADDING_PLACES, _look_up),
    **dict.fromkeys(ORDERING, order),
    **dict.fromkeys(_DROPOUTS, _drop),
    **dict.fromkeys(ACTIVATIONS, activate),
    ops.GRAD: _gradient,
    ops.getter("grad_fn"): _user_reads,
    **{getattr(torch, name): _fused for name in dir(torch) if name.startswith("_fused_") and name.endswith("_")},
}

TRAINING_ONLY = (*_PADDING_PLACES, *_DROPOUTS, *ORDERING, *ACTIVATIONS)
"""Functions of `HANDLERS` that other runs than those with `--training` record on the fast path."""
