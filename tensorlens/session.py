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
from dataclasses import dataclass, replace
from types import FrameType, TracebackType
from typing import Any, ParamSpec, TypeVar

import torch

from tensorlens.diagnostics import report_on
from tensorlens.journal.reader import Reader
from tensorlens.journal.retention import TRAINING_WINDOW, WINDOW
from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.journal.rows import GapRow, OutcomeRow, VersionsRow
from tensorlens.records import model
from tensorlens.records.report import Report
from tensorlens.records.step_choice import StepChoice
from tensorlens.records.version import __version__
from tensorlens.render.notebook import show_in_notebooks
from tensorlens.tracer.entry.exit_state import write_end
from tensorlens.tracer.entry.installation import Installation
from tensorlens.tracer.entry.new_recorder import new_recorder
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.recording.recorder import Recorder

show_in_notebooks()

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts what a recording has so far."""

    events: int
    failures: int
    sites: int


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

    def begin(self, script: model.Script, names: dict[str, Any]) -> None:
        """Starts a recording without a block, under the name of `script`. `end` ends it.

        The tensors among the variables `names`, and those that they hold, are remembered as older than the recording.

        Raises:
            RuntimeError: a recording is going on.
        """
        if not self._active.acquire(blocking=False):
            raise RuntimeError("this trace() is already active")
        self._script = script
        self._begin("")
        recorder = self._running()
        with ErrorGuard(recorder, "the state at the start"), recorder.quiet():
            write_end(recorder, names, None)
        self._first_new = next(recorder.tensor_ids.numbers)  # every later tensor has a greater number

    def end(self, names: dict[str, Any]) -> None:
        """Ends a recording that `begin` started. `names` are the variables that the report gives to tensors."""
        self._end(names, None)

    def _begin(self, filename: str) -> None:
        if os.path.exists(filename):
            self._script = model.Script(
                os.path.basename(filename), (), os.path.dirname(os.path.abspath(filename)), "ok", 0, None
            )
        recorder = self._recorder = new_recorder((filename,), self._steps, self._training)
        recorder.rows.write(VersionsRow, __version__, str(torch.__version__), platform.python_version())
        self._reader = Reader(self._script, TRAINING_WINDOW if self._training else WINDOW)
        self._reading = threading.Lock()
        recorder.tensor_ids.after_census = functools.partial(self._read, recorder.rows)
        self._prepare(recorder)
        self._installation = Installation(recorder)

    def _prepare(self, recorder: Recorder) -> None:
        """Is called with the recorder before anything is recorded."""

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
        self._uninstall(installation)
        if recorder.statistics is not None:
            recorder.statistics.end()
        with ErrorGuard(recorder, "the state at the end"):
            write_end(recorder, names, None if error is None else error.__traceback__)
        failure: int | None = None
        with ErrorGuard(recorder, "the exception that ended the run"):
            failure = None if error is None else recorder.note_ending(error)
        recorder.rows.write(OutcomeRow, "ok" if error is None else "error", None, failure)
        recorder.close()
        self._read(recorder.rows, wait=True)
        self._trace = self._reader.trace()
        self._active.release()

    def _uninstall(self, installation: Installation) -> None:
        installation.take_out()

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

    def follow_edits(self) -> None:
        """Reads the source files that were edited since they were read. Code that is loaded from now on is of these."""
        recorder = self._running()
        with ErrorGuard(recorder, "the files that were edited"):
            recorder.sites.follow_edits()

    def name_text(self, file: str, name: str, text: str = "") -> None:
        """Counts code that is compiled from now on as `file` as the user's, from a text of this name; with no name, as
        code of a library."""
        recorder = self._running()
        with ErrorGuard(recorder, "the source of a cell"):
            recorder.sites.name_text(file, name, text)

    def catch_up(self) -> Progress:
        """Reads what is recorded so far, and says how much that is."""
        recorder = self._running()
        self._read(recorder.rows, wait=True)
        return Progress(self._reader.count, recorder.failures, len(self._reader.source_sites))

    def note_failure(self, error: BaseException) -> int | None:
        """Records an exception that ended a part of the program, as a cell. Returns its place in `trace.failures`."""
        recorder = self._running()
        with ErrorGuard(recorder, "an exception"), recorder.quiet(), torch._C.DisableTorchFunction():
            return recorder.note_ending(error)
        return None

    def snapshot(self, names: dict[str, Any]) -> model.Trace:
        """Returns what is recorded so far, with the state of the tensors as it is now. The recording goes on.

        `names` are the variables that the report gives to tensors.
        """
        recorder = self._running()
        with ErrorGuard(recorder, "the state so far"), recorder.quiet():
            if recorder.statistics is not None:
                recorder.statistics.end()
            write_end(recorder, names, None)
        self._read(recorder.rows, wait=True)
        with self._reading:
            trace = self._reader.trace()
        return replace(trace, script=replace(trace.script, outcome="recording", exit_code=None))

    @contextmanager
    def paused(self, reason: str) -> Iterator[None]:
        """Records nothing of this thread in a `with` block. The report says so, with the reason."""
        recorder = self._running()
        recorder.gap(reason, sys._getframe(2))
        with recorder.aside():
            yield

    def note_gap(self, reason: str) -> None:
        """Makes the report say what it does not know."""
        self._running().rows.write(GapRow, reason, None)

    def older(self) -> frozenset[int]:
        """Returns the tensors of the last snapshot that are known to be older than the recording."""
        return frozenset(n for number, n in self._reader.tensor_numbers.items() if number < self._first_new)

    def _running(self) -> Recorder:
        if self._recorder is None:
            raise RuntimeError("nothing is being recorded")
        return self._recorder

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
        """Returns the last recording; inside the block, what is recorded so far.

        Raises:
            RuntimeError: nothing has been recorded yet.
        """
        return self._last(sys._getframe(1))

    def report(self) -> Report:
        """Returns the last recording with its diagnostics; inside the block, the report so far.

        Raises:
            RuntimeError: nothing has been recorded yet.
        """
        return report_on(self._last(sys._getframe(1)))

    def _last(self, frame: FrameType) -> model.Trace:
        """Returns the recording that goes on, with the names at a frame, else the last one."""
        if self._recorder is not None:
            return self.snapshot(dict(frame.f_locals))
        if not hasattr(self, "_trace"):
            raise RuntimeError("there is nothing to report yet: run code in `with` this trace() first")
        return self._trace
