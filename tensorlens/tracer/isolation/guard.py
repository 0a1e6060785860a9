"""What catches an error of ours wherever torch or Python calls us: the program goes on as it would without the lens,
and the report has a gap that says what was missed. What the program raises itself is never caught, nor is Ctrl-C.
"""

from __future__ import annotations

import functools
import signal
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType, FunctionType, TracebackType
from typing import Any

from tensorlens.tracer.isolation.hidden_frames import is_ours

Wrap = Callable[[Any, Any], Any]
LONGEST_TEXT = 20_000  # characters of a message


def caller() -> FrameType:
    """For a function that stands in a patch's place: the frame that called it, past the net."""
    return sys._getframe(3)


class ErrorGuard:
    """A context manager for what is ours alone: an error in it becomes a gap."""

    __slots__ = ("_frame", "_recorder", "_what")

    def __init__(self, recorder: Any, what: str, frame: FrameType | None = None) -> None:
        self._recorder = recorder
        self._what = what
        self._frame = frame

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        self._recorder.internal_error(self._what, error, self._frame)
        return True


def guarded_patch(recorder: Any, wrap: Wrap, original: Any) -> Any:
    """`wrap(recorder, original)`, a function that calls `original` and records it, with a net below. What is no
    function (a table, a class, a descriptor) has nets of its own."""
    function = getattr(original, "__func__", original)
    if isinstance(function, type) or not callable(function):
        return wrap(recorder, original)
    thread = _Thread()

    @functools.wraps(function)
    def noted(*args: Any, **kwargs: Any) -> Any:
        runs = thread.runs
        if not runs:
            return function(*args, **kwargs)
        run = runs[-1]
        try:
            run.result = result = function(*args, **kwargs)
        except BaseException as error:
            run.raised = id(error)
            raise
        run.returned = True
        return result

    kind = type(original) if isinstance(original, classmethod | staticmethod) else None
    replacement = wrap(recorder, noted if kind is None else kind(noted))
    recording = getattr(replacement, "__func__", replacement)
    if not isinstance(recording, FunctionType):
        return wrap(recorder, original)
    what = f"`{getattr(function, '__qualname__', '')}`"

    def net(*args: Any, **kwargs: Any) -> Any:
        runs = thread.runs
        depth = len(runs)
        run = _Run(function)
        try:
            runs.append(run)
            return recording(*args, **kwargs)
        except Exception as error:
            if id(error) == run.raised:
                raise
            trouble = error
        finally:
            del runs[depth:]
        try:
            return run.outcome(recorder, what, trouble, args, kwargs)
        finally:
            del trouble  # its traceback leads here

    return classmethod(net) if isinstance(replacement, classmethod) else net


def guarded(recorder: Any, what: str, recording: Callable[[Any], Any], function: Any, args: Any, kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, as `recording` runs it, which is ours and is given a stand-in for `function`."""
    run = _Run(function)
    try:
        return recording(run)
    except Exception as error:
        if id(error) == run.raised:
            raise
        trouble = error
    try:
        return run.outcome(recorder, what, trouble, args, kwargs)
    finally:
        del trouble


class _Run:
    """A function of the program's or of torch's in one call of what records it, and how far it came. No exception is
    held: with its traceback that were a cycle, which kept the program's tensors alive."""

    __slots__ = ("_function", "raised", "result", "returned")

    def __init__(self, function: Any) -> None:
        self._function = function
        self.result: Any = None
        self.returned = False
        self.raised = 0  # the id of what it raised, which lives until it has been passed on

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            self.result = self._function(*args, **kwargs)
        except BaseException as error:
            self.raised = id(error)
            raise
        self.returned = True
        return self.result

    def outcome(self, recorder: Any, what: str, trouble: Exception, args: Any, kwargs: Any) -> Any:
        """What the call would have come to without us, who ran into `trouble`."""
        recorder.internal_error(what, trouble)
        if self.returned:
            return self.result
        own: BaseException | None = trouble
        while own is not None and id(own) != self.raised:
            own = own.__context__
        try:
            if own is None:
                return self._function(*args, **kwargs)
            raise own
        finally:
            del own, trouble


def raised_by_handler(error: BaseException) -> bool:
    """Whether a signal handler of the program's raised an exception, wherever the signal found us. The locals of the
    frames are not looked at: a frame would keep what it has shown."""
    codes: list[CodeType] = []
    place = error.__traceback__
    while place is not None:
        if not is_ours(place.tb_frame.f_code.co_filename):
            codes.append(place.tb_frame.f_code)
        place = place.tb_next
    return bool(codes) and any(
        code is found for code in map(_code_of_handler, signal.valid_signals()) for found in codes
    )


def _code_of_handler(number: int) -> CodeType | None:
    called: Any = signal.getsignal(number)
    while isinstance(called, functools.partial):
        called = called.func
    function = getattr(called, "__func__", called)
    code = getattr(function, "__code__", None) or getattr(type(called).__call__, "__code__", None)
    return code if isinstance(code, CodeType) else None


def reraise_user_error(error: BaseException) -> Any:
    """Go on after an error that was to be expected of ours, unless it is the program's."""
    if raised_by_handler(error):
        raise error


class _Thread(threading.local):
    """The runs that a thread is in, the innermost last."""

    def __init__(self) -> None:
        self.runs: list[_Run] = []


def safe_text(error: BaseException) -> str:
    """`str(error)`, also where the user's own `__str__` raises; without its middle where it is gigantic."""
    try:
        text = str(error)
    except Exception:
        return f"<{type(error).__name__} whose text can't be read>"
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT // 2]} … {text[-LONGEST_TEXT // 2 :]}"
