"""Turns errors of the lens itself into gaps of the report, so that the program runs as it would without the lens.

An exception of the program passes unchanged, and so does Ctrl-C.
"""

from __future__ import annotations

import functools
import signal
from collections.abc import Callable, Mapping
from types import CodeType, FrameType, TracebackType
from typing import Any, Protocol

from tensorlens.tracer.isolation.hidden_frames import is_ours

Function = Callable[..., Any]
"""A function of PyTorch or of the program. Its arguments and its result can be anything."""
LONGEST_TEXT = 20_000  # characters of a message


class ErrorReporter(Protocol):
    """Receives the errors of the lens itself."""

    def internal_error(self, what: str, error: Exception, frame: FrameType | None = None, /) -> None: ...


class ErrorGuard:
    """Catches an exception of the lens's own code in a `with` block, and reports it. `what` could not be recorded."""

    __slots__ = ("_frame", "_reporter", "_what")

    def __init__(self, reporter: ErrorReporter, what: str, frame: FrameType | None = None) -> None:
        self._reporter = reporter
        self._what = what
        self._frame = frame

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        if not isinstance(error, Exception):
            return False
        self._reporter.internal_error(self._what, error, self._frame)
        return True


class OriginalCall:
    """Calls a function of the program or of PyTorch inside code of the lens, and remembers how the call ended.

    It holds no exception: with its traceback that would be a reference cycle, which keeps the program's tensors alive.
    """

    __slots__ = ("_function", "raised", "result", "returned")

    def __init__(self, function: Function) -> None:
        self._function = function
        self.result: object = None
        self.returned = False
        self.raised = 0  # the id of the exception, which lives until the program receives it

    def __call__(self, *args: object, **kwargs: object) -> object:
        try:
            self.result = self._function(*args, **kwargs)
        except BaseException as error:
            self.raised = id(error)
            raise
        self.returned = True
        return self.result

    def outcome(
        self,
        reporter: ErrorReporter,
        what: str,
        internal_error: Exception,
        args: tuple[object, ...],
        kwargs: Mapping[str, object],
    ) -> object:
        """Reports an internal error, and returns or raises what the function would have without the lens."""
        reporter.internal_error(what, internal_error)
        if self.returned:
            return self.result
        own: BaseException | None = internal_error
        while own is not None and id(own) != self.raised:
            own = own.__context__
        try:
            if own is None:
                return self._function(*args, **kwargs)
            raise own
        finally:
            del own, internal_error


def call_guarded(
    reporter: ErrorReporter,
    what: str,
    observer: Callable[[Function], object],
    function: Function,
    args: tuple[object, ...],
    kwargs: Mapping[str, object],
) -> object:
    """Returns what `function` returns for these arguments. `observer`, code of the lens, receives it and calls it."""
    call = OriginalCall(function)
    try:
        return observer(call)
    except Exception as error:
        if id(error) == call.raised:
            raise
        internal_error = error
    try:
        return call.outcome(reporter, what, internal_error, args, kwargs)
    finally:
        del internal_error


def raised_by_handler(error: BaseException) -> bool:
    """Returns whether a signal handler of the program raised an exception while code of the lens ran.

    Only the code of the traceback's frames is compared: reading their locals would keep these alive.
    """
    codes: list[CodeType] = []
    entry = error.__traceback__
    while entry is not None:
        if not is_ours(entry.tb_frame.f_code.co_filename):
            codes.append(entry.tb_frame.f_code)
        entry = entry.tb_next
    return bool(codes) and any(
        code is handler for handler in map(_code_of_handler, signal.valid_signals()) for code in codes
    )


def _code_of_handler(number: int) -> CodeType | None:
    handler: object = signal.getsignal(number)
    while isinstance(handler, functools.partial):
        handler = handler.func
    function = getattr(handler, "__func__", handler)
    code = getattr(function, "__code__", None) or getattr(getattr(type(handler), "__call__", None), "__code__", None)  # noqa: B004
    return code if isinstance(code, CodeType) else None


def reraise_user_error(error: BaseException) -> None:
    """Raises an exception again if a signal handler of the program raised it. The caller ignores any other."""
    if raised_by_handler(error):
        raise error


def safe_text(error: BaseException) -> str:
    """Returns `str(error)` without its middle if it is very long, even if the program's own `__str__` raises."""
    try:
        text = str(error)
    except Exception as another:
        reraise_user_error(another)
        return f"<{type(error).__name__} whose text can't be read>"
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT // 2]} … {text[-LONGEST_TEXT // 2 :]}"
