"""Follows a program while it runs, so that little is left to do when it ends: its journal is read as it grows, and what
it comes to is told while the interpreter still winds down."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import IO, Any, Generic, TypeVar

from tensorlens.journal.batches import is_read, unpack
from tensorlens.journal.overflow import Overflow
from tensorlens.journal.reader import Reader
from tensorlens.journal.rows import BROKEN
from tensorlens.records.invariants import validate
from tensorlens.records.model import Script, Trace
from tensorlens.runner.progress_line import ProgressLine

T = TypeVar("T")
Load = Callable[[], Callable[[Trace], T]]

_PAUSE = 0.02  # seconds between two looks at the journal


@dataclass(frozen=True, slots=True)
class _Told(Generic[T]):
    """What was told, and the state of things that it is true of."""

    batches: int
    script: Script
    answer: T


class Follower(Generic[T]):
    """Reads a journal from a thread for the length of a `with` block; afterwards `told` gives the answer.

    `load` imports what telling needs and returns the function that tells. It has no effect but its answer, which is
    dropped where the program had more to say after its last line.
    """

    def __init__(
        self,
        reader: Reader,
        written: IO[bytes],
        load: Load[T],
        live: ProgressLine | None = None,
        overflow: Overflow | None = None,
    ) -> None:
        self._reader = reader
        self._written = written
        self._overflow = overflow
        self._load = load
        self._live = live
        self._batches = 0
        self._early: _Told[T] | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="tensorlens-journal", daemon=True)

    def __enter__(self) -> Follower[T]:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        if self._live is not None:
            self._live.remove()
        self._read()
        if not is_read(self._written) and not (self._overflow is not None and self._overflow.is_used):
            self._reader.break_off(BROKEN)
            self._early = None

    def told(self, script: Script) -> T:
        """The answer for a program that ended as `script` says."""
        early = self._early
        if early is not None and (early.batches, early.script) == (self._batches, script):
            return early.answer
        return self._tell(self._load(), script)

    def _follow(self) -> None:
        with suppress(Exception):  # what fails here fails again when it is needed
            self._load()
        while not self._ended.wait(_PAUSE):
            if self._live is not None and self._batches:
                with suppress(Exception):  # there is no line, then
                    self._live.show(self._reader.calls)
            self._read()
            if self._reader.finished and self._early is None:
                with suppress(Exception):
                    script = self._reader.script
                    self._early = _Told(self._batches, script, self._tell(self._load(), script))

    def _read(self) -> bool:
        """Read what has been written since; whether there was anything."""
        before = self._batches
        if self._overflow is not None:
            self._written = self._overflow.continued(self._written)
        self._reader.read(self._counted(unpack(self._written)))
        return self._batches > before

    def _counted(self, batches: Iterator[list[Any]]) -> Iterator[list[Any]]:
        for batch in batches:
            self._batches += 1
            yield batch

    def _tell(self, tell: Callable[[Trace], T], script: Script) -> T:
        with _uncollected():
            try:
                return tell(replace(self._reader.trace(), script=script))
            except Exception:
                if self._is_sound():
                    raise
            empty = Reader(replace(script, failure=None))
            empty.break_off(BROKEN)
            return tell(empty.trace())

    def _is_sound(self) -> bool:
        """Whether a trace can be made of the journal, which the program may have written itself."""
        try:
            return not validate(self._reader.trace())
        except Exception:
            return False


@contextmanager
def _uncollected() -> Iterator[None]:
    """Nearly all that a report is made of lives until it is written: looking for garbage would be in vain."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
