"""Writes rows out of the traced process while it runs, so that a killed process loses few of them."""

from __future__ import annotations

import _thread
import ctypes
import errno
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from tensorlens.journal import overflow
from tensorlens.journal.batches import pack
from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.journal.rows import NONE, GapRow

INTERVAL = 0.2  # seconds
FEW_UNREAD = 8 << 20  # bytes: the journal is not compressed while the reader has so little left to read
_MOMENT = 0.1  # seconds
_EARLY = 8  # calls of `flush_if_due`
_MOST_WAITING = 1.0  # seconds for the thread to end
FAR_BEHIND = 64 << 20  # bytes: the program is slowed down while the reader has so much left to read
_PROGRESS = 1 << 16  # bytes that a reader releases, at least: the file system may count some blocks more or less
LONGEST_PAUSE = 0.5  # seconds
_SCROLL_ALL = b"\x1b7\x1b[r\x1b8"  # makes every row of the terminal scroll again and leaves the cursor in its place
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


class JournalWriter:
    """Writes the rows to a file descriptor: from a thread of its own now and then, and on `flush`.

    The program does not see the thread: `threading` does not know it, and it sleeps on a lock.
    """

    def __init__(
        self,
        rows: RowBuffer,
        descriptor: int,
        live: bool = False,
        spare: Sequence[int] | None = None,
        reader: int | None = None,
    ) -> None:
        self._rows = rows
        self._reader_pid = os.getppid() if reader is None else reader  # of the process that reads the journal
        self._is_readers_child = reader is None
        self._live = live  # whether the reader shows its progress line on our standard error
        self._descriptor: int | None = descriptor
        self._file = _file_behind(descriptor)
        self._spare = spare  # both ends of a pipe to use when the disk is full, so that the program is not killed
        self._overflows = False
        for number in (descriptor, *(spare or ())):
            os.set_inheritable(number, False)
        self._unwritten = memoryview(b"")
        self._flushed, self._asked = 0.0, 0  # the time of the last flush, and calls of `flush_if_due`
        self._written = 0  # bytes
        self._released = 0  # bytes that the reader had read and released at the last look
        self._unread = 0  # bytes that it had not released then
        self._writing = _thread.RLock()
        self._forks: int | None = 0  # being made now, each in a thread of the program; None: no thread starts again
        self._later = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(self._start_later)
        self._stop = _thread.allocate_lock()
        self._start()

    def _start_later(self, _: object) -> int:
        """Starts the thread unless it runs, when no fork is being made. Returns 0, as Python asks of such a call."""
        if self._forks:
            ctypes.pythonapi.Py_AddPendingCall(self._later, None)
        elif self._forks is not None and not self._stop.locked():
            self._start()
        return 0

    def _start(self) -> None:
        self._stop, self._ended = _thread.allocate_lock(), _thread.allocate_lock()
        self._stop.acquire()
        self._ended.acquire()
        _thread.start_new_thread(self._run, (self._stop, self._ended))

    def _run(self, stop: _thread.LockType, ended: _thread.LockType) -> None:
        self._number = _thread.get_native_id()
        while not stop.acquire(timeout=INTERVAL):
            if self._reader_is_gone():
                self._go_on_alone()
            self.flush()
            self._wait_for_reader()
        stop.release()
        ended.release()

    def _reader_is_gone(self) -> bool:
        if self._is_readers_child:
            return os.getppid() != self._reader_pid
        try:
            os.kill(self._reader_pid, 0)
        except ProcessLookupError:
            return self._descriptor is not None
        except OSError:  # another user's
            pass
        return False

    def _go_on_alone(self) -> None:
        """Stops writing: the reader was killed. Repairs the terminal, at which the program goes on."""
        if self._is_readers_child:
            self._reader_pid = os.getppid()
        with self._writing:
            self._descriptor = None
            if self._live:
                with suppress(OSError):
                    os.write(2, _SCROLL_ALL)

    def flush_if_due(self) -> None:
        """Writes out what has been recorded so far: the first few times always, later not if it was done a moment
        ago."""
        self._asked += 1
        if self._asked <= _EARLY or time.monotonic() - self._flushed > _MOMENT:
            self.flush()

    def flush(self) -> None:
        """Writes out what has been recorded so far."""
        with self._writing:
            self._flushed = time.monotonic()
            self._write()
            self._rows.settle()
            count = len(self._rows)
            if self._descriptor is None:
                self._rows[:count] = ()  # in one step, here and below: no signal handler in between
            elif count:
                compressed = self._overflows or self._unread > FEW_UNREAD
                data = memoryview(_packed(self._rows[:count], compressed))
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

    def pause(self) -> None:
        """Ends the thread before a fork: Python warns of a fork while other threads run."""
        if self._forks is None:
            return
        self._forks += 1
        if self._stop.locked():
            self._stop.release()
        if self._ended.acquire(timeout=_MOST_WAITING):
            self._ended.release()
            latest = time.monotonic() + _MOST_WAITING
            while os.path.exists(f"/proc/self/task/{self._number}") and time.monotonic() < latest:
                time.sleep(0.0001)

    def resume(self) -> None:
        """Starts the thread again after a fork. Python 3.13 counts threads after this, and before any other code runs.

        So the start is a pending call of Python's: it runs as soon as the program does.
        """
        if self._forks is not None:
            ctypes.pythonapi.Py_AddPendingCall(self._later, None)
            self._forks -= 1  # the last instruction: from here on, the pending call may start it

    def _wait_for_reader(self) -> None:
        """Stops the program for a moment if the reader is far behind, so that the journal stays small.

        The reader releases what it has read. One that has released nothing since the last look is not waited for: it is
        stopped, or the file system can't release a part of a file.
        """
        if self._descriptor is None or self._overflows:
            return
        try:
            unread = os.fstat(self._descriptor).st_blocks * 512
        except OSError:
            return
        released, before = self._written - unread, self._released
        self._unread, self._released = unread, released
        if unread >= FAR_BEHIND and released - before >= _PROGRESS:
            pause(min(LONGEST_PAUSE, INTERVAL * unread / FAR_BEHIND))

    def abandon(self) -> None:
        """Writes nothing any more, in a forked child. The thread does not exist there, and its lock may be locked."""
        self._forks = None
        self._writing = _thread.RLock()
        self._descriptor = None
        self._rows.settle()
        self._rows.clear()

    def close(self) -> None:
        self._forks = None
        self.flush()
        if self._stop.locked():
            self._stop.release()


def pause(seconds: float) -> None:
    """Sleeps without letting other threads run Python code."""
    import ctypes  # torch has imported it

    ctypes.PyDLL(None).usleep(int(seconds * 1e6))


def _file_behind(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _packed(rows: list[Any], compressed: bool) -> bytes:
    """Returns the rows as bytes. Turns other objects (a symbolic size, a subclass of str) into plain ones."""
    try:
        return pack(rows, compressed)
    except ValueError:
        pass
    try:
        return pack([_plain(item) for item in rows], compressed)
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
