"""Ids for tensors, storages and version counters that are never reused, without keeping anything alive.

An address is reused once its owner is freed, so every entry carries a weak reference: PyTorch keeps the Python object
of a tensor or storage for as long as the C++ one lives, hence a live reference means the same object.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch

from tensorlens.journal import STORAGE, TENSOR

NONE = -1
_PLAIN = {torch.Tensor, torch.nn.Parameter}
_texts: dict[Any, str] = {}  # dtypes and devices as the trace names them


class Identity:
    """Gives tensors their ids. `rows` receives a TENSOR or STORAGE row for each new one."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = rows
        self.known: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}
        self._storages: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._counters: dict[int, int] = {}  # tensor id -> counter id, where it is not the tensor's own
        self._tensors = self._blocks = 0
        self.latest = NONE  # the storage of the tensor that was given its id last

    def of(self, tensor: torch.Tensor) -> int | None:
        """The id of a known tensor, or None."""
        entry = self.known.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def meet(self, tensor: torch.Tensor, source: int = NONE) -> int:
        """The id of `tensor`, given on first sight. `source` is the tensor whose version counter it shares.

        A view shares the counter of its base; `source` is needed where there is none, as after `detach()`.
        """
        found = self.of(tensor)
        return self.add(tensor, source) if found is None else found

    def add(self, tensor: torch.Tensor, source: int = NONE) -> int:
        """Give an unknown tensor its id."""
        base = tensor._base
        base_id = NONE if base is None else self.meet(base)
        number = self._tensors
        self._tensors += 1
        self.known[id(tensor)] = (weakref.ref(tensor), number)
        shared = base_id if base_id != NONE else source
        counter = number if shared == NONE else self._counters.get(shared, shared)
        if counter != number:
            self._counters[number] = counter
        dtype, device = tensor.dtype, tensor.device
        self.latest = self.storage(tensor)
        row = (
            TENSOR,
            number,
            self.latest,
            counter,
            _shape(tensor),
            _texts.get(dtype) or _text(dtype),
            _texts.get(device) or _text(device),
            type(tensor).__name__,
            base_id,
        )
        self._rows.append(row)
        return number

    def counter(self, number: int) -> int:
        return self._counters.get(number, number)

    def storage(self, tensor: torch.Tensor) -> int:
        """The id of the tensor's storage, or NONE where it has none (sparse tensors, functorch's wrappers, ...)."""
        try:
            storage = tensor.untyped_storage()
            address = storage._cdata
        except (RuntimeError, NotImplementedError, AttributeError, ValueError):
            return NONE
        entry = self._storages.get(address)
        if entry is not None and entry[0]() is storage:
            return entry[1]
        number = self._blocks
        self._blocks += 1
        self._storages[address] = (weakref.ref(storage), number)
        self._rows.append((STORAGE, number, storage.nbytes()))
        return number

    def live(self) -> list[tuple[int, torch.Tensor]]:
        """Every known tensor that is still alive, by id."""
        pairs = [(number, tensor) for ref, number in list(self.known.values()) if (tensor := ref()) is not None]
        return sorted(pairs, key=lambda pair: pair[0])

    def step_aside(self, *tensors: torch.Tensor) -> list[int | None]:
        """Drop the weak references to `tensors` (`swap_tensors` refuses tensors that have any); see `resume`."""
        return [entry[1] if (entry := self.known.pop(id(t), None)) is not None else None for t in tensors]

    def resume(self, tensors: tuple[torch.Tensor, ...], numbers: list[int | None]) -> None:
        for tensor, number in zip(tensors, numbers, strict=True):
            if number is not None:
                self.known[id(tensor)] = (weakref.ref(tensor), number)


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    """The sizes; none for a tensor that has no shape yet (a lazy module's parameter) or only a symbolic one."""
    try:
        shape = tuple(tensor.shape)
        return shape if type(tensor) in _PLAIN else tuple(map(int, shape))
    except (RuntimeError, TypeError, ValueError):
        return ()


def _text(value: Any) -> str:
    text = _texts[value] = str(value).removeprefix("torch.")
    return text
