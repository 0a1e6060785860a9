"""Gives a script the same standard input in both of its runs (`--reference`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeatable_stdin(is_script: bool) -> Iterator[Callable[[], int | None]]:
    """Yields a function that rewinds standard input for the second run and returns what to pass to the child.

    A file is read again. A pipe or a terminal is empty in the second run, unless the script itself came through it
    (`is_script`): then it is copied to a file first.
    """
    with tempfile.TemporaryFile() as copy:
        try:
            descriptor = sys.stdin.fileno()
            if is_script and not os.isatty(descriptor):
                with open(descriptor, "rb", closefd=False) as stdin:
                    shutil.copyfileobj(stdin, copy)
                copy.seek(0)
                os.dup2(copy.fileno(), descriptor)
            start = os.lseek(descriptor, 0, os.SEEK_CUR)
        except (OSError, ValueError, AttributeError):
            yield lambda: subprocess.DEVNULL
            return

        def rewind() -> None:
            os.lseek(descriptor, start, os.SEEK_SET)

        yield rewind
