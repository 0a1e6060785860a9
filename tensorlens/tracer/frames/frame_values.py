"""Finds where the plain Python and NumPy values of a failing expression come from.

This is read once, when an exception ends the run: its frames still exist, with the values of their names.
"""

from __future__ import annotations

from types import CodeType, FrameType, ModuleType, TracebackType

import torch
from torch.utils._contextlib import _DecoratorContextManager

from tensorlens.journal.rows import optional
from tensorlens.tracer.frames import bytecode
from tensorlens.tracer.frames.call_sites import Sites

_MAX_OUTWARDS = 20
_HOMES = ("builtins", "numpy", "collections", "itertools")  # packages of plain values
Row = tuple[str, str, int | None, int | None]  # name, type, site of its binding, site where it was last read before


def plain_values(sites: Sites, traceback: TracebackType | None) -> tuple[Row, ...]:
    """Returns the named plain values that the failing expression of the user's innermost frame reads."""
    innermost = None
    while traceback is not None:
        if sites.is_user(traceback.tb_frame.f_code.co_filename):
            innermost = traceback
        traceback = traceback.tb_next
    return () if innermost is None else values_read(sites, innermost.tb_frame, innermost.tb_lasti)


def values_read(sites: Sites, frame: FrameType, offset: int) -> tuple[Row, ...]:
    """Returns the named plain values that the expression at `offset` in a user's frame reads."""
    rows: list[Row] = []
    manager = _class_entered(frame, offset)
    if manager:
        return ((manager, "type", None, None),)
    for name, read in bytecode.names_read_by(frame.f_code, offset).items():
        value = _value(frame, name)
        if is_plain(value):
            site, used = _origin(sites, frame, (name, value, read))
            rows.append((name, type(value).__name__, site, used))
    return tuple(rows)


def tensors_read(sites: Sites, traceback: TracebackType | None) -> list[torch.Tensor]:
    """Returns the named tensors that the failing expression reads, if the traceback ends at the user's own line.

    Then a function without a Python frame raised. No mode sees some of these, such as functions of `torch.jit`.
    """
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is None or not sites.is_user(traceback.tb_frame.f_code.co_filename):
        return []
    frame = traceback.tb_frame
    values = [_value(frame, name) for name in bytecode.names_read_by(frame.f_code, traceback.tb_lasti)]
    return [value for value in values if isinstance(value, torch.Tensor)]


def _class_entered(frame: FrameType, offset: int) -> str:
    """Returns the name of PyTorch's context manager if a `with` statement got its class, not an instance; else ""."""
    value = bytecode.object_entered(frame, offset)
    if isinstance(value, type) and issubclass(value, _DecoratorContextManager):
        return value.__name__
    return ""


def is_plain(value: object) -> bool:
    """Returns whether a value is data that PyTorch did not make: a number, string, container, iterator or array."""
    home = type(value).__module__.partition(".")[0]
    return (home in _HOMES or isinstance(value, tuple)) and not callable(value) and not isinstance(value, ModuleType)


def _value(frame: FrameType, name: str) -> object:
    """Returns the value of a name in a frame. A name without a value gets this function, which `is_plain` rejects."""
    for names in (frame.f_locals, frame.f_globals):
        if name in names:
            return names[name]
    return _value


def _origin(sites: Sites, frame: FrameType, reading: tuple[str, object, int]) -> tuple[int | None, int | None]:
    """Returns the sites where a value was bound to its name, and where the name was last read before `reading`.

    A parameter got its value from the call in the outer frame; a global or an outer variable from the code of that
    frame. Its name there is found by comparing the objects.
    """
    name, value, before = reading
    current: FrameType | None = frame
    for _ in range(_MAX_OUTWARDS):
        if current is None:
            break
        site = _bound_in(sites, current, name, before)
        if site is not None:
            used = bytecode.last_read(current.f_code, name, before)
            return site, None if used is None else sites.at(current.f_code, used, current.f_back)
        outer = sites.user_frame(current.f_back)
        if outer is None:
            break
        name, before = _same_outside(outer, name, value, _is_parameter(current.f_code, name))
        if not name:
            return optional(sites.site_of(outer)), None  # it has no name there: the call contains an expression
        current = outer
    return None, None


def _bound_in(sites: Sites, frame: FrameType, name: str, before: int) -> int | None:
    offset = bytecode.last_binding(frame.f_code, name, before)
    return None if offset is None else sites.at(frame.f_code, offset, frame.f_back)


def _is_parameter(code: CodeType, name: str) -> bool:
    count = code.co_argcount + code.co_kwonlyargcount
    return name in code.co_varnames[: count + bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)]


def _same_outside(outer: FrameType, name: str, value: object, parameter: bool) -> tuple[str, int]:
    """Returns the name of a value in the outer frame and the offset where it is read; "" for a nameless argument."""
    if not parameter:
        return name, outer.f_lasti
    for other, offset in bytecode.names_read_by(outer.f_code, outer.f_lasti).items():
        if _value(outer, other) is value:
            return other, offset
    return "", outer.f_lasti
