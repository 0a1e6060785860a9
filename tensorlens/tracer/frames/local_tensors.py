"""Looks up which tensors the names of a running function hold, so that no name has to be guessed.

The value of a line that calls a module, a loader or other library code is made by torch calls far below it. Which of
them made what `x, y = ...` stores can't be told from the calls; the frame knows it, once the names are stored. Each
line is looked at once: when control first comes to another line of the same function.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

import torch

from tensorlens.journal.rows import NONE, NOTICED
from tensorlens.tracer.frames.assignment_targets import STARRED
from tensorlens.tracer.frames.bytecode import loads_any_of

MAX_ITEMS = 16
MAX_AWAITED = 200  # names of one function
_OPTIMIZED = 1  # the flag of code whose names are not a dictionary
_HOLDERS = 4  # references to a dictionary of names that only its frame and `names_in` and its caller hold
_READERS = frozenset("locals vars dir eval exec".split())
_ATTRIBUTES = frozenset("f_locals currentframe _getframe getargvalues".split())
_MISSING = object()


class LocalTensors:
    """The names that values went to and that were not looked up yet. `number_of` is `Identity.of`."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows
        self._awaited: dict[CodeType, dict[str, tuple[int, int]]] = {}  # name -> site, frame
        self.number_of: Callable[[Any], int | None] = lambda tensor: None

    def come_to(self, frame: FrameType, inner: CodeType | None, site: int, targets: tuple[str, ...]) -> None:
        """Control came to a site for the first time. `inner`: what the frame called, where that is Python code."""
        awaited = self._awaited.get(frame.f_code)
        if awaited:
            self._look(frame, awaited)
        if inner is None or not targets:
            return
        if inner.co_name == "__init__":  # an object is being made: what it holds is not the value
            self._rows.append((NOTICED, "sighted", site, targets, (NONE,) * len(targets)))
        elif len(targets) < MAX_AWAITED:
            mine = self._awaited.setdefault(frame.f_code, {})
            mine.update(dict.fromkeys(targets, (site, id(frame))))

    def _look(self, frame: FrameType, awaited: dict[str, tuple[int, int]]) -> None:
        wanted = {name: site for name, (site, owner) in awaited.items() if owner == id(frame)}
        if not wanted:
            return
        found: dict[int, list[tuple[str, int]]] = {}
        for name, value in _values(frame, tuple(wanted)):
            number = self.number_of(value) if issubclass(type(value), torch.Tensor) else None
            found.setdefault(wanted[name.partition("\0")[0]], []).append(
                (name.replace("\0", "").removeprefix(STARRED), NONE if number is None else number)
            )
        for name in wanted:
            del awaited[name]
        for site, pairs in found.items():
            names, numbers = zip(*pairs, strict=True)
            self._rows.append((NOTICED, "sighted", site, names, numbers))


def _values(frame: FrameType, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """What the names hold in a frame that runs; the items of a list one by one, as `*rest`, NUL, `[0]`.
    Names of no value are left out."""
    with names_in(frame) as space:
        for name in names if space is not None else ():
            value = _value(space, frame.f_globals, name.removeprefix(STARRED))
            if type(value) in (list, tuple):
                yield from ((f"{name}\0[{position}]", item) for position, item in enumerate(value[:MAX_ITEMS]))
            elif type(value) is dict:
                keys = [key for key in list(value)[:MAX_ITEMS] if type(key) is str]
                yield from ((f"{name}\0[{key!r}]", value[key]) for key in keys)
            if value is not _MISSING and not name.startswith(STARRED):
                yield name, value


def names_of(frame: FrameType) -> list[tuple[str, Any]]:
    """The names of a frame that runs, with what they hold."""
    with names_in(frame) as space:
        return [] if space is None else list(space.items())


@contextmanager
def names_in(frame: FrameType) -> Iterator[Any]:
    """The names of a frame that runs, as a mapping; None where to ask for them would change what the program sees.

    Before Python 3.13 the names of a function are copied to a dictionary that the frame keeps. It is emptied again, or
    it would keep alive what the names hold now; where the program asks for its own names itself, it is left alone.
    """
    code = frame.f_code
    snapshot = bool(code.co_flags & _OPTIMIZED) and sys.version_info < (3, 13)
    if snapshot and _reads_own_names(code):
        yield None
        return
    space: Any = frame.f_locals
    try:
        yield space if type(space) is dict or not snapshot else None
    finally:
        if snapshot and sys.getrefcount(space) <= _HOLDERS:
            space.clear()


@lru_cache(maxsize=256)
def _reads_own_names(code: CodeType) -> bool:
    """Whether a function asks for its names by itself: `model.eval()` is not `eval()`."""
    if not _ATTRIBUTES.isdisjoint(code.co_names):
        return True
    return not _READERS.isdisjoint(code.co_names) and loads_any_of(code, _READERS)


def _value(space: Any, outer: dict[str, Any], name: str) -> Any:
    """What `x`, `self.x` or `xs[0]` holds, without running a line of the program's code."""
    root, _, attribute = name.partition(".")
    container, _, index = root.partition("[")
    value = space.get(container, outer.get(container, _MISSING))
    if index and not attribute:
        return _item(value, index.removesuffix("]"), space)
    if not attribute or index:
        return _MISSING if attribute else value
    try:
        held = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return _MISSING
    tables = [held, held.get("_buffers"), held.get("_parameters")] if type(held) is dict else []
    return next((table[attribute] for table in tables if type(table) is dict and attribute in table), _MISSING)


def _item(container: Any, index: str, space: Any) -> Any:
    key = space.get(index, _MISSING)
    if key is _MISSING:
        key = int(index) if index.lstrip("-").isdigit() else index.strip("'\"")
    if type(container) is list and type(key) is int and -len(container) <= key < len(container):
        return container[key]
    return container.get(key, _MISSING) if type(container) is dict and type(key) in (int, str) else _MISSING
