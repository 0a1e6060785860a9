"""Recording inside a running process: what `tensorlens.trace()` gives."""

from __future__ import annotations

import functools
import os
import platform
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import torch

from tensorlens import __version__, model
from tensorlens.diagnostics import diagnose
from tensorlens.journal import NONE, OUTCOME, VERSIONS
from tensorlens.reader import Reader
from tensorlens.tracer.ending import write_end
from tensorlens.tracer.invisible import invisible
from tensorlens.tracer.patches import installed
from tensorlens.tracer.recorder import Recorder

P = ParamSpec("P")
R = TypeVar("R")


class Session:
    """A context manager and a decorator. Each entry records anew; `trace()` and `report()` tell of the last one."""

    def __init__(self) -> None:
        self._recorder: Recorder | None = None
        self._stack = ExitStack()
        self._script = model.Script("<trace>", (), os.getcwd(), "ok", 0, None)

    def __enter__(self) -> Session:
        if self._recorder is not None:
            raise RuntimeError("this trace() is already active; use a second one for a nested block")
        frame = sys._getframe(1)
        filename = frame.f_code.co_filename
        if os.path.exists(filename):
            self._script = model.Script(
                os.path.basename(filename), (), os.path.dirname(os.path.abspath(filename)), "ok", 0, None
            )
        recorder = Recorder(own_files=(filename,))
        recorder.rows.append((VERSIONS, __version__, str(torch.__version__), platform.python_version()))
        self._stack = ExitStack()
        for part in (invisible(recorder), installed(recorder), recorder):
            self._stack.enter_context(part)
        self._recorder = recorder
        self._reader = Reader(self._script)
        self._reading = threading.Lock()
        recorder.identity.after_census = functools.partial(self._read, recorder.rows)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        recorder = self._recorder
        assert recorder is not None
        self._recorder = None
        self._stack.close()
        names = sys._getframe(1).f_locals
        write_end(recorder, dict(names), traceback)
        if error is None:
            recorder.rows.append((OUTCOME, "ok", 0, NONE))
        else:
            recorder.rows.append((OUTCOME, "error", 1, recorder.note_ending(error)))
        recorder.close()
        self._read(recorder.rows, wait=True)
        self._trace = self._reader.trace()

    def _read(self, rows: list[Any], wait: bool = False) -> None:
        """Read what has been recorded so far, so that a long block keeps no more of it than the reader does."""
        if self._reading.acquire(blocking=wait):  # another thread may be at it
            try:
                batch = rows[:]
                del rows[: len(batch)]
                self._reader.read([batch])
            finally:
                self._reading.release()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def traced(*args: P.args, **kwargs: P.kwargs) -> R:
            with self:
                return function(*args, **kwargs)

        return traced

    def trace(self) -> model.Trace:
        """What was recorded.

        Raises:
            RuntimeError: nothing has been recorded yet, or recording is still going on.
        """
        if self._recorder is not None or not hasattr(self, "_trace"):
            raise RuntimeError("there is no trace yet: leave the `with tensorlens.trace()` block first")
        return self._trace

    def report(self) -> model.Report:
        """What was recorded, with the diagnostics that it gives rise to."""
        return model.Report(self.trace(), diagnose(self.trace()))
