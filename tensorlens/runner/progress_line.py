"""Draws the progress of a long run on the last row of the terminal.

The script writes to the terminal at the same time, so the line must not appear at its cursor. Rich's `Live` can't share
the terminal with it: it redraws from where it left the cursor, and here another process moves the cursor. The terminal
is set to scroll only the other rows, and each update puts the cursor back. While a program has taken over the terminal
(an editor, a password prompt), nothing is drawn. If the command is killed, the script's own process makes the terminal
scroll its last row again (`tracer.recording.journal_writer`).
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

try:
    import termios
except ImportError:  # on Windows there is no progress line
    termios = None  # type: ignore[assignment]

AFTER = 2.0  # seconds until the line is shown
EVERY = 0.5  # seconds between two updates
_LEAST_ROWS = 8  # a smaller terminal has no row to spare

_SAVE, _RESTORE = "\x1b7", "\x1b8"
_DOWN, _UP = "\x1bD", "\x1b[A"  # both keep the column; down scrolls on the last row
_SCROLL_ALL = "\x1b[r"
_PLAIN_EMPTY_LINE = "\x1b[m\x1b[2K"


def can_show(descriptor: int) -> bool:
    """Returns whether a descriptor is a terminal that understands these escape sequences."""
    return termios is not None and os.isatty(descriptor) and os.environ.get("TERM", "dumb") != "dumb"


class ProgressLine:
    """The number of recorded ops and the seconds since the first call of `show`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._started: float | None = None
        self._next = AFTER
        self._shown_size = (0, 0)  # columns and rows of the terminal while the line is shown
        self._modes = self._read_modes()

    def show(self, ops: int) -> None:
        """Updates the line, if an update is due and the terminal is free."""
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
        with suppress(OSError):  # the terminal is gone
            self._draw(f"tensorlens: {ops:,} ops, {seconds:.0f} s")

    def remove(self) -> None:
        """Clears the last row and lets the terminal scroll it again."""
        if self._shown_size[1]:
            erased = f"\x1b[{self._shown_size[1]}H{_PLAIN_EMPTY_LINE}"
            self._write(f"{_SAVE}{_SCROLL_ALL}{erased}{_RESTORE}")
            self._shown_size = (0, 0)

    def _draw(self, text: str) -> None:
        columns, rows = os.get_terminal_size(self._descriptor)
        if (columns, rows) != self._shown_size:
            self.remove()
        if rows < _LEAST_ROWS:
            return
        reserved = "" if self._shown_size[1] else f"{_DOWN}{_SAVE}\x1b[1;{rows - 1}r{_RESTORE}{_UP}"
        self._shown_size = (columns, rows)
        self._write(f"{reserved}{_SAVE}\x1b[{rows}H{_PLAIN_EMPTY_LINE}{text[: columns - 1]}{_RESTORE}")

    def _is_free(self) -> bool:
        """Returns whether the terminal's modes are those of the start, and this process is in the foreground."""
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
            self._shown_size = (0, 0)
