"""Describes memory that can be written past its version counter: its bytes, its aliases, who else uses it."""

from __future__ import annotations

import ctypes
import sys
import weakref
from dataclasses import dataclass
from functools import cache

import torch

from tensorlens.tracer.frames.code_between_calls import Place
from tensorlens.tracer.isolation.readable import is_in_main_memory
from tensorlens.tracer.isolation.torch_features import USES_OF_STORAGE, USES_OF_TENSOR, StorageReference, refer_to
from tensorlens.tracer.isolation.torch_originals import data_ptr, element_size, numel, stride, untyped_storage
from tensorlens.tracer.recording.compiled import has_bytes
from tensorlens.tracer.recording.tensor_ids import PLAIN, is_fake

LARGE = 1024 * 1024  # bytes: larger memory is not copied, and only changes that PyTorch makes itself are seen there
_TENSORS_WITH_ALIAS = {"from_numpy": 1, "as_tensor": 1, "asarray": 1, "numpy": 2, "__array__": 2, "__get__": 2}
COUNTS_USES = USES_OF_STORAGE is not None and USES_OF_TENSOR is not None
_ARRAY_ALONE = 2  # the tensor that the array keeps, and the storage's own Python object


@dataclass(slots=True)
class Memory:
    """The bytes of one storage. Does not keep the storage alive."""

    storage: StorageReference
    start: int  # address
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size

    def is_there(self) -> bool:
        """Returns whether the storage is alive and neither moved nor shrank."""
        storage = self.storage()
        return storage is not None and storage.data_ptr() == self.start and storage.nbytes() >= self.size

    def read(self) -> bytes | None:
        """Copies the bytes; None if they are too many."""
        return ctypes.string_at(self.start, self.size) if self.size <= LARGE else None

    def restore(self, contents: bytes) -> None:
        """Writes a copy of the bytes back. Only a further run that skips a write does this."""
        ctypes.memmove(self.start, contents, len(contents))


def memory_of(tensor: torch.Tensor) -> Memory | None:
    """Returns the memory of a tensor; None if it is not in this process's main memory."""
    try:
        if not is_in_main_memory(tensor) or (type(tensor) not in PLAIN and is_fake(tensor)):
            return None
        storage = untyped_storage(tensor)
        start, size = storage.data_ptr(), storage.nbytes()
        return Memory(refer_to(storage), start, size) if start and size else None
    except (RuntimeError, NotImplementedError, AttributeError, ValueError):
        return None


@dataclass(slots=True)
class WatchedStorage:
    """Memory that an alias can write past its version counter."""

    memory: Memory
    op: str  # that made the alias
    site: int  # of that operation
    tensor: int  # id of the tensor that it was made of
    alias: weakref.ref[object] | None  # the array that can write there; None if no weak reference can follow it
    external: bool  # others than PyTorch can write there
    is_arrays: bool = False  # the alias owns the memory, and the storage keeps it
    may_be_saved: bool = True  # by a node. Other memory does not matter to a backward pass
    contents: bytes | None = None  # the last copy, if the memory `may_be_saved` and is not too large
    place: Place = ()  # in the program, when the copy was made
    unchanged_checks: int = 0  # in a row

    def keep_contents(self, place: Place) -> None:
        """Copies the bytes: a node may have saved them."""
        self.may_be_saved, self.contents, self.place = True, self.memory.read(), place

    def forget_contents(self) -> None:
        """Drops the copy: no node has saved the bytes."""
        self.may_be_saved, self.contents = False, None

    def is_changed(self) -> bool:
        """Returns whether the bytes differ from their last copy."""
        return self.contents is not None and not has_bytes(self.memory.start, self.contents)

    def is_out_of_reach(self) -> bool:
        """Returns whether the program has lost an array, which only the storage keeps, and nothing changed it before.

        A view of the array or a buffer of it keeps it, too.
        """
        if not self.is_arrays or self.alias is None or _references(self.alias) > _ONE_REFERENCE:
            return False
        return not self.may_be_saved or (self.contents is not None and not self.is_changed())

    def is_array_alone(self) -> bool:
        """Returns whether the alias, an array that was made of a tensor, keeps the only tensor on the memory."""
        live = self.memory.storage()
        if live is None or self.alias is None or self.alias() is None:
            return False
        is_made_of_tensor = self.op.rpartition(".")[2] in ("numpy", "__array__")
        return is_made_of_tensor and USES_OF_STORAGE is not None and USES_OF_STORAGE(live._cdata) <= _ARRAY_ALONE


@cache
def tensors_with_alias(op: str) -> int:
    """Returns how many tensors are on a storage that only an alias and its source use. `op` made the alias."""
    return _TENSORS_WITH_ALIAS.get(op.rpartition(".")[2], 0)


def is_surely_unsaved(tensor: torch.Tensor, sharing: int) -> bool:
    """Returns whether no node can have saved a tensor, or another one on its memory.

    That is so if at most `sharing` tensors are on the storage, not counting the base of a view, and only Python uses
    the tensor and its base. A view also uses its base, and the node that accumulates its gradient also uses a leaf.
    """
    if USES_OF_TENSOR is None or USES_OF_STORAGE is None:
        return False
    storage, base = untyped_storage(tensor), tensor._base
    if USES_OF_STORAGE(storage._cdata) > sharing + 1 + (base is not None):
        return False
    if USES_OF_TENSOR(tensor) > 1 + (tensor.requires_grad and tensor.is_leaf):
        return False
    return base is None or USES_OF_TENSOR(base) <= 2 + (base.requires_grad and base.is_leaf)


def address_of(tensor: torch.Tensor) -> int:
    """Returns the address of the first element; 0 for a tensor without memory."""
    try:
        return 0 if is_fake(tensor) else data_ptr(tensor)
    except (RuntimeError, ValueError, NotImplementedError):
        return 0


def extent_of(tensor: torch.Tensor) -> int:
    """Counts the bytes from the first to the last element of a tensor, both included."""
    last = sum((n - 1) * step for n, step in zip(tensor.shape, stride(tensor), strict=True))
    return (last + 1) * element_size(tensor) if numel(tensor) else 0


def _references(ref: weakref.ref[object]) -> int:
    """Counts the references to an object, and a few of this function's own."""
    kept = ref()
    return sys.getrefcount(kept)


class _Kept:
    """An object with one reference."""


_KEPT = _Kept()
_ONE_REFERENCE = _references(weakref.ref(_KEPT))


def owns_its_memory(alias: object) -> bool:
    """Returns whether an alias is an array that was not made of other memory."""
    return type(alias).__name__ == "ndarray" and getattr(alias, "base", alias) is None


def weak_alias(alias: object) -> weakref.ref[object] | None:
    """Returns a weak reference to an array; if that is a view, to the array that owns the memory."""
    while type(base := getattr(alias, "base", None)) is type(alias) and alias is not None:
        alias = base
    if base is not None and type(alias).__name__ == "ndarray" and not isinstance(base, torch.Tensor):
        return None  # the memory belongs to another object, which may write there
    try:
        return None if alias is None else weakref.ref(alias)
    except TypeError:
        return None


def differing_bytes(before: bytes, now: bytes) -> tuple[int, int]:
    """Returns the positions of the first byte that differs and of the one after the last."""
    size = min(len(before), len(now))
    first, high = 0, size
    while first < high:  # bisect the longest common beginning
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
