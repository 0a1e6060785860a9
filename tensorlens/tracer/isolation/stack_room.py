"""Room on Python's stack for backward passes that run inside each other: each has frames of ours between those of the
program, which must not bring a RecursionError nearer.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FRAMES = 12  # of ours and of torch's mode, in each pass


class StackRoom:
    """Raises the recursion limit while passes are nested, as far as the frames in between need it."""

    def __init__(self) -> None:
        self._thread = _Depth()
        self._running = 0
        self._limit = 0  # the limit as we set it
        self._added = 0

    @contextmanager
    def for_pass(self) -> Iterator[None]:
        """Keep room while one more pass runs."""
        nested = self._thread.passes
        self._thread.passes += 1
        self._running += 1
        if nested * FRAMES > self._added and (not self._added or sys.getrecursionlimit() == self._limit):
            self._set(sys.getrecursionlimit() - self._added, nested * FRAMES)
        try:
            yield
        finally:
            self._thread.passes -= 1
            self._running -= 1
            if not self._running and self._added:
                if sys.getrecursionlimit() == self._limit:  # the program may have set its own
                    self._set(self._limit - self._added, 0)
                else:
                    self._added = 0

    def _set(self, limit: int, added: int) -> None:
        with suppress(RecursionError):  # lower than where the stack is now: the next pass that ends tries again
            sys.setrecursionlimit(limit + added)
            self._limit, self._added = limit + added, added


class _Depth(threading.local):
    """How many passes run inside each other in a thread; the engine goes on in another one now and then."""

    passes = 0


def is_short() -> bool:
    """Whether little is left of the stack."""
    try:
        sys._getframe(sys.getrecursionlimit() * 2 // 3)
    except ValueError:
        return False
    return True
