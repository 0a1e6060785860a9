"""Watches memory that can be written past its version counter, and notices what was written there.

Such memory exists once the program makes an alias with a version counter of its own (`.data`, `set_`), or one that
PyTorch does not know (a NumPy array, DLPack, a storage). Only from then on is memory watched, and only memory that a
node of the graph may have saved is compared:

- where PyTorch makes the writes: after each call that writes there;
- where it does not: small memory after every call, so that a change is noticed with its line (`array_guards`); larger
  memory after a call that uses it, and before a backward pass.

Calls that use no watched memory stay on the fast path (`is_watched`). A program without such memory pays nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import FrameType

import torch

from tensorlens.journal.rows import NONE
from tensorlens.tracer.frames.code_between_calls import Place, place_of, sites_of_writes
from tensorlens.tracer.isolation.readable import is_in_main_memory
from tensorlens.tracer.isolation.torch_originals import data_ptr, untyped_storage
from tensorlens.tracer.recording.recorder import Recorder
from tensorlens.tracer.recording.tensor_ids import Entry
from tensorlens.tracer.recording.unsaved_storage import UnsavedStorage
from tensorlens.tracer.saved_tensors.array_guards import ArrayGuards
from tensorlens.tracer.saved_tensors.overwrites import Overwrite, Overwrites
from tensorlens.tracer.saved_tensors.watched_storage import (
    COUNTS_USES,
    Memory,
    WatchedStorage,
    address_of,
    differing_bytes,
    extent_of,
    is_surely_unsaved,
    memory_of,
    owns_its_memory,
    tensors_with_alias,
    weak_alias,
)
from tensorlens.tracer.saved_tensors.watched_storages import WatchedStorages

SWEEP_CREDIT = 8  # what each backward pass adds to the credit of a sweep: see `WatchedStorages`
_next_sequence = torch._C._autograd._get_sequence_nr


class MemoryWatcher:
    """Watches storages and compares their contents.

    `counts_are_complete` returns whether PyTorch's use counts show everything that is saved.
    """

    def __init__(self, recorder: Recorder, overwrites: Overwrites, counts_are_complete: Callable[[], bool]) -> None:
        self._recorder = recorder
        self._overwrites = overwrites
        self._counts_are_complete = counts_are_complete
        self._storages = WatchedStorages(recorder.watched, recorder.set_watch_due)
        self.saved = self._storages.saved
        self._guards = ArrayGuards(recorder.guarded)  # the storages compared after every call
        self._pass_ran = False  # a backward pass may have freed the nodes that the guards are for

    def watch_alias(self, alias: torch.Tensor, op: str, frame: FrameType | None, source: torch.Tensor) -> None:
        """Watches the memory of an alias that PyTorch has made. Reads nothing of it if no node has saved it.

        `source`: what the alias is made of.
        """
        _, tensor, _, number = self._recorder.tensor_ids.entry(alias)
        known = self._recorder.watched.get(number)
        if type(known) is WatchedStorage or not self._is_unsaved(op, source):
            self.watch(alias, op, frame, False, source)
            return
        site = self._recorder.sites.site_of(frame)
        if known is not None:
            self._recorder.watched[number] = known._replace(op=op, site=site)
            return
        if not is_in_main_memory(source):
            return
        self._storages.sweep_if_due(self._recorder.tensor_ids.is_used)
        self._storages.put_unsaved(number, UnsavedStorage(op, site, tensor, untyped_storage(source).data_ptr()))
        self._note_watched(frame)

    def watch(
        self,
        tensor: torch.Tensor,
        op: str,
        frame: FrameType | None,
        external: bool,
        source: object = None,
        found: tuple[Entry, int, bool] | None = None,
    ) -> None:
        """Watches the memory of `tensor` from here on.

        Args:
            tensor: a tensor on the memory.
            op: the operation that made the alias.
            frame: the frame that called it.
            external: whether others than PyTorch can write there.
            source: the array that shares the memory, or the tensor whose alias `tensor` is.
            found: the entry of `tensor`, the site of `frame`, and whether `tensor` is new, if the caller knows them.
        """
        recorder = self._recorder
        entry, site, is_new = found or (recorder.tensor_ids.entry(tensor), recorder.sites.site_of(frame), False)
        number, known = entry[3], self._storages.get(entry[3])
        original = source if not external and isinstance(source, torch.Tensor) else tensor  # that of `.data`
        if known is not None and not external:
            if not known.external:  # memory that others can write stays watched for that
                known.op, known.site = op, site
                if self._is_unsaved(op, original):
                    self._storages.forget_contents(number, known)
                else:
                    self._storages.keep_contents(number, known, place_of(recorder.sites, frame))
            return
        memory = memory_of(tensor)
        if memory is None:
            return
        alias = weak_alias(source) if external else None
        is_arrays = external and owns_its_memory(source)
        storage = WatchedStorage(memory, op, site, entry[1], alias, external, is_arrays, may_be_saved=False)
        if known is not None and known.external and known.may_be_saved:
            storage.may_be_saved, storage.contents, storage.place = True, known.contents, known.place
        elif not (is_new and COUNTS_USES and self._counts_are_complete()) and not self._is_unsaved(op, original):
            storage.keep_contents(place_of(recorder.sites, frame))
        self._storages.sweep_if_due(recorder.tensor_ids.is_used)
        self._storages.put(number, storage)
        if storage.may_be_saved or self._guards.pairs:
            self._note_watched(frame, (number, storage) if external else None)

    def _note_watched(self, frame: FrameType | None, to_guard: tuple[int, WatchedStorage] | None = None) -> None:
        """Adapts the guards when memory is watched from here on."""
        if self._guards.pairs:
            self._drop_guards(of_unsaved=True)
        if to_guard is not None:
            self._guards.add(*to_guard)
        if self._guards.pairs:
            self._guards.place = place_of(self._recorder.sites, frame)

    def memory_outside(self) -> list[tuple[int, Memory]]:
        """Returns the watched memory that others than PyTorch can write, each with its tensor."""
        return [(s.tensor, s.memory) for _, s in self._storages.read_ones() if s.external and s.memory.is_there()]

    def note_storage_write(self, frame: FrameType) -> None:
        """Compares the watched memory: the line of `frame` has just written to a storage."""
        place = place_of(self._recorder.sites, frame)
        for _, storage in self._storages.read_ones():
            if storage.may_be_saved and storage.memory.is_there():
                self._compare(storage, None, frame, (), None)
                storage.place = place
        self._guards.place = place

    def is_watched(self, tensors: Sequence[torch.Tensor], first: int, frame: FrameType) -> bool:
        """Returns whether a call that has ended needs the slow path because of watched memory.

        It does if the call used memory that a node may have saved, or if such memory has changed since the last call.
        `first` is the sequence number that the call's first node has, if it recorded any.
        """
        known, watched = self._recorder.tensor_ids.known, self._recorder.watched
        for tensor in tensors:
            entry = known.get(id(tensor))
            if entry is not None and entry[3] in watched:
                if (self._storages[entry[3]].may_be_saved or _next_sequence() != first) and not self._drop_if_safe(
                    entry[3]
                ):
                    return True
        if self._pass_ran:
            self._drop_guards(of_unsaved=True)
        if not self._guards:
            return False
        if self._guards.is_any_changed():
            return True
        self._guards.place = place_of(self._recorder.sites, frame)
        return False

    def after_call(
        self, frame: FrameType, tensors: Sequence[torch.Tensor], inputs: Sequence[int], before: int | None
    ) -> None:
        """Compares the memory that a call used, and the memory that changes without a call.

        Args:
            frame: the frame that made the call.
            tensors: its arguments.
            inputs: (tensor id, version before the call) of each, flat.
            before: the sequence number that the call's first node gets. A change that the call did not make itself came
                before that node. None if the call ran code of the program, which may have made the change.
        """
        recorded, known = before is None or _next_sequence() != before, self._recorder.tensor_ids.known
        writers: dict[int, torch.Tensor | None] = {}  # storage used by the call -> the argument that was written there
        for position, tensor in enumerate(tensors):
            if recorded and (entry := known.get(id(tensor))) is not None:
                self._storages.read(entry[3], tensor)
            for number in self._storages.at(address_of(tensor)) if recorded or self.saved else ():
                if writers.get(number) is None and (recorded or self._storages[number].may_be_saved):
                    version = inputs[2 * position + 1]
                    writers[number] = tensor if version != NONE and tensor._version != version else None
        if not writers and not self._guards:
            return
        place = place_of(self._recorder.sites, frame)
        guarded = [storage for number, storage in self._guards.pairs if number not in writers]
        for storage in guarded if writers or self._guards.is_any_changed() else ():
            if storage.memory.is_there() and storage.is_changed():
                self._compare(storage, None, frame, place, before)
        for number, writer in writers.items():
            self._check_used(number, writer, (frame, place, before), recorded)
        self._drop_guards()
        self._guards.place = place

    def _check_used(
        self, number: int, writer: torch.Tensor | None, call: tuple[FrameType, Place, int | None], recorded: bool
    ) -> None:
        """Compares a storage that a call used. `recorded`: a node of that call may have saved what is there."""
        storage = self._storages.get(number)
        frame, place, before = call
        if storage is None or self._drop_if_safe(number):
            return
        if storage.may_be_saved:
            self._compare(storage, writer, frame, place, before)
        elif recorded:
            self._storages.keep_contents(number, storage, place)
        self._guards.add(number, storage)

    def _drop_if_safe(self, number: int) -> bool:
        """Stops watching a storage that nothing can write past its version counter any more; returns whether it did.

        That is so when the storage is gone, or when PyTorch makes all writes and no two version counters are left. It
        makes all writes of memory of an array from when only the storage keeps that array.
        """
        unsaved = self._storages.unsaved(number)
        storage = None if unsaved is not None else self._storages.get(number)
        start = unsaved.start if unsaved is not None else 0 if storage is None else storage.memory.start
        if storage is not None and storage.external:
            if not storage.is_out_of_reach():
                return False
            storage.external = False
        if start and len(self._recorder.tensor_ids.counters_at(start)) > 1:
            return False
        self._storages.drop(number)
        return True

    def _drop_guards(self, of_unsaved: bool = False) -> None:
        """Drops the guards of memory that is gone and of arrays that nobody can write any more.

        `of_unsaved`: also those of memory that no node has saved.
        """
        if not self._guards:
            return
        of_unsaved |= self._pass_ran
        self._pass_ran = False
        kept = []
        for number, storage in self._guards.pairs:
            if self._storages.get(number) is not storage:
                continue
            if storage.alias is not None and storage.alias() is None:
                storage.external = False
            elif of_unsaved and self._is_no_longer_saved(storage):
                self._storages.forget_contents(number, storage)
            else:
                kept.append((number, storage))
        self._guards.pairs[:] = kept

    def _is_no_longer_saved(self, storage: WatchedStorage) -> bool:
        """Returns whether no node has saved the memory, or all nodes that had saved it are gone."""
        tensor_ids = self._recorder.tensor_ids
        entry = tensor_ids.blocks.get(storage.memory.start)
        tensor = None if entry is None else entry[0]()
        if tensor is not None:
            return untyped_storage(tensor) is storage.memory.storage() and self._is_unsaved(storage.op, tensor)
        has_others = tensor_ids.counters_at(storage.memory.start) or not self._counts_are_complete()
        return not has_others and storage.is_array_alone()

    def _is_unsaved(self, op: str, tensor: torch.Tensor) -> bool:
        """Returns whether no node can have saved the memory of a tensor, nor a custom Function kept it on `ctx`.

        `op` made an alias of it.
        """
        return is_surely_unsaved(tensor, tensors_with_alias(op)) and self._counts_are_complete()

    def compare_all(self, frame: FrameType) -> None:
        """Compares all watched memory with its copies."""
        if not len(self._storages):
            return
        self._storages.sweep_if_due(self._recorder.tensor_ids.is_used, credit=SWEEP_CREDIT)
        place = place_of(self._recorder.sites, frame)
        for number, storage in self._storages.read_ones() if self.saved else ():
            if not storage.may_be_saved:
                continue
            if not storage.memory.is_there():
                self._storages.drop(number)
            elif self._is_no_longer_saved(storage):
                self._storages.forget_contents(number, storage)
            else:
                self._compare(storage, None, frame, place, None)
        self._guards.place, self._pass_ran = place, True

    def _compare(
        self, storage: WatchedStorage, writer: torch.Tensor | None, frame: FrameType, place: Place, before: int | None
    ) -> None:
        """Notes a change of the memory since its last copy. `place` is () if the line of `frame` made the change."""
        since = self._guards.place if storage in self._guards else storage.place
        storage.place = place
        memory = storage.memory
        if storage.contents is not None and not storage.is_changed():
            return
        now = memory.read()
        if now is not None and storage.contents is not None:
            first, last = differing_bytes(storage.contents, now)
            start, size = memory.start + first, last - first
        elif writer is not None:
            start, size = data_ptr(writer), extent_of(writer)
        else:
            return
        site = self._recorder.sites.site_of(frame)
        is_here = writer is not None or not place
        sites = (site,) if is_here else sites_of_writes(self._recorder.sites, since, place, frame)
        sequence = _next_sequence() if before is None or writer is not None else before
        change = Overwrite(
            sequence, memory.storage, start, size, contents=storage.contents, contents_start=memory.start
        )
        self._overwrites.add(change, storage.op, storage.site, sites or (site,), storage.tensor)
        storage.contents, storage.unchanged_checks = now, 0
