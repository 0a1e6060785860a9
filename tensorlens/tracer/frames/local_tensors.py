"""Reads which tensors the names of a running function refer to, so that no name has to be guessed.

The value of a line that calls a module, a loader or other library code is made by torch calls far below it. The calls
do not show which of them made what `x, y = ...` stores, but the frame does, once the names are stored. Each line is
read once: when the same function first reaches another line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from types import CodeType, FrameType
from typing import Any

import torch

from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.records.observations import BoundNames
from tensorlens.tracer.frames.assignment_targets import STARRED
from tensorlens.tracer.frames.bytecode import loads_any_of

MAX_ITEMS = 16
MAX_AWAITED = 200  # names of one function
_OPTIMIZED = 1  # flag of code whose names are not in a dictionary
_HOLDERS = 4  # references to a dictionary of names if only its frame, `names_in` and its caller have it
_READERS = frozenset("locals vars dir eval exec".split())
_ATTRIBUTES = frozenset("f_locals currentframe _getframe getargvalues".split())
_MISSING = object()


class LocalTensors:
    """Reads names some time after they received their value. `number_of` is `TensorIds.find`."""

    def __init__(self, rows: RowBuffer) -> None:
        self._rows = rows
        self._awaited: dict[int, tuple[CodeType, dict[str, tuple[int, int]]]] = {}
        """id of the code, since its hash is slow -> (the code, {name: (site, id of the frame)})"""
        self.number_of: Callable[[torch.Tensor], int | None] = lambda tensor: None

    def reach(self, frame: FrameType, inner: CodeType | None, site: int, targets: tuple[str, ...]) -> None:
        """Notes that the program reached a site for the first time. `inner` is the Python code that the line called."""
        code = frame.f_code
        awaited = self._awaited.get(id(code))
        if awaited is not None and awaited[1]:
            self._read(frame, awaited[1])
        if inner is None or not targets:
            return
        if inner.co_name == "__init__":  # an object is made: its attributes are not the value
            self._rows.write_fact(BoundNames, site, targets, (None,) * len(targets))
        elif len(targets) < MAX_AWAITED:
            names = self._awaited.setdefault(id(code), (code, {}))[1]
            names.update(dict.fromkeys(targets, (site, id(frame))))

    def _read(self, frame: FrameType, awaited: dict[str, tuple[int, int]]) -> None:
        wanted = {name: site for name, (site, owner) in awaited.items() if owner == id(frame)}
        if not wanted:
            return
        by_site: dict[int, list[tuple[str, int | None]]] = {}
        for name, value in _values(frame, tuple(wanted)):
            number = self.number_of(value) if issubclass(type(value), torch.Tensor) else None
            by_site.setdefault(wanted[name.partition("\0")[0]], []).append(
                (name.replace("\0", "").removeprefix(STARRED), number)
            )
        for name in wanted:
            del awaited[name]
        for site, pairs in by_site.items():
            names, numbers = zip(*pairs, strict=True)
            self._rows.write_fact(BoundNames, site, names, numbers)


def _values(frame: FrameType, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    """Finds (name, value) of the names in a running frame that have a value, and of items of lists and dicts.

    The name of an item is the name of its container, a NUL character, and `[0]`.
    """
    with names_in(frame) as space:
        for name in names if space is not None else ():
            value = _value(space, frame.f_globals, name.removeprefix(STARRED))
            if type(value) in (list, tuple):
                yield from ((f"{name}\0[{position}]", item) for position, item in enumerate(value[:MAX_ITEMS]))
            elif type(value) is dict:
                keys = [key for key in list(islice(value, MAX_ITEMS)) if type(key) is str]
                yield from ((f"{name}\0[{key!r}]", value[key]) for key in keys)
            if value is not _MISSING and not name.startswith(STARRED):
                yield name, value


def names_of(frame: FrameType) -> list[tuple[str, Any]]:
    """Returns the names of a running frame with their values."""
    with names_in(frame) as space:
        return [] if space is None else list(space.items())


@contextmanager
def names_in(frame: FrameType) -> Iterator[Any]:
    """Gives the names of a running frame as a mapping; None if reading them would change what the program sees.

    Before Python 3.13 the names of a function are copied to a dictionary that the frame keeps. It is emptied again, or
    it would keep the values alive. If the program reads its own names itself, the dictionary is left alone.
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
    """Returns whether a function reads its own names: `model.eval()` is not `eval()`."""
    if not _ATTRIBUTES.isdisjoint(code.co_names):
        return True
    return not _READERS.isdisjoint(code.co_names) and loads_any_of(code, _READERS)


def _value(space: Any, outer: dict[str, Any], name: str) -> Any:
    """Returns the value of `x`, `self.x` or `xs[0]`, without running user code."""
    root, _, attribute = name.partition(".")
    container, _, index = root.partition("[")
    value = space.get(container, outer.get(container, _MISSING))
    if index and not attribute:
        return _item(value, index.removesuffix("]"), space)
    if not attribute or index:
        return _MISSING if attribute else value
    try:
        state = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return _MISSING
    tables = [state, state.get("_buffers"), state.get("_parameters")] if type(state) is dict else []
    return next((table[attribute] for table in tables if type(table) is dict and attribute in table), _MISSING)


def _item(container: Any, index: str, space: Any) -> Any:
    key = space.get(index, _MISSING)
    if key is _MISSING:
        key = int(index) if index.lstrip("-").isdigit() else index.strip("'\"")
    if type(container) is list and type(key) is int and -len(container) <= key < len(container):
        return container[key]
    return container.get(key, _MISSING) if type(container) is dict and type(key) in (int, str) else _MISSING
