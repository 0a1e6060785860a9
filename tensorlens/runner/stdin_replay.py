"""Standard input for a program that is run twice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeatable_stdin(is_program: bool) -> Iterator[Callable[[], int | None]]:
    """Yields what makes standard input ready for the second run and says what it gets. A file is read again; a pipe
    or a terminal has nothing a second time, unless the program itself comes through it."""
    with tempfile.TemporaryFile() as kept:
        try:
            descriptor = sys.stdin.fileno()
            if is_program and not os.isatty(descriptor):
                with open(descriptor, "rb", closefd=False) as stdin:
                    shutil.copyfileobj(stdin, kept)
                kept.seek(0)
                os.dup2(kept.fileno(), descriptor)
            start = os.lseek(descriptor, 0, os.SEEK_CUR)
        except (OSError, ValueError, AttributeError):
            yield lambda: subprocess.DEVNULL
            return

        def rewind() -> None:
            os.lseek(descriptor, start, os.SEEK_SET)

        yield rewind
