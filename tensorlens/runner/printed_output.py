"""Reads what a further run prints, and keeps the beginning of it and a digest of the rest."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b

MOST_KEPT = 4 * 1024 * 1024  # bytes
_CHUNK = 64 * 1024
_LEFT = 1024 * 1024  # bytes: no pipe holds more when the run has ended
_PAUSE = 0.05  # seconds


@dataclass(frozen=True, slots=True)
class Printed:
    """Holds what a run printed: the first lines in `head`, a digest of all that follows in `rest`, if anything does."""

    head: bytes = b""
    rest: bytes = b""

    @property
    def lines(self) -> list[bytes]:
        """Returns the lines that are kept."""
        return self.head.split(b"\n")


NOTHING = Printed()


class _Reader:
    """Reads a pipe in a thread until the run has ended and the pipe is empty. A process that the program left behind
    may keep the pipe open."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._head = descriptor, bytearray()
        self._rest: blake2b | None = None
        self._has_ended = threading.Event()
        self._thread = threading.Thread(target=self._read, name="tensorlens-output", daemon=True)
        self._thread.start()

    def end(self) -> Printed:
        """Reads what is left. To be called when the run has ended."""
        self._has_ended.set()
        self._thread.join()
        if self._rest is None:
            return Printed(bytes(self._head))
        whole, _, cut = bytes(self._head).rpartition(b"\n")
        self._rest.update(len(cut).to_bytes(8, "little") + cut)
        return Printed(whole, self._rest.digest())

    def _read(self) -> None:
        left = _LEFT
        while left > 0:
            has_ended = self._has_ended.is_set()
            if select.select([self._descriptor], [], [], 0 if has_ended else _PAUSE)[0]:
                data = os.read(self._descriptor, _CHUNK)
                if not data:
                    return
                self._keep(data)
                left -= len(data) if has_ended else 0
            elif has_ended:
                return

    def _keep(self, data: bytes) -> None:
        room = MOST_KEPT - len(self._head)
        self._head += data[:room]
        if len(data) > room:
            self._rest = self._rest or blake2b(digest_size=16)
            self._rest.update(data[room:])


class Capture:
    """Takes what a run prints: the run writes to `descriptor`. `printed` is known when the capture has ended."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.printed = NOTHING


@contextmanager
def captured_output() -> Iterator[Capture]:
    """Yields the capture of one run, which ends with the block."""
    source, sink = os.pipe()
    reader, capture = _Reader(source), Capture(sink)
    try:
        yield capture
    finally:
        os.close(sink)
        capture.printed = reader.end()
        os.close(source)
