"""Reads the positions and the bytes of code objects, also of large ones: a file with 100,000 lines is one of them.

Python gives the positions of all instructions, from the first on, and copies all bytes each time. New sites of one code
object mostly follow each other, so the reading goes on where it stopped.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import islice
from types import CodeType
from typing import Any, TypeVar

MOST = 16  # code objects whose reading goes on, of each thread
T = TypeVar("T")
RawPosition = tuple[int | None, int | None, int | None, int | None]


class _Cursor:
    """A place in the positions of one code object."""

    __slots__ = ("_following", "_next", "_position", "code", "kept", "raw")

    def __init__(self, code: CodeType) -> None:
        self.code = code  # held, so that no other code gets its id
        self.raw = code.co_code
        self.kept: dict[object, Any] = {}
        self._begin()

    def _begin(self) -> None:
        self._following: Iterator[RawPosition] = iter(self.code.co_positions())
        self._next = 0
        self._position: RawPosition | None = None

    def at(self, index: int) -> RawPosition | None:
        if index < self._next - 1:
            self._begin()
        if index >= self._next:
            self._position = next(islice(self._following, index - self._next, None), None)
            self._next = index + 1
        return self._position


class _Cursors(threading.local):
    def __init__(self) -> None:
        self.by_id: dict[int, _Cursor] = {}


_cursors = _Cursors()


def _cursor(code: CodeType) -> _Cursor:
    known = _cursors.by_id
    cursor = known.get(id(code))
    if cursor is None:
        while len(known) >= MOST:
            del known[next(iter(known))]
        cursor = known[id(code)] = _Cursor(code)
    return cursor


def raw_position(code: CodeType, offset: int) -> RawPosition | None:
    """Returns the position of the instruction at an offset, as `co_positions` has it; None if there is none."""
    return _cursor(code).at(offset // 2)


def raw_bytes(code: CodeType) -> bytes:
    """Returns `co_code`, which Python copies each time that it is read."""
    return _cursor(code).raw


def once(code: CodeType, make: Callable[[CodeType], T]) -> T:
    """Returns what a function makes of a code object. It is called again only if others have been read in between.

    It is no `lru_cache`: the hash of a large code object takes as long as reading it.
    """
    kept = _cursor(code).kept
    if make not in kept:
        kept[make] = make(code)
    result: T = kept[make]
    return result
