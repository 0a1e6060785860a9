"""Makes the `__torch_function__` of a recorder in Python. Every call runs it unless `_fast_path.c` takes the call.

`dispatch_mode` says which calls take the fast path, and holds its tables.
"""

# ruff: noqa: C901 - one function is faster than several

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any

import torch

from tensorlens.journal.rows import NONE
from tensorlens.tracer.frames.call_sites import frame_at
from tensorlens.tracer.isolation.guard import Function, reraise_user_error
from tensorlens.tracer.isolation.torch_features import ONLY_CPU
from tensorlens.tracer.isolation.torch_originals import data_ptr
from tensorlens.tracer.recording import compiled, ops
from tensorlens.tracer.recording.ops import NORM, ORDINARY, SIMPLE, SLOW, Args, Kwargs

if TYPE_CHECKING:
    from tensorlens.tracer.recording.dispatch_mode import FastPathMode

_next_sequence = torch._C._autograd._get_sequence_nr
_grad_enabled = torch.is_grad_enabled
_ref = weakref.ref
_Tensor = torch.Tensor
_Parameter = torch.nn.Parameter
Kinds = tuple[object, ...]
"""Describes the plain values among the arguments: for each, how many inputs precede it, and its type or value."""
_NO_KWARGS: Kwargs = {}
_NO_ARGUMENTS: tuple[Kinds, Kinds, list[torch.Tensor]] = (), (), []  # see `others`, `inner` and `more`; never changed
ATOMS = {int, float, str, bool, slice, type(None), type(...), torch.dtype, torch.device, torch.Size}
DECISIVE = {bool, str}  # types of plain values that may decide what a function computes


class SlowPathError(Exception):
    """The call does not fit the fast path."""


def fast_path(recorder: FastPathMode, getframe: Callable[[int], FrameType] = sys._getframe) -> Callable[..., Any]:
    """Returns the `__torch_function__` of a recorder. It is long: every operation pays for each call and look-up."""
    tensor_ids, templates, call_kinds = recorder.tensor_ids, recorder.templates, recorder.call_kinds
    known, blocks, numbers = tensor_ids.known, tensor_ids.blocks, tensor_ids.numbers
    is_only = compiled.FastPath is None and getframe is sys._getframe
    emit = recorder.rows.extend if is_only else recorder.rows.write_call
    slow_path_reasons, watched, quiet_threads = recorder.slow_path_reasons, recorder.watched, recorder.quiet_threads
    saved_statistics = recorder.saved_statistics

    def __torch_function__(self: Any, func: Function, types: Any, args: Args = (), kwargs: Kwargs | None = None) -> Any:
        if kwargs is None:
            kwargs = _NO_KWARGS
        try:
            call_kind = call_kinds.get(func) or recorder.call_kind(func)
        except Exception as error:  # a callable of the user's without a hash, or whose `__eq__` raises
            call_kind = ops.unknown(recorder, error, frame_at(1))
        if call_kind == NORM:
            call_kind = ops.kind_of_norm(saved_statistics, args, kwargs)
        if call_kind <= SLOW or recorder.is_paused or (quiet_threads and recorder.paused):
            if call_kind == ops.UNKNOWN:
                return ops.dispatched(func, args, kwargs)
            if recorder.paused or func in ops.QUIET:
                return func(*args, **kwargs)
            special = ops.SPECIAL.get(func)
            if special is not None:
                return special(recorder, func, args, kwargs)
            return recorder.call(func, args, kwargs, frame_at(1))
        inputs = [0]  # the template's id, then (tensor id, version) of each tensor argument
        others, inner, more = _NO_ARGUMENTS  # plain values; items of lists and of kwargs; tensors among those
        try:
            for value in args:
                kind = type(value)
                if kind is _Tensor or kind is _Parameter:
                    entry = known.get(id(value))
                    if entry is None or entry[0]() is not value:
                        entry = recorder.add_input(value)
                    inputs.append(entry[1])
                    inputs.append(value._version)
                elif kind in ATOMS:
                    others += (len(inputs), value if kind in DECISIVE else kind)
                else:
                    more, inner = _more(more, inner, value, kind)
            if kwargs:
                more, inner = _more(more, inner, [*kwargs.values()], list)
                inner += (*kwargs,)
            if inner:
                others += inner
            for value in more:
                entry = known.get(id(value))
                if entry is None or entry[0]() is not value:
                    entry = recorder.add_input(value)
                inputs.append(entry[1])
                inputs.append(value._version)
        except Exception as error:  # RuntimeError: an inference tensor has no version
            reraise_user_error(error)
            inputs = []
        if not inputs:  # outside the `except` block, so the user's exception gets no internal `__context__`
            return recorder.call(func, args, kwargs, frame_at(1))
        first = _next_sequence()
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            try:
                recorder.fail(error, func, inputs[1:], frame_at(1))
            except RecursionError:  # ours: the stack has no room left to record it
                pass
            raise
        frame: FrameType | None = None
        try:
            frame = getframe(1)
            if type(result) is not _Tensor or slow_path_reasons:
                raise SlowPathError
            if watched and recorder.is_watched(_tensors(args, more), first, frame):
                raise SlowPathError
            if call_kind == ORDINARY or kwargs or more:
                ops.note_risk(recorder, func, args, kwargs)
                recorder.record_ordinary((func, others, frame), result, _tensors(args, more), inputs, first)
                return result
            drawn = _next_sequence() - first
            # drawn: its derivative was recorded, hence the result requires grad
            graph = 2 if drawn else 0 if _grad_enabled() else 1
            if graph == 1:
                result._version  # noqa: B018 - an inference tensor has none: a RuntimeError
            metadata = result.shape, result.dtype, None if ONLY_CPU else result.device
            key = (func, others, graph, len(inputs), False, drawn, *metadata)
            template = templates.get(id(frame.f_code) + frame.f_lasti)  # the address of the instruction
            if template is None or template[0] != key:
                if graph == 2 and drawn != 1:
                    raise SlowPathError
                template = recorder.find_template(frame, key, result)
            if template[2] and graph == 2 and not recorder.risky:
                recorder.risky = ops.RISKS[func](args, kwargs)
            if call_kind == SIMPLE:
                address = data_ptr(result)
                if not address:
                    raise SlowPathError
                number = next(numbers)
                known[id(result)] = blocks[address] = (_ref(result), number, number, number)
                inputs += (number, NONE, 0, first)
            else:
                base = result._base
                owner = known.get(id(base))
                if owner is None or owner[0]() is not base:
                    raise SlowPathError
                number = next(numbers)
                known[id(result)] = (_ref(result), number, owner[2], owner[3])
                inputs += (number, owner[1], inputs[2], first)  # a view has the version of its base
            inputs[0] = template[1]
            emit(inputs)
            if number >= tensor_ids.due:
                tensor_ids.sweep(number)
            return result
        except Exception as error:  # RuntimeError: no version or no memory; ValueError: no frame
            reraise_user_error(error)  # what follows is outside the `except` block: see above
        recorder.finish_on_slow_path((func, args, kwargs, frame), result, _tensors(args, more), inputs[1:], first)
        return result

    return __torch_function__


def _tensors(args: Args, more: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    return [*(value for value in args if type(value) is _Tensor or type(value) is _Parameter), *more]


def _more(tensors: list[torch.Tensor], kinds: Kinds, items: Any, kind: type) -> tuple[list[torch.Tensor], Kinds]:
    """Returns `tensors` and `kinds`, extended by what a list or tuple of tensors and plain values holds.

    Raises:
        SlowPathError: `items` is no list or tuple, or holds something else.
    """
    if kind is not list and kind is not tuple:
        raise SlowPathError
    more, others = [*tensors], [*kinds, kind]
    for value in items:
        kind = type(value)
        if kind is _Tensor or kind is _Parameter:
            more.append(value)
        elif kind in ATOMS:
            others += (len(more), value if kind in DECISIVE else kind)
        else:
            raise SlowPathError
    return more, tuple(others)
