"""Compares small arrays after every call, so that a change is noticed with the line that made it.

Few arrays are compared at a time: the ones used last, and those for as long as there is reason to expect a change.
"""

from __future__ import annotations

import ctypes

from tensorlens.tracer.frames.code_between_calls import Place
from tensorlens.tracer.saved_tensors.watched_storage import WatchedStorage

SMALL = 16 * 1024  # bytes: larger memory is not compared at every call
BUDGET = 64 * 1024  # bytes compared at every call, all in all
MOST = 8  # arrays, likewise
PATIENCE = 1_000  # calls in a row without a change, after which an array is compared only where it is used


class ArrayGuards:
    """The arrays that are compared. `pairs`: their watches, with the numbers of their storages; the recorder reads it
    too. `place`: where the program was when they were compared last."""

    def __init__(self, pairs: list[tuple[int, WatchedStorage]]) -> None:
        self.pairs = pairs
        self.place: Place = ()

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def __contains__(self, watch: object) -> bool:
        return any(watch is other for _, other in self.pairs)

    def add(self, number: int, watch: WatchedStorage) -> None:
        """Compare an array from here on, where it is small; the one that was added first makes room."""
        size = watch.memory.size
        if not (watch.outside and watch.saved) or size > SMALL or watch.checks >= PATIENCE or watch in self:
            return
        pairs = self.pairs
        while pairs and (len(pairs) >= MOST or sum(other.memory.size for _, other in pairs) + size > BUDGET):
            self._release(pairs[0])
        pairs.append((number, watch))

    def is_any_changed(self) -> bool:
        """Whether an array has changed since it was compared last, or is gone."""
        read, tired = ctypes.string_at, None
        for pair in self.pairs:
            watch = pair[1]
            memory = watch.memory
            storage = memory.storage()
            if storage is None or storage.data_ptr() != memory.start or storage.nbytes() < memory.size:
                return True
            if read(memory.start, memory.size) != watch.content:
                return True
            watch.checks += 1
            if watch.checks >= PATIENCE:
                tired = pair
        if tired is not None:
            self._release(tired)
        return False

    def _release(self, pair: tuple[int, WatchedStorage]) -> None:
        self.pairs.remove(pair)
        pair[1].place = self.place
