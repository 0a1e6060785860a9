"""Reads the journal while the script runs, so that the trace is ready soon after its last line."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import IO, Any

from tensorlens.journal.batches import is_read, unpack
from tensorlens.journal.overflow import Overflow
from tensorlens.journal.reader import Reader
from tensorlens.journal.rows import BROKEN
from tensorlens.records.model import Script, Trace
from tensorlens.runner.journal_file import JournalStream
from tensorlens.runner.progress_line import ProgressLine

_PAUSE = 0.02  # seconds between two reads


class JournalFollower:
    """Feeds a journal file to a `Reader` from a thread. Leaving the `with` block reads the rest of the file.

    The thread calls `on_trace` once, when the script has written its outcome and its process has yet to exit.
    """

    def __init__(
        self,
        reader: Reader,
        journal: IO[bytes],
        progress: ProgressLine | None = None,
        overflow: Overflow | None = None,
        on_trace: Callable[[Trace], None] | None = None,
        beside: Callable[[], None] | None = None,
    ) -> None:
        self._reader = reader
        self._journal = journal
        self._overflow = overflow
        self._progress = progress
        self._on_trace = on_trace
        self._beside = beside  # is called after each look at the journal
        self._batches = 0
        self._early: tuple[int, Trace] | None = None  # batches read, and the trace of them
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="tensorlens-journal", daemon=True)

    def __enter__(self) -> JournalFollower:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        if self._progress is not None:
            self._progress.remove()
        self._read()
        if not is_read(self._journal) and not (self._overflow is not None and self._overflow.is_used):
            self._reader.break_off(BROKEN)

    def _follow(self) -> None:
        while not self._ended.wait(_PAUSE):
            if self._progress is not None and self._batches:
                with suppress(Exception):  # a progress line that can't be drawn must not stop the reading
                    self._progress.show(self._reader.calls)
            self._read()
            if self._beside is not None:
                with suppress(Exception):  # the journals of other processes can't be read: this one goes on
                    self._beside()
            if self._on_trace is not None and self._reader.finished and self._early is None:
                with suppress(Exception):  # an error here happens again when the final trace is used
                    self._early = self._batches, self._reader.trace()
                    self._on_trace(self._early[1])

    def trace(self, script: Script) -> Trace:
        """Returns the final trace of a script that ended as `script` says: the early one, if nothing came after it."""
        if self._early is not None and self._early[0] == self._batches and self._early[1].script == script:
            return self._early[1]
        return trace_of(self._reader, script)

    def _read(self) -> None:
        if self._overflow is not None:
            self._journal = self._overflow.continued(self._journal)
        self._reader.read(self._noted(unpack(self._journal)))
        if isinstance(self._journal, JournalStream):  # else it is in memory: the disk is full
            self._journal.release()

    def _noted(self, batches: Iterator[list[Any]]) -> Iterator[list[Any]]:
        for batch in batches:
            self._batches += 1
            yield batch


def trace_of(reader: Reader, script: Script) -> Trace:
    """Returns the trace that was read, or an empty one if the script damaged its own journal."""
    try:
        return replace(reader.trace(), script=script)
    except Exception:
        return empty_trace(script)


def empty_trace(script: Script) -> Trace:
    """Returns a trace without records, for a run whose journal can't be trusted; its one gap says so."""
    reader = Reader(replace(script, failure=None))
    reader.break_off(BROKEN)
    return reader.trace()
