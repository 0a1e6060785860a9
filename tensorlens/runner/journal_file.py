"""Makes the temporary file that the script's process writes its journal to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tensorlens.errors import UsageError
from tensorlens.journal.overflow import pipe


@dataclass(frozen=True, slots=True)
class JournalFile:
    """The file of a journal: the child writes to `descriptor`, and to `pipe` when the disk is full; `stream` reads."""

    descriptor: int
    stream: IO[bytes]
    pipe: tuple[int, int]


@contextmanager
def journal_file() -> Iterator[JournalFile]:
    """Makes a file that only the two processes can reach and that vanishes with them.

    The stream has no buffer: the script may overwrite its own journal, and a buffer would hide that.
    """
    descriptor, path = _new_file()
    with ExitStack() as stack:
        stack.enter_context(os.fdopen(descriptor, "wb"))
        stream = stack.enter_context(open(path, "rb", buffering=0))
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
