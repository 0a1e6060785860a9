"""Reads the journal while the script runs, so that little is left to read when it exits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from types import TracebackType
from typing import IO, Any

from tensorlens.journal.overflow import Overflow
from tensorlens.journal.reader import Reader
from tensorlens.journal.rows import BROKEN, is_read, unpack
from tensorlens.records.model import Script, Trace
from tensorlens.runner.progress_line import ProgressLine

_PAUSE = 0.02  # seconds between two reads


class JournalFollower:
    """Feeds a journal file to a `Reader` from a thread. Leaving the `with` block reads the rest of the file."""

    def __init__(
        self, reader: Reader, journal: IO[bytes], progress: ProgressLine | None = None, overflow: Overflow | None = None
    ) -> None:
        self._reader = reader
        self._journal = journal
        self._overflow = overflow
        self._progress = progress
        self._has_batches = False
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
            if self._progress is not None and self._has_batches:
                with suppress(Exception):  # a progress line that can't be drawn must not stop the reading
                    self._progress.show(self._reader.calls)
            self._read()

    def _read(self) -> None:
        if self._overflow is not None:
            self._journal = self._overflow.continued(self._journal)
        self._reader.read(self._noted(unpack(self._journal)))

    def _noted(self, batches: Iterator[list[Any]]) -> Iterator[list[Any]]:
        for batch in batches:
            self._has_batches = True
            yield batch


def trace_of(reader: Reader, script: Script) -> Trace:
    """Returns the trace that was read, or an empty one where the script has damaged its own journal."""
    try:
        return replace(reader.trace(), script=script)
    except Exception:
        return empty_trace(script)


def empty_trace(script: Script) -> Trace:
    """Returns a trace of a run of which no record can be trusted; its one gap says so."""
    reader = Reader(replace(script, failure=None))
    reader.break_off(BROKEN)
    return reader.trace()
