"""Makes room on Python's stack for the frames of the lens: they must not bring a RecursionError nearer.

While a run is recorded, the recursion limit is higher by the frames that a single call needs, and by more while the
program runs inside functions of the lens that run inside each other. The program sees and sets its own limit.
"""

from __future__ import annotations

import functools
import operator
import re
import sys
import threading
from _thread import RLock, get_ident
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FRAMES = 12  # of the lens and of the mode, at most, around each function that it runs
OUTERMOST = 2 * FRAMES  # the limit moves only if more functions of the lens run inside each other
SPARE = 20  # for these, for frames below the program's first, and for what runs between two functions of the program
_STEP = 20 * FRAMES
_HIGHEST = 2**31 - 1
_BELOW = 5  # frames of the lens, at most, on the stack while `setrecursionlimit` runs
_limit, _set_limit = sys.getrecursionlimit, sys.setrecursionlimit


class StackRoom:
    """Raises the recursion limit while functions of the lens run inside each other. Enter it around each of them.

    It is no generator: Python drops what a signal handler raises while a generator is closed.
    """

    def __init__(self) -> None:
        self._thread = _Frames()
        self._recordings = 0
        self._added = 0  # to the limit of the program
        self._deep: set[int] = set()  # threads that need more than `SPARE`
        self._needed = OUTERMOST  # frames for which there is room
        self._changing = RLock()

    def __enter__(self) -> None:
        thread = self._thread
        frames = thread.number + FRAMES
        thread.number = frames
        if frames > self._needed:
            with self._changing:
                self._deep.add(get_ident())
                self._adapt(max(self._needed, frames + _STEP))

    def __exit__(self, *error: object) -> None:
        thread = self._thread
        thread.number -= FRAMES
        if not thread.number and self._needed > OUTERMOST:
            with self._changing:
                self._deep.discard(get_ident())
                if not self._deep:
                    self._adapt(OUTERMOST)

    @contextmanager
    def of_recording(self) -> Iterator[None]:
        """Makes room while a run is recorded, and hides it from the program."""
        before = sys.getrecursionlimit, sys.setrecursionlimit
        with self._changing:
            self._recordings += 1
            self._adapt(self._needed)
        sys.getrecursionlimit, sys.setrecursionlimit = getrecursionlimit, setrecursionlimit
        try:
            yield
        finally:
            sys.getrecursionlimit, sys.setrecursionlimit = before
            with self._changing:
                self._recordings -= 1
                self._adapt(self._needed)

    def after_fork(self) -> None:
        """Makes a new lock in a forked child: a thread that is not there may have held the old one."""
        self._changing = RLock()

    def own_limit(self) -> int:
        """Returns the limit of the program."""
        return _limit() - self._added

    def change(self, limit: int) -> None:
        """Sets the limit of the program."""
        if not 0 < limit <= _HIGHEST:
            _set_limit(limit)  # it raises
        text = ""
        with self._changing:
            try:
                _set_limit(min(limit + _BELOW, _HIGHEST))
                self._set(limit)
            except RecursionError as error:  # its message names the limit and the depth
                text = re.sub(r"\d+", lambda number: str(int(number[0]) - _BELOW), str(error))
        if text:
            raise RecursionError(text)

    def _adapt(self, needed: int) -> None:
        """Makes room for so many frames."""
        self._needed = needed
        with suppress(RecursionError):  # below the current depth: the next change tries again
            self._set(_limit() - self._added)

    def _set(self, own: int) -> None:
        """Sets the limit: the program's own, and what the lens needs."""
        added = SPARE + self._needed - OUTERMOST if self._recordings else 0
        limit = min(own + added, _HIGHEST)
        _set_limit(limit)
        self._added = limit - own


class _Frames(threading.local):
    """Counts the frames of the lens in a thread. The engine continues in another thread at times."""

    number = 0


ROOM = StackRoom()


def getrecursionlimit() -> int:
    """Replaces the function of `sys`. TorchDynamo takes functions only."""
    return ROOM.own_limit()


def setrecursionlimit(limit: int, /) -> None:
    """Replaces the function of `sys`."""
    ROOM.change(operator.index(limit))


for _each in (getrecursionlimit, setrecursionlimit):
    functools.update_wrapper(_each, getattr(sys, _each.__name__), updated=())


def is_short() -> bool:
    """Returns whether little of the stack is left."""
    try:
        sys._getframe(_limit() * 2 // 3)
    except ValueError:
        return False
    return True
