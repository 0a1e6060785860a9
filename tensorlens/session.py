"""Records inside a running process: the object that `tensorlens.trace()` returns."""

from __future__ import annotations

import functools
import inspect
import os
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import torch

from tensorlens.diagnostics import report_on
from tensorlens.journal.reader import Reader
from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.journal.rows import OutcomeRow, VersionsRow
from tensorlens.records import model
from tensorlens.records.report import Report
from tensorlens.records.step_choice import StepChoice
from tensorlens.records.version import __version__
from tensorlens.tracer.entry.exit_state import write_end
from tensorlens.tracer.entry.installation import Installation
from tensorlens.tracer.entry.new_recorder import new_recorder
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.recording.recorder import Recorder

P = ParamSpec("P")
R = TypeVar("R")


class Session:
    """Records the torch calls of a `with` block or of a decorated function. Each entry starts a new recording.

    `steps` are the training steps to record; None: everything. With `training`, gradients and parameters are measured.
    """

    def __init__(self, steps: StepChoice | None = None, training: bool = False) -> None:
        self._steps, self._training = steps, training
        self._recorder: Recorder | None = None
        self._installation: Installation | None = None
        self._active = threading.Lock()
        self._script = model.Script("<trace>", (), os.getcwd(), "ok", 0, None)

    def __enter__(self) -> Session:
        if not self._active.acquire(blocking=False):
            raise RuntimeError("this trace() is already active; use a second one for a nested block")
        self._begin(sys._getframe(1).f_code.co_filename)
        return self

    def _begin(self, filename: str) -> None:
        if os.path.exists(filename):
            self._script = model.Script(
                os.path.basename(filename), (), os.path.dirname(os.path.abspath(filename)), "ok", 0, None
            )
        recorder = self._recorder = new_recorder((filename,), self._steps, self._training)
        recorder.rows.write(VersionsRow, __version__, str(torch.__version__), platform.python_version())
        self._reader = Reader(self._script)
        self._reading = threading.Lock()
        recorder.tensor_ids.after_census = functools.partial(self._read, recorder.rows)
        self._installation = Installation(recorder)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._end(dict(sys._getframe(1).f_locals), error)

    def _end(self, names: dict[str, Any], error: BaseException | None) -> None:
        recorder, installation = self._recorder, self._installation
        assert recorder is not None
        assert installation is not None
        self._recorder = self._installation = None
        if recorder.sampling is not None:
            recorder.sampling.end()
        installation.take_out()
        if recorder.statistics is not None:
            recorder.statistics.end()
        with ErrorGuard(recorder, "the state at the end"):
            write_end(recorder, names, None if error is None else error.__traceback__)
        failure: int | None = None
        with ErrorGuard(recorder, "the exception that ended the run"):
            failure = None if error is None else recorder.note_ending(error)
        outcome, exit_code = ("ok", 0) if error is None else ("error", 1)
        recorder.rows.write(OutcomeRow, outcome, exit_code, failure)
        recorder.close()
        self._read(recorder.rows, wait=True)
        self._trace = self._reader.trace()
        self._active.release()

    def _read(self, rows: RowBuffer, wait: bool = False) -> None:
        """Moves the rows written so far to the reader, which keeps only a part of a long block."""
        if self._reading.acquire(blocking=wait):  # unless another thread is reading
            try:
                rows.settle()
                batch = rows[:]
                del rows[: len(batch)]
                self._reader.read([batch])
            finally:
                self._reading.release()

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Returns `function` with each call recorded. A generator or coroutine is recorded from first step to last.

        A call that begins while another one is recorded, in it or in another thread, is part of that recording.
        """
        wrapped: Any
        if inspect.iscoroutinefunction(function):

            async def wrapped(*args: P.args, **kwargs: P.kwargs) -> Any:
                with self._recording(function):
                    return await function(*args, **kwargs)

        elif inspect.isgeneratorfunction(function):

            def wrapped(*args: P.args, **kwargs: P.kwargs) -> Any:
                with self._recording(function):
                    return (yield from function(*args, **kwargs))

        else:

            def wrapped(*args: P.args, **kwargs: P.kwargs) -> Any:
                with self._recording(function):
                    return function(*args, **kwargs)

        traced: Callable[P, R] = functools.wraps(function)(wrapped)
        return traced

    @contextmanager
    def _recording(self, function: Any) -> Iterator[None]:
        if not self._active.acquire(blocking=False):
            yield
            return
        code = getattr(inspect.unwrap(function), "__code__", None)
        self._begin("" if code is None else code.co_filename)
        try:
            yield
        except BaseException as error:
            self._end({}, error)
            raise
        self._end({}, None)

    def trace(self) -> model.Trace:
        """Returns the last recording.

        Raises:
            RuntimeError: nothing has been recorded yet, or recording is still going on.
        """
        if self._recorder is not None or not hasattr(self, "_trace"):
            raise RuntimeError("there is no trace yet: leave the `with tensorlens.trace()` block first")
        return self._trace

    def report(self) -> Report:
        """Returns the last recording with its diagnostics."""
        return report_on(self.trace())
