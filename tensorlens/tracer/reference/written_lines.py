"""Compares memory that others than PyTorch can write after each line that runs, to find the line that writes it.

Lines are followed only between one call of torch and the next, with `sys.settrace`. A line counts for everything that
it calls outside the user's own files: NumPy, an extension, a library.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

from tensorlens.journal.rows import optional
from tensorlens.records.further_runs import WrittenLine
from tensorlens.tracer.frames.code_between_calls import site_of_write
from tensorlens.tracer.isolation.guard import ErrorGuard
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.services import WatchedMemory

_MOST = 8 * 1024 * 1024  # bytes that are compared after each line


class WrittenLines:
    """Follows the lines of this thread between two calls of torch."""

    def __init__(self, recorder: Recorder, is_skipped: Callable[[CodeType, int], bool]) -> None:
        self._recorder = recorder
        self._is_skipped = is_skipped  # whether what a line of a function writes is undone
        self._memory: list[tuple[int, WatchedMemory, bytes]] = []  # tensor, memory, its bytes
        self._line: tuple[CodeType, int] | None = None  # the innermost line of the user that runs
        self._active = self._is_complete = False
        self._trace: Callable[[FrameType, str, Any], Any] = self._follow

    def begin(self, frame: FrameType | None) -> None:
        """Follows lines from here on, unless a debugger or a coverage tool follows them already."""
        if sys.gettrace() is not None:
            return
        inner = self._recorder.sites.user_frame(frame)
        if inner is None:
            return
        self._memory, self._is_complete = [], False
        self._copy_memory()
        self._line = inner.f_code, inner.f_lineno
        for each in self._user_frames(inner):
            each.f_trace = self._trace
        self._active = True
        sys.settrace(self._trace)

    def end(self, frame: FrameType) -> None:
        """Compares the memory once more, and follows no further line."""
        if not self._active:
            return
        self._active = False
        if sys.gettrace() is self._trace:  # else the program has begun to follow its lines itself
            sys.settrace(None)
            for each in self._user_frames(frame):
                each.f_trace = None
            with ErrorGuard(self._recorder, "a line that writes memory"):
                self._compare(frame)
        self._memory = []

    def _user_frames(self, frame: FrameType | None) -> Iterator[FrameType]:
        user_frame = self._recorder.sites.user_frame
        while (frame := user_frame(frame)) is not None:
            yield frame
            frame = frame.f_back

    def _follow(self, frame: FrameType, event: str, _: Any) -> Callable[[FrameType, str, Any], Any] | None:
        sites = self._recorder.sites
        if not self._active or not sites.is_user(frame.f_code.co_filename):
            return None
        if event in ("call", "line", "return"):
            with ErrorGuard(self._recorder, "a line that writes memory"):
                self._compare(frame)
                if not self._is_complete:  # the call before these lines may have begun to watch memory
                    self._is_complete = True
                    self._copy_memory()
            inner = sites.user_frame(frame.f_back) if event == "return" else frame
            if inner is not None:
                self._line = inner.f_code, inner.f_lineno
        return self._trace

    def _copy_memory(self) -> None:
        """Copies the memory that is watched and was not copied yet."""
        known = {id(memory) for _, memory, _ in self._memory}
        left = _MOST - sum(len(contents) for _, _, contents in self._memory)
        for tensor, memory in self._recorder.saved_tensors.memory_outside():
            contents = memory.read() if id(memory) not in known else None
            if contents is not None and len(contents) <= left:
                left -= len(contents)
                self._memory.append((tensor, memory, contents))

    def _compare(self, frame: FrameType) -> None:
        """Writes a row if the line that has run changed the memory, or undoes the change."""
        for position, (tensor, memory, before) in enumerate(self._memory):
            now = memory.read() if memory.is_there() else None
            if now is None or now == before or self._line is None:
                continue
            code, line = self._line
            if self._is_skipped(code, line):
                memory.restore(before)
                continue
            self._memory[position] = tensor, memory, now
            site = site_of_write(self._recorder.sites, code, line, frame)
            self._recorder.rows.write_fact(WrittenLine, optional(tensor), site)
