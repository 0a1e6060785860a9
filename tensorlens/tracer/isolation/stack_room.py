"""Makes room on Python's stack for backward passes that run inside each other.

The lens has frames between those of the program in each pass. They must not bring a RecursionError nearer.
"""

from __future__ import annotations

import sys
import threading
from contextlib import suppress

FRAMES = 12  # of the lens and of the mode, in each pass


class StackRoom:
    """Raises the recursion limit while passes are nested, by the frames that the lens needs. Enter it for each pass.

    It is no generator: Python drops what a signal handler raises while a generator is closed.
    """

    def __init__(self) -> None:
        self._thread = _Depth()
        self._running = 0
        self._limit = 0  # the limit that was set here
        self._added = 0

    def __enter__(self) -> None:
        nested = self._thread.passes
        if nested * FRAMES > self._added and (not self._added or sys.getrecursionlimit() == self._limit):
            self._set(sys.getrecursionlimit() - self._added, nested * FRAMES)
        self._thread.passes += 1
        self._running += 1

    def __exit__(self, *error: object) -> None:
        self._thread.passes -= 1
        self._running -= 1
        if not self._running and self._added:
            if sys.getrecursionlimit() == self._limit:  # the program may have set its own
                self._set(self._limit - self._added, 0)
            else:
                self._added = 0

    def _set(self, limit: int, added: int) -> None:
        with suppress(RecursionError):  # below the current depth: the end of the next pass tries again
            sys.setrecursionlimit(limit + added)
            self._limit, self._added = limit + added, added


class _Depth(threading.local):
    """Counts the passes that run inside each other in a thread. The engine continues in another thread at times."""

    passes = 0


def is_short() -> bool:
    """Returns whether little of the stack is left."""
    try:
        sys._getframe(sys.getrecursionlimit() * 2 // 3)
    except ValueError:
        return False
    return True
