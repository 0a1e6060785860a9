"""The rows of tensors and of their storages, and those that say which tensors are alive."""

from __future__ import annotations

from typing import NamedTuple


class StorageRow(NamedTuple):
    """A block of memory, when a tensor on it is first met."""

    storage: int
    nbytes: int


class TensorRow(NamedTuple):
    """A tensor, when it is first met. New tensors of calls of a template have no such row."""

    tensor: int
    storage: int | None
    counter: int  # of versions
    shape: tuple[int, ...]
    dtype: str
    device: str
    type: str
    base: int | None


class TensorsRow(NamedTuple):
    """Tensors of one kind in a row, when they are first met. The compiled fast path writes it in place of theirs."""

    tensors: bytes  # their ids, 8 bytes each
    nbytes: int | None  # of the storage of each; None: they are views
    place: tuple[int | None, int, int] | None  # storage, version counter and base; None: each has its own memory
    shape: tuple[int, ...]
    dtype: str
    device: str
    type: str


class TensorKind(NamedTuple):
    """Facts that all tensors of a `TensorsRow` share."""

    nbytes: int | None
    place: tuple[int | None, int, int] | None
    shape: tuple[int, ...]
    dtype: str
    device: str
    type: str

    def row(self, tensor: int) -> TensorRow:
        """Returns the row of one of the tensors."""
        storage, counter, base = self.place or (tensor, tensor, None)
        return TensorRow(tensor, storage, counter, self.shape, self.dtype, self.device, self.type, base)


class AliveRow(NamedTuple):
    """A census: the reader may forget every other tensor."""

    tensors: tuple[int, ...]
