"""The `__torch_function__` of a recorder in Python: what every call goes through where `_fast_path.c` is not compiled
or does not take it. `hot` says what a call on the fast path is, and holds its tables.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any

import torch

from tensorlens.journal.rows import NONE
from tensorlens.tracer.frames.call_sites import frame_at
from tensorlens.tracer.isolation.guard import reraise_user_error
from tensorlens.tracer.isolation.torch_originals import data_ptr
from tensorlens.tracer.recording import ops
from tensorlens.tracer.recording.ops import ORDINARY, SIMPLE, SLOW

_next_sequence = torch._C._autograd._get_sequence_nr
_grad_enabled = torch.is_grad_enabled
_getframe = sys._getframe
_ref = weakref.ref
_Tensor = torch.Tensor
_Parameter = torch.nn.Parameter
_NOTHING: dict[str, Any] = {}
_NO_ARGUMENTS: Any = (), (), ()  # kinds of those that are no tensors; of those in lists or given by name; tensors there
ATOMS = {int, float, str, bool, slice, type(None), type(...), torch.dtype, torch.device, torch.Size}
TELLING = {bool, str}  # plain values that may decide what a function computes


class SlowPathError(Exception):
    """Something about a call is not as the short way has it."""


def fast_path(recorder: Any) -> Any:  # noqa: C901 - see below
    """`__torch_function__` of a recorder, with its tables in reach: each op pays for every call and look-up."""
    tensor_ids, templates, call_kinds = recorder.tensor_ids, recorder.templates, recorder.call_kinds
    known, blocks, numbers, emit = tensor_ids.known, tensor_ids.blocks, tensor_ids.numbers, recorder.rows.extend
    slow_path_reasons, watched, only_cpu = (
        recorder.slow_path_reasons,
        recorder.watched,
        not torch.accelerator.is_available(),
    )

    def __torch_function__(self: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: C901
        if kwargs is None:
            kwargs = _NOTHING
        try:
            way = call_kinds.get(func) or recorder.call_kind(func)
        except Exception as error:  # a callable of the program's that has no hash, or no equal
            way = ops.unknown(recorder, error, frame_at(1))
        if way <= SLOW or recorder.paused:
            if way == ops.UNKNOWN:
                return ops.dispatched(func, args, kwargs)
            if recorder.paused or func in ops.QUIET:
                return func(*args, **kwargs)
            special = ops.SPECIAL.get(func)
            if special is not None:
                return special(recorder, func, args, kwargs)
            return recorder.call(func, args, kwargs, frame_at(1))
        inputs: Any = [0]
        others, inner, more = _NO_ARGUMENTS
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
                    others += (len(inputs), value if kind in TELLING else kind)
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
            inputs = reraise_user_error(error)
        if inputs is None:  # not in the handler: what the call raises has no exception of ours as its context
            return recorder.call(func, args, kwargs, frame_at(1))
        first = _next_sequence()
        try:
            result = func(*args, **kwargs)
        except BaseException as error:
            try:
                recorder.fail(error, func, inputs[1:], frame_at(1))
            except RecursionError:  # ours: there is no room left to note it
                pass
            raise
        frame: Any = None
        try:
            frame = _getframe(1)
            if type(result) is not _Tensor or slow_path_reasons:
                raise SlowPathError
            if watched and recorder.is_watched(_tensors(args, more), first, frame):
                raise SlowPathError
            if way == ORDINARY or kwargs or more:
                ops.note_risk(recorder, func, args, kwargs)
                recorder.record_ordinary((func, others, frame), result, _tensors(args, more), inputs, first)
                return result
            drawn = _next_sequence() - first
            if drawn:  # its derivative was recorded, hence the result requires grad
                graph = 2
            elif _grad_enabled():
                graph = 0
            else:
                graph = 1
                result._version  # noqa: B018 - an inference tensor has none: a RuntimeError
            look = result.shape, result.dtype, None if only_cpu else result.device
            key = (func, others, graph, len(inputs), False, drawn, *look)
            template = templates.get(
                id(frame.f_code) + frame.f_lasti
            )  # the address of the instruction, so to say: unique
            if template is None or template[0] != key:
                if graph == 2 and drawn != 1:
                    raise SlowPathError
                template = recorder.find_template(frame, key, result)
            if template[2] and graph == 2 and not recorder.risky:
                recorder.risky = ops.RISKS[func](args, kwargs)
            if way == SIMPLE:
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
                inputs += (number, owner[1], inputs[2], first)  # a view has the version of what it is a view of
            inputs[0] = template[1]
            emit(inputs)
            if number >= tensor_ids.due:
                tensor_ids.sweep(number)
            return result
        except Exception as error:  # RuntimeError: no version or no memory; ValueError: no frame
            reraise_user_error(error)  # no more in the handler: a Ctrl-C has no exception of ours as its context
        recorder.finish_on_slow_path((func, args, kwargs, frame), result, _tensors(args, more), inputs[1:], first)
        return result

    return __torch_function__


def _tensors(args: Any, more: Any) -> list[Any]:
    return [*(value for value in args if type(value) is _Tensor or type(value) is _Parameter), *more]


def _more(tensors: Any, kinds: Any, items: Any, kind: type) -> tuple[list[Any], tuple[Any, ...]]:
    """`tensors` and `kinds` with those in a list or tuple that holds nothing but tensors and plain values."""
    if kind is not list and kind is not tuple:
        raise SlowPathError
    found, others = [*tensors], [*kinds, kind]
    for value in items:
        kind = type(value)
        if kind is _Tensor or kind is _Parameter:
            found.append(value)
        elif kind in ATOMS:
            others += (len(found), value if kind in TELLING else kind)
        else:
            raise SlowPathError
    return found, tuple(others)
