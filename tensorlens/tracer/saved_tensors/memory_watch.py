"""Ways to write to a tensor's memory past its version counter, and what was written through them.

A way opens when the program makes an alias with a counter of its own (`.data`, `set_`) or one that torch knows nothing
of (a NumPy array, DLPack, a storage). Only from then on is anything watched, and only what a node of the graph may have
saved is compared:

- where torch makes the writes, after each call that writes there;
- where it does not, the small memory used last after each call, so that a change is noticed with the line that made it
  (`guards`); other memory after a call that touches it, and before a backward pass.

Calls that do not touch watched memory keep to the short way (`concerns`). `leftovers` then tells which nodes had saved
what was changed. A run that opens no way pays nothing.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

from tensorlens.journal.rows import NONE, NOTICED
from tensorlens.tracer.frames.code_between_calls import Place, changed_between, place_of
from tensorlens.tracer.isolation.torch_originals import data_ptr, untyped_storage
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.saved_tensors.array_guards import ArrayGuards
from tensorlens.tracer.saved_tensors.watched_storage import (
    WatchedStorage,
    WatchedStorages,
    address_of,
    difference,
    extent_of,
    is_held_by_its_array,
    is_surely_unsaved,
    memory_of,
    reference,
)

LOOKS = 32  # watches that may be swept for each backward pass
MANY = 8  # changes of one memory that are remembered with the values from before
_SHARING = {"from_numpy": 1, "as_tensor": 1, "asarray": 1, "numpy": 2, "__array__": 2, "__get__": 2}
_next_sequence = torch._C._autograd._get_sequence_nr


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
    base: int = 0  # where that began


class MemoryWatcher:
    """Watches the open ways of one run. `marks` is what was changed through them."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.marks: list[Mark] = []
        self._watches = WatchedStorages(recorder.watched)
        self.packs = False  # whether a hook of the program's has packed a saved tensor, which no count of uses tells
        self._guards = ArrayGuards(recorder.guarded)  # those compared after every call
        self._has_passed = False  # a backward pass may have let go of what the guards are for
        self._count = 0
        self._statistics: set[int] = set()  # running statistics that nodes may have saved

    def open(self, tensor: torch.Tensor, way: str, frame: Any, outside: bool, source: Any = None) -> None:
        """Watch the memory of `tensor` from here on. `source`: the array that shares it, or what it is an alias of."""
        entry = self.recorder.identity.entry(tensor)
        number, known, site = entry[3], self._watches.get(entry[3]), self.recorder.sites.of(frame)
        holder = source if way.endswith(".data.__get__") else tensor
        if known is not None and not outside:
            if not known.outside:  # the wider way stays open
                known.way, known.site = way, site
                self._keep(known, holder, frame)
            return
        memory = memory_of(tensor)
        if memory is None:
            return
        watch = WatchedStorage(memory, way, site, entry[1], reference(source) if outside else None, outside, False)
        if known is not None and known.outside and known.saved:
            watch.saved, watch.content, watch.place = True, known.content, known.place
        else:
            self._keep(watch, holder, frame)
        self._watches.sweep_at_times(self.recorder.identity.counters_at)
        self._watches.put(number, watch)
        self._tidy(thorough=True)
        self._guards.add(number, watch)
        if self._guards:
            self._guards.place = place_of(self.recorder, frame)
        self.recorder.finish = self._finish  # type: ignore[method-assign]

    def _keep(self, watch: WatchedStorage, holder: torch.Tensor, frame: Any) -> None:
        """Keep a copy of memory that a node may have saved; `holder` is the tensor that lay there first."""
        if self._is_unsaved(watch, holder):
            watch.let_go()
        else:
            watch.keep(place_of(self.recorder, frame))

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
        """Compare the watched memory: the line of `frame` has just written to a storage."""
        place = place_of(self.recorder, frame)
        for _, watch in self._watches:
            if watch.saved and watch.memory.is_there():
                self._compare(watch, None, frame, (), None)
                watch.place = place
        self._guards.place = place

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

    def concerns(self, tensors: list[Any], first: int, frame: FrameType) -> bool:
        """Whether memory that a node may have saved, by the call that has ended or before, was read or written by it,
        or has changed since the last call. `first`: the number of the call's first node, if it recorded any."""
        known, watched = self.recorder.identity.known, self.recorder.watched
        for tensor in tensors:
            entry = known.get(id(tensor))
            if entry is not None and entry[3] in watched:
                if (self._watches[entry[3]].saved or _next_sequence() != first) and not self._is_closed(entry[3]):
                    return True
        if self._has_passed:
            self._tidy(thorough=True)
        if not self._guards:
            return False
        if self._guards.is_any_changed():
            return True
        self._guards.place = place_of(self.recorder, frame)
        return False

    def _finish(self, called: Any, result: Any, tensors: Any, inputs: Any, before: int) -> None:
        """`Recorder.finish`, after a look at the memory that is watched."""
        try:
            if len(self._watches):
                inside = called[1].endswith(".apply")  # the program's own code ran in it, and may have written
                self._after_call(called[2], tensors, inputs, None if inside else before)
        except Exception as trouble:  # ours, never the user's
            self.recorder.internal_error("what memory held", trouble, called[2])
        Recorder.finish(self.recorder, called, result, tensors, inputs, before)

    def _after_call(self, frame: FrameType, tensors: Any, inputs: Any, before: int | None) -> None:
        """Look at what a call touched, and at what changes without a call. `before`: the number of its first node;
        what it did not write itself was changed before that."""
        recorded = before is None or _next_sequence() != before
        touched: dict[int, Any] = {}  # storage -> what the call wrote there, or None
        for position, tensor in enumerate(tensors):
            for number in self._watches.at(address_of(tensor)):
                if touched.get(number) is None and (recorded or self._watches[number].saved):
                    version = inputs[2 * position + 1]
                    touched[number] = tensor if version != NONE and tensor._version != version else None
        if not touched and not self._guards:
            return
        place = place_of(self.recorder, frame)
        guards = [watch for number, watch in self._guards.pairs if number not in touched]
        for watch in guards if touched or self._guards.is_any_changed() else ():
            if watch.memory.is_there() and watch.is_changed():
                self._compare(watch, None, frame, place, before)
        for number, writer in touched.items():
            self._touch(number, writer, (frame, place, before), recorded)
        self._tidy()
        self._guards.place = place

    def _touch(self, number: int, writer: Any, at: tuple[FrameType, Place, int | None], recorded: bool) -> None:
        """A call read or wrote a storage; `recorded` says that a node may have saved what is there."""
        watch = self._watches.get(number)
        frame, place, before = at
        if watch is None or self._is_closed(number):
            return
        if watch.saved:
            self._compare(watch, writer, frame, place, before)
        elif recorded:
            watch.keep(place)
        self._guards.add(number, watch)

    def _is_closed(self, number: int) -> bool:
        """Whether nothing can write to a storage past its counter any more: it is gone, or torch makes all writes, and
        tensors with several version counters no longer lie there. It is watched no more, then."""
        watch = self._watches.get(number)
        if watch is not None:
            if watch.outside or len(self.recorder.identity.counters_at(watch.memory.start)) > 1:
                return False
        self._watches.drop(number)
        return True

    def _tidy(self, thorough: bool = False) -> None:
        """Forget guards of what is gone and of arrays that nobody can write to any more; `thorough`: of what no node
        holds, too."""
        if not self._guards:
            return
        thorough |= self._has_passed
        self._has_passed = False
        kept = []
        for number, watch in self._guards.pairs:
            if self._watches.get(number) is not watch:
                continue
            if watch.alias is not None and watch.alias() is None:
                watch.outside = False
            elif thorough and self._is_let_go(watch):
                watch.let_go()
            else:
                kept.append((number, watch))
        self._guards.pairs[:] = kept

    def _is_let_go(self, watch: WatchedStorage) -> bool:
        """Whether no node has saved what lies in a memory, though one may have done so before."""
        identity, storage = self.recorder.identity, watch.memory.storage()
        entry = identity.blocks.get(watch.memory.start)
        tensor = None if entry is None else entry[0]()
        if tensor is not None:
            return untyped_storage(tensor) is storage and self._is_unsaved(watch, tensor)
        if storage is None or watch.alias is None or watch.alias() is None or not self._is_made_of_tensor(watch):
            return False
        return self._counts() and is_held_by_its_array(storage) and not identity.counters_at(watch.memory.start)

    @staticmethod
    def _is_made_of_tensor(watch: WatchedStorage) -> bool:
        return watch.way.rpartition(".")[2] in ("numpy", "__array__")

    def _counts(self) -> bool:
        """Whether PyTorch's counts of uses tell of everything that is saved."""
        return not self.packs and not self.recorder.attributes.kept

    def _is_unsaved(self, watch: WatchedStorage, tensor: torch.Tensor) -> bool:
        """Whether no node can have saved the memory of a tensor, nor a custom Function kept it as an attribute."""
        sharing = _SHARING.get(watch.way.rpartition(".")[2], 0)
        return self._counts() and is_surely_unsaved(tensor, sharing)

    def look(self, frame: FrameType) -> None:
        """Compare all of the watched memory with what it was."""
        if not len(self._watches):
            return
        self._watches.sweep_at_times(self.recorder.identity.counters_at, credit=LOOKS)
        place = place_of(self.recorder, frame)
        for number, watch in self._watches:
            if not watch.saved:
                continue
            if not watch.memory.is_there():
                self._watches.drop(number)
            elif self._is_let_go(watch):
                watch.let_go()
            else:
                self._compare(watch, None, frame, place, None)
        self._guards.place, self._has_passed = place, True
        if not len(self._watches):
            self.recorder.__dict__.pop("finish", None)

    def _compare(self, watch: WatchedStorage, writer: Any, frame: FrameType, place: Place, before: int | None) -> None:
        """Note a change. `place` is () where the line of `frame` made it."""
        since = self._guards.place if watch in self._guards else watch.place
        watch.place = place
        now = watch.memory.read()
        if now is not None and now == watch.content:
            return
        memory = watch.memory
        if now is not None and watch.content is not None:
            first, last = difference(watch.content, now)
            start, size = memory.start + first, last - first
        elif writer is not None:
            start, size = data_ptr(writer), extent_of(writer)
        else:
            return
        site = self.recorder.sites.of(frame)
        known = writer is not None or not place
        sites = (site,) if known else changed_between(self.recorder, since, place, frame)
        sequence = _next_sequence() if before is None or writer is not None else before
        mark = Mark(0, sequence, memory.storage, start, size, content=watch.content, base=memory.start)
        self._note(mark, watch.way, watch.site, sites or (site,), watch.tensor)
        watch.content, watch.checks = now, 0

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


def _memory_of(tensor: torch.Tensor) -> weakref.ref[Any] | None:
    try:
        return weakref.ref(untyped_storage(tensor))
    except (RuntimeError, NotImplementedError):
        return None
