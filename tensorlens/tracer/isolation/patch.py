"""Installs patches of PyTorch and of the standard library, and undoes them.

A `Patch` replaces one attribute. Its `wrap` receives the recorder and the original value and returns the replacement.
Most replacements are functions that call the original and record the call: `observe` and `observe_always` make these.

    @observe
    def _train(recorder, original):
        def train(frame, self, mode=True):  # `frame` called `Module.train`
            note(recorder, frame, self)
            return original(self, mode)
        return train

    PATCHES = (Patch(torch.nn.Module, "train", _train),)

This module is in the lowest room because the second run of `--reference` has patches, too.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import ClassMethodDescriptorType, FrameType, FunctionType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from torch.compiler import is_compiling

from tensorlens.tracer.isolation.guard import ErrorGuard, ErrorReporter, Function, OriginalCall
from tensorlens.tracer.isolation.stack_room import ROOM

CALLER = 1  # frames between a replacement and the code that calls the patched function
_MISSING = object()


class Observer(ErrorReporter, Protocol):
    """The recorder, as far as patches need to know it here."""

    @property
    def paused(self) -> bool: ...


R = TypeVar("R", bound=Observer)
Observing = Callable[[R, Function], Function]


class Patch(NamedTuple, Generic[R]):
    """Replaces the attribute `name` of `owner` by `wrap(recorder, original)`."""

    owner: object
    name: str
    wrap: Callable[[R, Any], object]


def existing(patches: Iterable[Patch[R]]) -> tuple[Patch[R], ...]:
    """Drops the patches of internal names that this version of PyTorch does not have."""
    return tuple(patch for patch in patches if hasattr(patch.owner, patch.name))


@contextmanager
def patched(patches: Iterable[Patch[R]], recorder: R) -> Iterator[None]:
    """Installs patches in their order while the context lasts, and undoes them in the opposite order.

    A patch that cannot be installed, in another version of PyTorch perhaps, is a gap of the report. Undoing a patch
    restores the value that it replaced, even if the program has replaced the value since.
    """
    undo: list[tuple[object, str, object]] = []
    try:
        for owner, name, wrap in patches:
            with ErrorGuard(recorder, f"`{name}`"):
                own = vars(owner).get(name, _MISSING)
                original = getattr(owner, name) if own is _MISSING else own
                replacement = replacement_of(Patch(owner, name, wrap), recorder, original)
                undo.append((owner, name, own))
                setattr(owner, name, replacement)
        yield
    finally:
        for owner, name, own in reversed(undo):
            with suppress(AttributeError, TypeError):
                if own is _MISSING:
                    delattr(owner, name)
                else:
                    setattr(owner, name, own)


def replacement_of(patch: Patch[R], recorder: R, original: object) -> object:
    """Wraps the function inside a classmethod or staticmethod. The replacement gets its kind, name and signature."""
    _, name, wrap = patch
    function: Any = original.__func__ if isinstance(original, classmethod | staticmethod) else original
    replacement = wrap(recorder, function)
    if not isinstance(replacement, FunctionType):
        return replacement
    functools.update_wrapper(replacement, function, updated=())
    if isinstance(original, classmethod | ClassMethodDescriptorType):  # the latter is written in C
        return classmethod(replacement)
    return staticmethod(replacement) if isinstance(original, staticmethod) or name == "__new__" else replacement


def observe(wrap: Observing[R]) -> Observing[R]:
    """Makes a patch whose function runs only while the recorder is not paused; otherwise the original runs alone.

    The function that `wrap` returns receives the frame that called the patched function, and then the arguments. If
    that function fails by itself, the error becomes a gap, and the caller gets the original's result or exception.
    """
    return _observing(wrap, while_paused=False)


def observe_always(wrap: Observing[R]) -> Observing[R]:
    """Makes a patch as `observe` does, whose function runs while the recorder is paused, too."""
    return _observing(wrap, while_paused=True)


def _observing(wrap: Observing[R], while_paused: bool) -> Observing[R]:
    @functools.wraps(wrap)
    def guarded_wrap(recorder: R, function: Function) -> Function:
        return _guarded(recorder, wrap, function, while_paused)

    return guarded_wrap


def _guarded(recorder: R, wrap: Observing[R], function: Function, while_paused: bool) -> Function:
    running = _RunningCalls()
    observer = wrap(recorder, _remembered(running, function))
    what = f"`{getattr(function, '__qualname__', '')}`"

    def replacement(*args: object, **kwargs: object) -> object:
        if is_compiling() or (not while_paused and recorder.paused):
            return function(*args, **kwargs)
        calls = running.calls
        depth = len(calls)
        call = OriginalCall(function)
        frame: FrameType | None = None
        if depth:
            ROOM.__enter__()
        try:
            calls.append(call)
            try:
                frame = sys._getframe(CALLER)
            except ValueError:  # a thread of PyTorch's engine called: no frame here is the user's
                frame = sys._getframe()
            return observer(frame, *args, **kwargs)
        except Exception as error:
            if id(error) == call.raised:
                raise
            internal_error = error
        finally:
            del calls[depth:]
            if depth:
                ROOM.__exit__()
            frame = None  # it may be this frame: then the cycle would keep the arguments and the result alive
        try:
            return call.outcome(recorder, what, internal_error, args, kwargs)
        finally:
            del internal_error  # its traceback refers to this frame

    return replacement


def _remembered(running: _RunningCalls, function: Function) -> Function:
    @functools.wraps(function)
    def original(*args: object, **kwargs: object) -> object:
        """Runs the patched function. The outcome is remembered in case the observer fails later."""
        calls = running.calls
        if not calls:
            return function(*args, **kwargs)
        call = calls[-1]
        try:
            call.result = result = function(*args, **kwargs)
        except BaseException as error:
            call.raised = id(error)
            raise
        call.returned = True
        return result

    return original


class _RunningCalls(threading.local):
    """The calls of one patched function that are running in this thread, the innermost last."""

    def __init__(self) -> None:
        self.calls: list[OriginalCall] = []
