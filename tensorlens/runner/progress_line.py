"""The live line of a long run: on the last row of the terminal, which the program's own output then leaves free.

The program writes to the terminal by itself, so nothing may be written where its cursor is. The terminal is told to
scroll its other rows only, and the cursor is put back each time that the last one was written. A program that takes
the terminal over (an editor, a password prompt) is left alone. When the command is killed, the process that it watches
gives the row back (`tracer.sink`).
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

try:
    import termios
except ImportError:  # not on Windows: no line there
    termios = None  # type: ignore[assignment]

AFTER = 2.0  # seconds
EVERY = 0.5  # seconds between two looks
_ROWS = 8  # a terminal with fewer has none to spare

_SAVE, _RESTORE = "\x1b7", "\x1b8"
_DOWN, _UP = "\x1bD", "\x1b[A"  # both keep the column; down scrolls on the last row
_SCROLL_ALL = "\x1b[r"
_PLAIN_EMPTY_LINE = "\x1b[m\x1b[2K"


def can_show(descriptor: int) -> bool:
    """Whether a descriptor is a terminal that knows these sequences."""
    return termios is not None and os.isatty(descriptor) and os.environ.get("TERM", "dumb") != "dumb"


class ProgressLine:
    """Shows how far a program has come; the clock starts with the first call of `show`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._started: float | None = None
        self._next = AFTER
        self._size = (0, 0)  # columns and rows of the terminal while the line is there
        self._modes = self._read_modes()

    def show(self, ops: int) -> None:
        """Show the line, if it is time and the terminal is free."""
        now = time.monotonic()
        if self._started is None:
            self._started = now
        seconds = now - self._started
        if seconds < self._next:
            return
        self._next = seconds + EVERY
        if not self._is_free():
            self.remove()
            return
        with suppress(OSError):  # the terminal is gone since
            self._draw(f"tensorlens: {ops:,} ops, {seconds:.0f} s")

    def remove(self) -> None:
        """Give the last row back, empty."""
        if self._size[1]:
            erased = f"\x1b[{self._size[1]}H{_PLAIN_EMPTY_LINE}"
            self._write(f"{_SAVE}{_SCROLL_ALL}{erased}{_RESTORE}")
            self._size = (0, 0)

    def _draw(self, text: str) -> None:
        columns, rows = os.get_terminal_size(self._descriptor)
        if (columns, rows) != self._size:
            self.remove()
        if rows < _ROWS:
            return
        reserved = "" if self._size[1] else f"{_DOWN}{_SAVE}\x1b[1;{rows - 1}r{_RESTORE}{_UP}"
        self._size = (columns, rows)
        self._write(f"{reserved}{_SAVE}\x1b[{rows}H{_PLAIN_EMPTY_LINE}{text[: columns - 1]}{_RESTORE}")

    def _is_free(self) -> bool:
        """Whether the terminal is in the state in which it was found, and this process in its foreground."""
        try:
            return self._read_modes() == self._modes and os.tcgetpgrp(self._descriptor) == os.getpgrp()
        except OSError:
            return False

    def _read_modes(self) -> object:
        try:
            return termios.tcgetattr(self._descriptor)[:4]
        except termios.error:
            return None

    def _write(self, text: str) -> None:
        try:
            os.write(self._descriptor, text.encode())
        except OSError:  # the terminal is gone
            self._size = (0, 0)
