"""Memory that can be written past its version counter, and what is known of it."""

from __future__ import annotations

import ctypes
import weakref
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

from tensorlens.journal.rows import NONE
from tensorlens.tracer.frames.code_between_calls import Place
from tensorlens.tracer.isolation.torch_originals import data_ptr, element_size, numel, stride, untyped_storage
from tensorlens.tracer.recording.tensor_ids import is_fake

LARGE = 1024 * 1024  # bytes: of larger memory no copy is kept, and only changes made by torch itself are seen
_uses: Any = getattr(torch._C.TensorBase, "_use_count", None)  # of a tensor, by Python and by C++
_tensors_on: Any = getattr(torch._C, "_storage_Use_Count", None)  # tensors on a storage, and its own Python object

_HELD_BY_ARRAY = 2  # that tensor, and the storage's own Python object


@dataclass(slots=True)
class Memory:
    """The bytes of one storage, which is not kept alive."""

    storage: weakref.ref[Any]
    start: int  # address
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size

    def is_there(self) -> bool:
        """Whether the storage is alive, and still where and as large as it was."""
        storage = self.storage()
        return storage is not None and storage.data_ptr() == self.start and storage.nbytes() >= self.size

    def read(self) -> bytes | None:
        """A copy of the bytes; None where they are too many."""
        return ctypes.string_at(self.start, self.size) if self.size <= LARGE else None


def memory_of(tensor: torch.Tensor) -> Memory | None:
    """The memory of a tensor; None for one that has none that can be read from here."""
    try:
        if is_fake(tensor) or tensor.device.type != "cpu":
            return None
        storage = untyped_storage(tensor)
        start, size = storage.data_ptr(), storage.nbytes()
        return Memory(weakref.ref(storage), start, size) if start and size else None
    except (RuntimeError, NotImplementedError, AttributeError, ValueError):
        return None


@dataclass(slots=True)
class WatchedStorage:
    """Memory with an open way past its counter: `way` and `site` say what opened it, and on which `tensor`."""

    memory: Memory
    way: str
    site: int
    tensor: int
    alias: weakref.ref[Any] | None  # the array that writes to it, None for what can't be followed
    outside: bool  # torch does not see the writes
    saved: bool = True  # a node may have saved what is there; nothing else matters to a backward pass
    content: bytes | None = None  # what is there, as far as `saved` and not too large
    place: Place = ()  # where the program was when it was read
    checks: int = 0  # how often it was found unchanged, in a row

    def keep(self, place: Place) -> None:
        """Note that a node may have saved what is there now."""
        self.saved, self.content, self.place = True, self.memory.read(), place

    def let_go(self) -> None:
        """Note that no node has saved what is there."""
        self.saved, self.content = False, None

    def is_changed(self) -> bool:
        """Whether the copy that was kept differs from what is there now."""
        return self.content is not None and self.content != self.memory.read()


class WatchedStorages:
    """The watches of a run, by the number of their storage and by address."""

    def __init__(self, numbers: set[int]) -> None:
        self._numbers = numbers  # the storages that are watched, for the short way
        self._by_number: dict[int, WatchedStorage] = {}
        self._starts: dict[int, list[tuple[int, int]]] = {}  # by size (bits): (address, number), sorted
        self._sweep_at = 64
        self._credit = 0  # a sweep looks at all watches: it is paid for by as many questions to a few of them

    def __len__(self) -> int:
        return len(self._by_number)

    def __iter__(self) -> Iterator[tuple[int, WatchedStorage]]:
        return iter(list(self._by_number.items()))

    def __getitem__(self, number: int) -> WatchedStorage:
        return self._by_number[number]

    def get(self, number: int) -> WatchedStorage | None:
        """The watch on a storage, if it is still the same memory."""
        watch = self._by_number.get(number)
        return watch if watch is not None and watch.memory.is_there() else None

    def put(self, number: int, watch: WatchedStorage) -> None:
        """Add a watch, in place of an earlier one on the same storage."""
        self.drop(number)
        self._by_number[number] = watch
        self._numbers.add(number)
        insort(self._starts.setdefault(watch.memory.size.bit_length(), []), (watch.memory.start, number))

    def drop(self, number: int) -> None:
        watch = self._by_number.pop(number, None)
        self._numbers.discard(number)
        if watch is not None:
            starts = self._starts[watch.memory.size.bit_length()]
            del starts[bisect_left(starts, (watch.memory.start, number))]

    def sweep_at_times(self, is_used: Callable[[int], object], credit: int = 0) -> None:
        """Sweep when there are many, or once `credit` has been given as often as pays for it."""
        self._credit += credit
        if len(self) >= self._sweep_at or self._credit > len(self):
            self.sweep(is_used)

    def sweep(self, is_used: Callable[[int], object] = bool) -> None:
        """Drop the watches on memory that is gone, and those on what nothing saved and no tensor lies in any more;
        `is_used` says of an address whether one does."""
        for number, watch in list(self._by_number.items()):
            if not watch.memory.is_there() or not (watch.saved or is_used(watch.memory.start)):
                self.drop(number)
        self._sweep_at, self._credit = 2 * len(self) + 64, 0

    def at(self, address: int) -> Iterator[int]:
        """The storages whose memory holds an address: arrays may overlap."""
        for bits, starts in self._starts.items():
            position = bisect_left(starts, (address + 1, NONE))
            while position:
                position -= 1
                start, number = starts[position]
                if start + (1 << bits) <= address:
                    break
                if address < self._by_number[number].memory.end:
                    yield number


def is_held_by_its_array(storage: Any) -> bool:
    """Whether the one tensor on a storage is that which an array on it keeps, as its base."""
    return _tensors_on is not None and bool(_tensors_on(storage._cdata) <= _HELD_BY_ARRAY)


def is_surely_unsaved(tensor: torch.Tensor, sharing: int) -> bool:
    """Whether no node can have saved a tensor or another one on its memory: no more than `sharing` tensors lie there,
    besides the base of a view, and nothing but Python uses them. The base is used by the view as well, and a leaf that
    requires grad by the node that takes its gradient."""
    if _uses is None or _tensors_on is None:
        return False
    storage, base = untyped_storage(tensor), tensor._base
    if _tensors_on(storage._cdata) > sharing + 1 + (base is not None):
        return False
    return _is_pythons(tensor, 1) and (base is None or _is_pythons(base, 2))


def _is_pythons(tensor: torch.Tensor, uses: int) -> bool:
    return bool(_uses(tensor) <= uses + (tensor.requires_grad and tensor.is_leaf))


def address_of(tensor: torch.Tensor) -> int:
    try:
        return 0 if is_fake(tensor) else data_ptr(tensor)
    except (RuntimeError, ValueError, NotImplementedError):
        return 0


def extent_of(tensor: torch.Tensor) -> int:
    """How many bytes lie between the first and the last element of a tensor, both included."""
    last = sum((n - 1) * step for n, step in zip(tensor.shape, stride(tensor), strict=True))
    return (last + 1) * element_size(tensor) if numel(tensor) else 0


def reference(alias: Any) -> weakref.ref[Any] | None:
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


def difference(before: bytes, now: bytes) -> tuple[int, int]:
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
