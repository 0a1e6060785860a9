"""Makes the temporary file that the script's process writes its journal to."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tensorlens.errors import UsageError
from tensorlens.journal.overflow import pipe

_PORTION = 1 << 20  # bytes that are released together
_BLOCK = 1 << 16  # a multiple of the blocks of file systems: a part of a block is not released
_KEEP_SIZE, _PUNCH_HOLE = 1, 2  # of Linux


class JournalStream(io.FileIO):
    """Reads the journal, and gives the disk back what was read. The file keeps its size, and each batch its place.

    It has no buffer: the script may overwrite its own journal, and a buffer would hide that.
    """

    def __init__(self, path: str) -> None:
        super().__init__(path, "r+b")
        self._released = 0
        self._can_release = True

    def release(self) -> None:
        """Releases what is before the position, if that is much. Does nothing where the file system can't."""
        size = self.tell() // _BLOCK * _BLOCK - self._released
        if size >= _PORTION and self._can_release:
            self._can_release = _punch_hole(self.fileno(), self._released, size)
            self._released += size


def _punch_hole(descriptor: int, offset: int, size: int) -> bool:
    """Frees the blocks of a part of a file. Returns whether the system can."""
    import ctypes  # only a long run needs it

    try:
        fallocate = ctypes.CDLL(None).fallocate
    except (OSError, AttributeError):
        return False
    fallocate.argtypes = ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64
    done: int = fallocate(descriptor, _KEEP_SIZE | _PUNCH_HOLE, offset, size)
    return done == 0


@dataclass(frozen=True, slots=True)
class JournalFile:
    """The file of a journal: the child writes to `descriptor`, and to `pipe` when the disk is full; `stream` reads."""

    descriptor: int
    stream: JournalStream
    pipe: tuple[int, int]


@contextmanager
def journal_file() -> Iterator[JournalFile]:
    """Makes a file that only the two processes can reach and that vanishes with them."""
    descriptor, path = _new_file()
    with ExitStack() as stack:
        stack.enter_context(os.fdopen(descriptor, "wb"))
        stream = stack.enter_context(JournalStream(path))
        if not path.startswith("/proc/"):
            Path(path).unlink()
        ends = pipe()
        for end in ends:
            stack.callback(os.close, end)
        yield JournalFile(descriptor, stream, ends)


def _new_file() -> tuple[int, str]:
    """Makes a file in the temporary folder, or in memory if that folder is full."""
    try:
        return tempfile.mkstemp(prefix="tensorlens-")
    except OSError as error:
        if not hasattr(os, "memfd_create"):
            raise UsageError(f"no temporary file can be made: {error.strerror or error}") from None
    descriptor = os.memfd_create("tensorlens")
    return descriptor, f"/proc/self/fd/{descriptor}"
