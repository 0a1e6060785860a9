"""Ways to write to a tensor's memory past its version counter, and what was written through them.

A way opens when the program makes an alias with a counter of its own (`.data`, `set_`) or one that torch knows nothing
of (a NumPy array, DLPack, a storage). Only from then on is anything watched: the bytes of that memory are compared
between recorded calls, so that a change is noticed with the line that made it. `leftovers` then tells which nodes had
saved what was changed. A run that opens no way pays nothing.
"""

from __future__ import annotations

import ctypes
import weakref
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from tensorlens.journal import NONE, NOTICED
from tensorlens.tracer.between import Place, changed_between, place_of
from tensorlens.tracer.hot import WATCHED
from tensorlens.tracer.identity import is_fake
from tensorlens.tracer.originals import data_ptr, element_size, numel, stride, untyped_storage
from tensorlens.tracer.recorder import Recorder

SMALL = 16 * 1024  # bytes compared at every call; larger memory is compared where a call touches it, and at backward
LARGE = 1024 * 1024  # beyond this no copy is kept: only changes made by torch itself are seen
MANY = 8  # changes of one memory that are remembered with the values from before
BUDGET = 64 * 1024  # bytes compared at a call, all in all
_next_sequence = torch._C._autograd._get_sequence_nr


@dataclass(slots=True)
class Watch:
    """Memory that can be written past its counter. `alias` is what writes to it, None for what can't be followed."""

    storage: weakref.ref[Any]
    start: int  # address
    size: int
    tensor: int
    dtype: torch.dtype
    way: str
    site: int
    outside: bool  # torch does not see the writes
    alias: weakref.ref[Any] | None = None
    content: bytes | None = None

    def read(self) -> bytes | None:
        return ctypes.string_at(self.start, self.size) if self.size <= LARGE else None


@dataclass(slots=True)
class Mark:
    """A change that was noticed: `number` is its place among the OVERWRITE rows."""

    number: int
    sequence: int  # nodes with a lower one had saved their tensors before it
    storage: weakref.ref[Any] | None
    start: int
    size: int
    moved: int = NONE  # the tensor that `.data = ...` gave other memory; `storage` is then what it left
    content: bytes | None = None  # the memory before the change


class Untracked:
    """Watches the open ways of one run. `marks` is what was changed through them."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.marks: list[Mark] = []
        self._watched: dict[int, Watch] = {}
        self._place: Place = ()
        self._count = 0
        self._statistics: set[int] = set()  # running statistics that nodes may have saved

    def open(self, tensor: torch.Tensor, way: str, frame: Any, outside: bool, alias: Any = None) -> None:
        """Watch the memory of `tensor` from here on."""
        if is_fake(tensor):
            return
        try:
            storage = untyped_storage(tensor)
            if tensor.device.type != "cpu" or not storage.nbytes() or storage.data_ptr() == 0:
                return
            watch = Watch(
                weakref.ref(storage), storage.data_ptr(), storage.nbytes(), self.recorder.identity.meet(tensor),
                tensor.dtype, way, self.recorder.sites.of(frame), outside, _reference(alias),
            )  # fmt: skip
        except (RuntimeError, NotImplementedError, AttributeError, ValueError):
            return
        known = self._watched.get(watch.start)
        if known is not None and known.storage() is storage and known.outside and (outside <= known.outside):
            if not outside:
                return  # the wider way stays open
            watch.content = known.content
        watch.content = watch.content or watch.read()
        self._watched[watch.start] = watch
        self._place = place_of(self.recorder, frame)
        self.recorder.finish = self._finish  # type: ignore[method-assign]
        self.recorder.detours.add(WATCHED)

    def moved(self, before: torch.Tensor, tensor: torch.Tensor, way: str, frame: Any) -> None:
        """`tensor` was given other memory than that of `before`, with other values, under the nodes that saved it."""
        number = self.recorder.identity.meet(tensor)
        site = self.recorder.sites.of(frame)
        self._note(Mark(0, _next_sequence(), _memory_of(before), 0, 0, moved=number), way, site, (site,), number)

    def written(self, tensor: torch.Tensor, way: str, frame: Any) -> None:
        """`tensor` was written by a kernel that moves no version; what was there before is not known."""
        storage = untyped_storage(tensor)
        site, number = self.recorder.sites.of(frame), self.recorder.identity.meet(tensor)
        mark = Mark(0, _next_sequence(), weakref.ref(storage), data_ptr(tensor), extent_of(tensor))
        self._note(mark, way, site, (site,), number)

    def stored(self, frame: FrameType) -> None:
        """The line of `frame` has just written to a storage."""
        for watch in self._watched.values():
            self._compare(watch, None, frame, (), None)
        self._place = place_of(self.recorder, frame)

    def keep_statistics(self, result: torch.Tensor, *running: torch.Tensor) -> None:
        """A layer normalised with its running statistics: a node has saved them if its result has a history."""
        if result.requires_grad:
            self._statistics.update(map(self.recorder.identity.meet, running))

    def move_statistics(self, way: str, frame: Any, *running: torch.Tensor) -> None:
        """A layer moved its running statistics on."""
        for tensor in running if self._statistics else ():
            number = self.recorder.identity.meet(tensor)
            if number in self._statistics:
                self._statistics.discard(number)
                self.written(tensor, way, frame)

    def _finish(self, called: Any, result: Any, tensors: Any, inputs: Any, before: int) -> None:
        """`Recorder.finish`, after a look at the memory that is watched."""
        try:
            moved = [t for t, version in zip(tensors, inputs[1::2], strict=True) if _moved(t, version)]
            inside = called[1].endswith(".apply")  # the program's own code ran in it, and may have written
            self.look(called[2], tensors, moved, None if inside else before)
        except Exception as trouble:  # ours, never the user's
            self.recorder.trouble("what memory held", trouble, called[2])
        Recorder.finish(self.recorder, called, result, tensors, inputs, before)

    def look(self, frame: FrameType, touched: Any = None, written: Any = (), before: int | None = None) -> None:
        """Compare the watched memory with what it was: all of it, or, when a call has ended, the small and the
        `touched`. What such a call did not write itself was changed `before` its first node."""
        if not self._watched:
            return
        spent = 0
        place: Place | None = None
        for start, watch in list(self._watched.items()):
            if watch.storage() is None:
                del self._watched[start]
                continue
            end = start + watch.size
            writer = next((t for t in written if start <= address_of(t) < end), None)
            if writer is None and touched is not None:
                if watch.size > SMALL or not watch.outside or spent > BUDGET:
                    if not any(address_of(t) in range(start, end) for t in touched):
                        continue
            spent += watch.size
            place = place_of(self.recorder, frame) if place is None else place
            self._compare(watch, writer, frame, place, before)
            if watch.outside and watch.alias is not None and watch.alias() is None:
                watch.outside = False
        self._place = place_of(self.recorder, frame) if place is None else place
        if not self._watched:
            del self.recorder.finish
            self.recorder.detours.discard(WATCHED)

    def _compare(self, watch: Watch, writer: Any, frame: FrameType, place: Place, before: int | None) -> None:
        now = watch.read()
        if now is None and writer is None:
            return
        if now is not None and now == watch.content:
            return
        site = self.recorder.sites.of(frame)
        known = writer is not None or not place
        sites = (site,) if known else changed_between(self.recorder, self._place, place, frame)
        if now is not None and watch.content is not None:
            first, last = _difference(watch.content, now)
            start, size = watch.start + first, last - first
        elif writer is not None:
            start, size = data_ptr(writer), extent_of(writer)
        else:
            return
        sequence = _next_sequence() if before is None or writer is not None else before
        mark = Mark(0, sequence, watch.storage, start, size, content=watch.content)
        self._note(mark, watch.way, watch.site, sites or (site,), watch.tensor)
        watch.content = now

    def _note(self, mark: Mark, way: str, opened: int, sites: tuple[int, ...], tensor: int) -> None:
        mark.number = self._count
        self._count += 1
        self.marks.append(mark)
        self._forget(mark)
        known = tuple(site for site in sites if site != NONE)
        row = (way, None if opened == NONE else opened, known, None if tensor == NONE else tensor)
        self.recorder.rows.append((NOTICED, "overwrites", *row))

    def _forget(self, latest: Mark) -> None:
        """Marks of freed memory go, and those of one memory beyond the last few."""
        self.marks = [m for m in self.marks if m.moved != NONE or m.storage is None or m.storage() is not None]
        same = [m for m in self.marks if m.moved == latest.moved and (m.moved != NONE or m.storage == latest.storage)]
        for mark in same[:-MANY]:
            self.marks.remove(mark)

    def watch_of(self, mark: Mark) -> Watch | None:
        return next((w for w in self._watched.values() if w.storage == mark.storage), None)


def _moved(tensor: torch.Tensor, version: int) -> bool:
    return version != NONE and tensor._version != version


def address_of(tensor: torch.Tensor) -> int:
    try:
        return 0 if is_fake(tensor) else data_ptr(tensor)
    except (RuntimeError, ValueError, NotImplementedError):
        return 0


def extent_of(tensor: torch.Tensor) -> int:
    """How many bytes lie between the first and the last element of a tensor, both included."""
    last = sum((n - 1) * step for n, step in zip(tensor.shape, stride(tensor), strict=True))
    return (last + 1) * element_size(tensor) if numel(tensor) else 0


def _memory_of(tensor: torch.Tensor) -> weakref.ref[Any] | None:
    try:
        return weakref.ref(untyped_storage(tensor))
    except (RuntimeError, NotImplementedError):
        return None


def _reference(alias: Any) -> weakref.ref[Any] | None:
    """A reference to what keeps a way open; of an array that is a view, to the array that it is a view of."""
    while type(getattr(alias, "base", None)) is type(alias) and alias is not None:
        alias = alias.base
    if getattr(alias, "base", None) is not None and type(alias).__name__ == "ndarray":
        owner = alias.base
        if not isinstance(owner, torch.Tensor):
            return None  # the memory of something else that may write to it
    try:
        return None if alias is None else weakref.ref(alias)
    except TypeError:
        return None


def _difference(before: bytes, now: bytes) -> tuple[int, int]:
    """The first byte that differs, and the one after the last."""
    size = min(len(before), len(now))
    first, high = 0, size
    while first < high:  # the longest common beginning, by halves
        middle = (first + high + 1) // 2
        if before[first:middle] == now[first:middle]:
            first = middle
        else:
            high = middle - 1
    last, low = size, first
    while low < last:  # and the longest common end
        middle = (low + last) // 2
        if before[middle:last] == now[middle:last]:
            last = middle
        else:
            low = middle + 1
    return first, max(last, first + 1)
