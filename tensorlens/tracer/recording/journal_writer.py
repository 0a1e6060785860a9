"""Writes rows out of the traced process while it runs, so that a killed process loses few of them."""

from __future__ import annotations

import _thread
import errno
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tensorlens.journal import overflow
from tensorlens.journal.batches import pack
from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.journal.rows import NONE, GapRow

INTERVAL = 0.2  # seconds
_SCROLL_ALL = b"\x1b7\x1b[r\x1b8"  # makes every row of the terminal scroll again and leaves the cursor in its place
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class JournalWriter:
    """Writes the rows to a file descriptor: from a thread of its own now and then, and on `flush`.

    The program does not see the thread: `threading` does not know it, and it sleeps on a lock.
    """

    def __init__(
        self, rows: RowBuffer, descriptor: int, live: bool = False, spare: Sequence[int] | None = None
    ) -> None:
        self._rows = rows
        self._reader_pid = os.getppid()
        self._live = live  # whether the reader shows its progress line on our standard error
        self._descriptor: int | None = descriptor
        self._file = _file_behind(descriptor)
        self._spare = spare  # both ends of a pipe to use when the disk is full, so that the program is not killed
        self._overflows = False
        for number in (descriptor, *(spare or ())):
            os.set_inheritable(number, False)
        self._unwritten = memoryview(b"")
        self._written = 0  # bytes
        self._writing = _thread.RLock()
        self._stop = _thread.allocate_lock()
        self._stop.acquire()
        _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        while not self._stop.acquire(timeout=INTERVAL):
            if os.getppid() != self._reader_pid:
                self._go_on_alone()
            self.flush()

    def _go_on_alone(self) -> None:
        """Stops writing: the reader was killed. Repairs the terminal, at which the program goes on."""
        self._reader_pid = os.getppid()
        with self._writing:
            self._descriptor = None
            if self._live:
                with suppress(OSError):
                    os.write(2, _SCROLL_ALL)

    def flush(self) -> None:
        """Writes out what has been recorded so far."""
        with self._writing:
            self._write()
            self._rows.settle()
            count = len(self._rows)
            if self._descriptor is None:
                self._rows[:count] = ()  # in one step, here and below: no signal handler in between
            elif count:
                data = memoryview(_packed(self._rows[:count]))
                self._unwritten, self._rows[:count] = data, ()
                self._write()

    def _write(self) -> None:
        """Writes the packed bytes at their own position in the file.

        Ctrl-C may interrupt between any two calls, and a signal handler may end the process, which flushes again. A
        write is then repeated at the same position, and nothing is lost.
        """
        try:
            while self._unwritten and self._descriptor is not None:
                if _file_behind(self._descriptor) != self._file:
                    raise OSError("the program closed it and opened a file of its own under its number")
                size = self._put(self._descriptor)
                self._written, self._unwritten = self._written + size, self._unwritten[size:]
        except OSError as error:
            self._descriptor = None  # the program closed every descriptor, perhaps
            if error.errno in _FULL and self._spare is not None and not self._overflows:
                self._overflow(self._spare[1])

    def _put(self, descriptor: int) -> int:
        """Writes some of the packed bytes; returns how many."""
        if self._overflows:
            return overflow.send(descriptor, self._written, self._unwritten)
        end = self._written + len(self._unwritten)
        os.lseek(descriptor, end, os.SEEK_SET)  # what others write there, even now, goes after it
        return os.pwrite(descriptor, self._unwritten, self._written)

    def _overflow(self, descriptor: int) -> None:
        """Continues in the pipe: the disk is full, or the program may write no more to files."""
        try:
            self._file = _file_behind(descriptor)
        except OSError:  # the program closed it
            return
        self._descriptor, self._overflows = descriptor, True
        self._write()

    def abandon(self) -> None:
        """Writes nothing any more, in a forked child. The thread does not exist there, and its lock may be locked."""
        self._writing = _thread.RLock()
        self._descriptor = None
        self._rows.settle()
        self._rows.clear()

    def close(self) -> None:
        self.flush()
        if self._stop.locked():
            self._stop.release()


def _file_behind(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _packed(rows: list[Any]) -> bytes:
    """Returns the rows as bytes. Turns other objects (a symbolic size, a subclass of str) into plain ones."""
    try:
        return pack(rows)
    except ValueError:
        pass
    try:
        return pack([_plain(item) for item in rows])
    except Exception as error:  # ours: report that these rows are missing
        lost = RowBuffer()
        lost.write(GapRow, f"some of the run could not be written down ({type(error).__name__})", None)
        return pack(lost[:])


def _plain(item: object) -> object:
    if item is None or type(item) in (int, str, bool, float, bytes):
        return item
    if isinstance(item, tuple | list):
        return tuple(_plain(part) for part in item)
    if isinstance(item, str):
        return str.__str__(item)[:]
    return int(item) if isinstance(item, int) else NONE
