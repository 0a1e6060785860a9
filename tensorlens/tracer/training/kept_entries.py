"""Finds memories of a script whose entries hold one NumPy array at two places, and whether its values change later.

So it is if an environment returns the array that it changes in place: the state and the next state of each entry are
one array then, and have its last values.
"""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, islice
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any
from zlib import crc32

import torch

from tensorlens.records.training_arrays import EntriesOfOneArray
from tensorlens.tracer.frames.local_tensors import names_in
from tensorlens.tracer.isolation.readable import is_in_main_memory
from tensorlens.tracer.isolation.torch_originals import untyped_storage
from tensorlens.tracer.recording.recorder import Recorder

_MOST_FRAMES = 6
_MOST_OBJECTS = 2_000  # of one look
_MOST_DEPTH = 3  # attributes
_MIN_ENTRIES = 16
_MOST_ENTRIES = 1 << 16
_MOST_PLACES = 16
_MOST_KEYS = 64  # of a dict
_MOST_HELD = 8
_MOST_BYTES = 1 << 16  # of one array
_SHARE = 0.9  # of the entries
_PLAIN = (int, float, complex, str, bytes, type(None))
_LEADS_NOWHERE = (*_PLAIN, type, ModuleType, FunctionType, MethodType, BuiltinFunctionType, torch.Tensor)
_OF_MODULES = frozenset("_modules _parameters _buffers".split())
Memory = tuple[Any, ...]  # address, shape, strides, dtype
Found = tuple[int, str, Any]  # what has the name of a list, the name, the list
Held = tuple[object, Memory, int]  # an entry, the memory of its array, a checksum of the values


@dataclass(slots=True)
class _Known:
    """A memory with entries of this kind, as it was at the last look at it."""

    kept: tuple[Any, ...]  # the list itself, until it is no longer found; or several with an array at each place
    name: str  # of several, their names
    places: tuple[str, str]
    entries: int = 0
    twice: int = 0
    arrays: int = 0
    changed: int = 0
    held: list[Held] = field(default_factory=list)


class KeptEntries:
    """Looks at the lists and deques that the frames around an optimizer step lead to."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._known: dict[tuple[int, ...], _Known] = {}  # by the ids of the lists
        self._ended: list[_Known] = []

    def write(self, number: int) -> None:
        """Looks once more, and writes what was found so far."""
        if "numpy" in sys.modules:
            before, self._known = self._known, {}
            found = list(self._lists())
            for name, kept in (*((name, (kept,)) for _, name, kept in found), *_columns(found)):
                self._look(name, kept, before.pop(tuple(map(id, kept)), None))
            for gone in before.values():
                gone.kept, gone.held = (), []
            self._ended += (gone for gone in before.values() if gone.changed)
        for each in (*self._ended, *self._known.values()):
            if each.changed:
                counts = each.entries, each.twice, each.arrays, each.changed
                self._recorder.rows.write_fact(EntriesOfOneArray, number, each.name, each.places, *counts)

    def _lists(self) -> Iterator[Found]:
        """Yields these lists, each once, with the last name that leads to it."""
        frame: FrameType | None = sys._getframe(1)
        seen = set[int]()
        for _ in range(_MOST_FRAMES):
            frame = self._recorder.sites.user_frame(frame)
            if frame is None:
                return
            with names_in(frame) as space:
                found = list((space or {}).items())
            if frame.f_globals is not space:
                found += frame.f_globals.items()
            yield from _below(found, seen)
            del found
            frame = frame.f_back

    def _look(self, name: str, kept: tuple[Any, ...], known: _Known | None) -> None:
        """Compares the entries of a list that were there at the last look with what they were then."""
        try:
            entries = list(islice(kept[0] if len(kept) == 1 else _rows(name, kept), _MOST_ENTRIES))
        except RuntimeError:  # another thread changes it
            return
        found = _of_one_array(entries)
        if found is None:
            return
        places, memories = found
        if known is None or known.places != places:
            known = _Known(kept, name, places)
        same = _left(known, entries)
        known.changed = max(known.changed, sum(_is_changed(*each, places) for each in same))
        known.entries, known.twice, known.arrays = len(entries), len(memories), len(set(memories))
        known.held = list(_held(entries, places))
        if known.held or known.changed:
            self._known[tuple(map(id, kept))] = known


def _below(names: list[tuple[Any, Any]], seen: set[int]) -> Iterator[Found]:
    """Yields the lists that some names, and attributes of their values, lead to."""
    waiting = deque((id(names), name, value, 0) for name, value in names)
    while waiting and len(seen) < _MOST_OBJECTS:
        owner, name, value, depth = waiting.popleft()
        if type(name) is not str or id(value) in seen or issubclass(type(value), _LEADS_NOWHERE):
            continue
        seen.add(id(value))
        if type(value) in (list, deque):
            if len(value) >= _MIN_ENTRIES:
                yield owner, name, value
        elif depth < _MOST_DEPTH and name not in _OF_MODULES:
            inner = value if type(value) is dict and len(value) <= _MOST_KEYS else _attributes(value)
            waiting.extend((id(value), key, each, depth + 1) for key, each in list(inner.items()))


def _columns(found: list[Found]) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Yields the lists of arrays that belong together: as many entries, in attributes of one object, or variables."""
    groups: dict[tuple[int, int], dict[str, Any]] = {}
    for owner, name, kept in found:
        if name.isidentifier() and len(kept) >= _MIN_ENTRIES and _is_array(kept[0]) and _is_array(kept[-1]):
            groups.setdefault((owner, len(kept)), {})[name] = kept
    yield from ((" ".join(group), tuple(group.values())) for group in groups.values() if len(group) > 1)


def _rows(names: str, lists: tuple[Any, ...]) -> Iterator[dict[str, Any]]:
    yield from (dict(zip(names.split(), row, strict=True)) for row in zip(*lists, strict=False))


def _attributes(value: object) -> dict[str, Any]:
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return dict(found) if type(found) is dict else {}


def _parts(entry: Any) -> dict[str, Any]:
    """Returns the values that an entry holds by their places: "0", "next_obs". It runs no code of the program."""
    kind = type(entry)
    if issubclass(kind, tuple):
        names = getattr(kind, "_fields", None) or map(str, range(tuple.__len__(entry)))
        return dict(zip(names, tuple.__iter__(entry), strict=False))
    if kind is list:
        return {str(place): each for place, each in enumerate(entry[:_MOST_PLACES])}
    if kind is dict:
        some = islice(entry.items(), _MOST_PLACES)
        return {str(key): each for key, each in some if type(key) in (str, int)}
    return {} if issubclass(kind, _PLAIN) or _is_array(entry) else _attributes(entry)


def _is_array(value: object) -> bool:
    return type(value).__name__ == "ndarray" and type(value).__module__ == "numpy"


def _memory(value: Any) -> Memory | None:
    """Returns the memory of an array of plain elements; None for another value, and for a large array."""
    if not _is_array(value) or not 0 < value.nbytes <= _MOST_BYTES or value.dtype.hasobject:
        return None
    return value.__array_interface__["data"][0], value.shape, value.strides, value.dtype.str


def _pairs(entry: object) -> Iterator[tuple[str, str]]:
    """Yields the places of an entry that hold one array."""
    memories = {place: memory for place, each in _parts(entry).items() if (memory := _memory(each)) is not None}
    yield from (pair for pair in combinations(memories, 2) if memories[pair[0]] == memories[pair[1]])


def _of_one_array(entries: list[Any]) -> tuple[tuple[str, str], list[Memory]] | None:
    """Returns (two places, memories), if nearly all entries hold one array at these two, and many hold the same."""
    filled = [each for each in entries if each is not None]
    some = filled[:: max(1, len(filled) // _MIN_ENTRIES)]
    counts = Counter(pair for entry in some for pair in _pairs(entry))
    if len(filled) < _MIN_ENTRIES or not counts:
        return None
    (places, count), *_ = counts.most_common(1)
    if count < _SHARE * len(some):
        return None
    memories = [memory for entry in filled if (memory := _shared(entry, places)) is not None]
    is_meant = len(memories) < _SHARE * len(filled) or len(set(memories)) > len(memories) // 4
    return None if is_meant else (places, memories)


def _shared(entry: object, places: tuple[str, str]) -> Memory | None:
    """Returns the memory of the array that is at two places of an entry."""
    parts = _parts(entry)
    memory = _memory(parts.get(places[0]))
    return memory if memory is not None and memory == _memory(parts.get(places[1])) else None


def _held(entries: list[Any], places: tuple[str, str]) -> Iterator[Held]:
    """Yields a few entries to look at again, the last one with them, if holding them keeps little memory."""
    filled = [each for each in entries if each is not None]
    for entry in (*filled[:: max(1, len(filled) // _MOST_HELD)][:_MOST_HELD], filled[-1]):
        parts, memory = _parts(entry), _shared(entry, places)
        if memory is not None and all(map(_is_small, parts.values())):
            yield entry, memory, _checksum(parts[places[0]])


def _is_small(value: Any) -> bool:
    """Returns whether little memory stays in use if a value is held."""
    if type(value) is torch.Tensor:
        return not value.requires_grad and is_in_main_memory(value) and untyped_storage(value).nbytes() <= _MOST_BYTES
    if type(value) in (dict, list, tuple):
        parts = _parts(value).values()
        return len(value) <= _MOST_PLACES and all(issubclass(type(each), _PLAIN) or _is_array(each) for each in parts)
    return issubclass(type(value), _PLAIN) or (type(value).__module__ == "numpy" and value.nbytes <= _MOST_BYTES)


def _checksum(array: Any) -> int:
    return crc32(array.tobytes())


def _left(known: _Known, entries: list[Any]) -> list[Held]:
    """Returns the entries of the last look that are there still, if others have been added since.

    The entries of several lists are all alike. The source shows whether a line takes some out.
    """
    is_longer = len(entries) > known.entries
    if len(known.kept) > 1:
        return known.held if is_longer else []
    here = set(map(id, entries))
    left = [each for each in known.held if id(each[0]) in here]
    return left if is_longer or len(left) < len(known.held) else []


def _is_changed(entry: object, memory: Memory, values: int, places: tuple[str, str]) -> bool:
    """Returns whether the array of an entry has other values than before."""
    return _shared(entry, places) == memory and _checksum(_parts(entry)[places[0]]) != values
