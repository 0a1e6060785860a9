"""Decides which runs of a line are looked at, so that a long run costs little."""

from __future__ import annotations

from types import FrameType

_MOST_LINES = 1_000
_ALWAYS = 4  # runs of a line


class RareLooks:
    """Counts the runs of lines: the first ones are looked at, then the 8th, the 16th and so on."""

    def __init__(self) -> None:
        self._runs: dict[tuple[object, int], int] = {}

    def is_due(self, frame: FrameType) -> bool:
        """Counts a run of the line of a frame. Returns whether it is one to look at."""
        line = frame.f_code, frame.f_lasti
        if len(self._runs) >= _MOST_LINES and line not in self._runs:
            return False
        runs = self._runs[line] = self._runs.get(line, 0) + 1
        return runs <= _ALWAYS or not runs & (runs - 1)
