"""Finds the watched storages by number and by address, and drops those that no longer matter."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

import torch

from tensorlens.journal.rows import NONE
from tensorlens.tracer.frames.code_between_calls import Place
from tensorlens.tracer.recording.unsaved_storage import UnsavedStorage
from tensorlens.tracer.saved_tensors.watched_storage import WatchedStorage, memory_of


class WatchedStorages:
    """The watched storages of a run, by their number and by address.

    The fast path looks at `by_number`, too, and adds to it, but not beyond the number that `set_due` gives it.

    An exception of a signal handler may interrupt each statement here. So a storage is added to `by_number` before it
    is found by address, and removed from there last; one that is not found by address does no harm.
    """

    def __init__(self, by_number: dict[int, WatchedStorage | UnsavedStorage], set_due: Callable[[int], object]) -> None:
        self._by_number = by_number
        self._starts: dict[int, list[tuple[int, int]]] = {}  # bit length of the size -> sorted (address, number)
        self.saved: set[int] = set()  # the numbers of those that a node may have saved
        self._set_due = set_due
        self._sweep_when(64)
        self._credit = 0  # visits that a sweep may make: it visits every storage

    def __len__(self) -> int:
        return len(self._by_number)

    def __getitem__(self, number: int) -> WatchedStorage | UnsavedStorage:
        return self._by_number[number]

    def get(self, number: int) -> WatchedStorage | None:
        """Returns the watched storage with a number, if it still has the same memory."""
        storage = self._by_number.get(number)
        return storage if type(storage) is WatchedStorage and storage.memory.is_there() else None

    def unsaved(self, number: int) -> UnsavedStorage | None:
        """Returns what is known of a storage of which nothing was read yet."""
        storage = self._by_number.get(number)
        return storage if type(storage) is UnsavedStorage else None

    def read_ones(self) -> list[tuple[int, WatchedStorage]]:
        """Returns the storages whose memory was read."""
        every = list(self._by_number.items())
        return [(number, storage) for number, storage in every if type(storage) is WatchedStorage]

    def put_unsaved(self, number: int, storage: UnsavedStorage) -> None:
        """Adds a storage of which nothing was read yet, in place of an earlier one with its number."""
        self.drop(number)
        self._by_number[number] = storage

    def put(self, number: int, storage: WatchedStorage) -> None:
        """Adds a storage, in place of an earlier one with its number, or of one that is gone from its address."""
        by_number, memory = self._by_number, storage.memory
        if number in by_number:
            self.drop(number)
        by_number[number] = storage
        if storage.may_be_saved:
            self.saved.add(number)
        starts, place = self._starts.setdefault(memory.size.bit_length(), []), (memory.start, number)
        position = bisect_left(starts, place)
        start, before = starts[position - 1] if position else (0, NONE)
        if start == memory.start and _is_gone(by_number[before]):
            starts[position - 1] = place
            self.saved.discard(before)
            del by_number[before]
        else:
            starts.insert(position, place)

    def read(self, number: int, tensor: torch.Tensor) -> None:
        """Reads the memory of a storage, that of a tensor, if nothing of it was read yet."""
        unsaved = self.unsaved(number)
        if unsaved is None:
            return
        memory = memory_of(tensor)
        if memory is None:
            self.drop(number)
        else:
            made = unsaved.op, unsaved.site, unsaved.tensor
            self.put(number, WatchedStorage(memory, *made, None, external=False, may_be_saved=False))

    def drop(self, number: int) -> None:
        """Stops watching a storage."""
        storage = self._by_number.get(number)
        if type(storage) is WatchedStorage:
            starts, place = self._starts.get(storage.memory.size.bit_length(), []), (storage.memory.start, number)
            position = bisect_left(starts, place)
            if starts[position : position + 1] == [place]:
                del starts[position]
            self.saved.discard(number)
        self._by_number.pop(number, None)

    def sweep_if_due(self, is_used: Callable[[int, int | None], object], credit: int = 0) -> None:
        """Sweeps when there are many storages, or when the `credit` of all calls together exceeds their number."""
        self._credit += credit
        if len(self._by_number) >= self._sweep_at or self._credit > len(self._by_number):
            self.sweep(is_used)

    def sweep(self, is_used: Callable[[int, int | None], object]) -> None:
        """Drops freed memory, and memory that no node has saved and no tensor uses.

        `is_used` takes an address, and the number of the storage if another one may be there by now.
        """
        for number, storage in list(self._by_number.items()):
            if isinstance(storage, UnsavedStorage):
                stays = is_used(storage.start, number)
            else:
                stays = storage.memory.is_there() and (storage.may_be_saved or is_used(storage.memory.start, None))
            if not stays:
                self.drop(number)
        self._credit = 0
        self._sweep_when(2 * len(self) + 64)

    def _sweep_when(self, count: int) -> None:
        """Sets how many storages there are when they are swept next."""
        self._sweep_at = count
        self._set_due(count)

    def at(self, address: int) -> list[int]:
        """Finds the storages whose memory contains an address: there may be several, since arrays overlap."""
        found: list[int] = []
        for bits, starts in self._starts.items():
            if not starts or address < starts[0][0] or address >= starts[-1][0] + (1 << bits):
                continue
            position = bisect_left(starts, (address + 1, NONE))
            while position:
                position -= 1
                start, number = starts[position]
                if start + (1 << bits) <= address:
                    break
                storage = self._by_number[number]
                if type(storage) is WatchedStorage and address < storage.memory.end:
                    found.append(number)
        return found

    def keep_contents(self, number: int, storage: WatchedStorage, place: Place) -> None:
        """Copies the bytes of a storage: a node may have saved them."""
        self.saved.add(number)
        storage.keep_contents(place)

    def forget_contents(self, number: int, storage: WatchedStorage) -> None:
        """Drops the copy of a storage's bytes: no node has saved them."""
        self.saved.discard(number)
        storage.forget_contents()


def _is_gone(storage: WatchedStorage | UnsavedStorage) -> bool:
    return type(storage) is WatchedStorage and storage.memory.storage() is None
