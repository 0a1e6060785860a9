"""Compares small arrays after every call, so that a change is noticed with its line.

Only a few arrays are compared: those used last, and only as long as a change is likely.
"""

from __future__ import annotations

from tensorlens.tracer.frames.code_between_calls import Place
from tensorlens.tracer.recording.compiled import has_bytes
from tensorlens.tracer.saved_tensors.watched_storage import WatchedStorage

SMALL = 16 * 1024  # bytes: larger memory is not compared at every call
MAX_BYTES = 64 * 1024  # compared at every call, in all arrays together
MAX_ARRAYS = 8
MAX_UNCHANGED = 1_000  # calls in a row without a change; then the array is compared only where it is used


class ArrayGuards:
    """Compares a few arrays after every call.

    `pairs` holds (number, watched storage) of each; the fast path reads it too. `place` is the place in the program of
    the last comparison.
    """

    def __init__(self, pairs: list[tuple[int, WatchedStorage]]) -> None:
        self.pairs = pairs
        self.place: Place = ()

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def __contains__(self, storage: object) -> bool:
        return any(storage is other for _, other in self.pairs)

    def add(self, number: int, storage: WatchedStorage) -> None:
        """Compares an array from here on if it is small. The array that was added first makes room."""
        size = storage.memory.size
        if (
            not (storage.external and storage.may_be_saved)
            or size > SMALL
            or storage.unchanged_checks >= MAX_UNCHANGED
            or storage in self
        ):
            return
        pairs = self.pairs
        while pairs and (len(pairs) >= MAX_ARRAYS or sum(other.memory.size for _, other in pairs) + size > MAX_BYTES):
            self._remove(pairs[0])
        pairs.append((number, storage))

    def is_any_changed(self) -> bool:
        """Returns whether an array has changed since its last comparison, or is gone."""
        settled = None
        for pair in self.pairs:
            storage = pair[1]
            memory = storage.memory
            live = memory.storage()
            if live is None or live.data_ptr() != memory.start or live.nbytes() < memory.size:
                return True
            if storage.contents is None or not has_bytes(memory.start, storage.contents):
                return True
            storage.unchanged_checks += 1
            if storage.unchanged_checks >= MAX_UNCHANGED:
                settled = pair
        if settled is not None:
            self._remove(settled)
        return False

    def _remove(self, pair: tuple[int, WatchedStorage]) -> None:
        self.pairs.remove(pair)
        pair[1].place = self.place
