"""Gives tensors, storages and version counters ids that are never reused, and keeps nothing alive.

An address is reused once its owner is freed, so every entry has a weak reference. PyTorch keeps the Python object of a
tensor as long as the C++ one lives, so a live reference means the same tensor. A storage has the id of the first tensor
seen on it. Which storage is at an address follows from the live tensors seen there.
"""

from __future__ import annotations

import weakref
from _thread import RLock
from collections.abc import Callable, Container, Iterator
from itertools import count
from typing import TYPE_CHECKING, Any

import torch

from tensorlens.journal.memory_rows import AliveRow, StorageRow, TensorRow
from tensorlens.journal.row_buffer import RowBuffer
from tensorlens.journal.rows import NONE, optional
from tensorlens.tracer.isolation.torch_originals import untyped_storage
from tensorlens.tracer.recording import compiled

if TYPE_CHECKING:
    from tensorlens.tracer.recording import _fast_path

SWEEP = 1024  # new tensors between two sweeps, at least; so few entries fit into the processor's cache
CENSUS = 32_768  # new tensors between two rows of live tensors, at least
MANY_PAST = 1 << 18  # addresses of dead tensors after which those from before are forgotten
PLAIN: set[type] = {torch.Tensor, torch.nn.Parameter}
texts: dict[object, str] = {}  # the names of dtypes and devices in a trace

Entry = tuple[
    "weakref.ref[torch.Tensor]", int, int, int
]  # the tensor, and the ids of it, its version counter and its storage

Table = Any  # `dict[int, Entry]`, or the same in C


class TensorIds:
    """Gives tensors their ids. `rows` receives a TENSOR or STORAGE row for each new one."""

    def __init__(self, rows: RowBuffer) -> None:
        self._rows = rows
        self.after_census: Callable[[], object] | None = None  # called when it is a good time to read the rows
        self.known: Table = compiled.table()  # by `id(tensor)`
        self.blocks: Table = compiled.table()  # by the address of a storage: the last tensor seen there
        self._past = compiled.storages()  # by address, too: the storage of the last tensor seen there, which is dead
        self._older_past = compiled.storages()  # the same, of those that died earlier
        self.sharers: dict[int, list[weakref.ref[torch.Tensor]]] = {}  # storage -> its other tensors that are not views
        self.in_c: _fast_path.FastPath | None = None  # the compiled fast path does the same for plain tensors
        self.adding = RLock()  # two threads must not give two ids to one tensor
        self._counter = compiled.counter()
        self.numbers: Iterator[int] = count() if self._counter is None else self._counter
        self.set_due(SWEEP)
        self._census_due = CENSUS

    def set_due(self, number: int) -> None:
        """Sets the id at which to sweep next."""
        self.due = number
        if self._counter is not None:
            self._counter.due = number

    def find(self, tensor: torch.Tensor) -> int | None:
        """Returns the id of a known tensor, or None."""
        if self.in_c is not None:
            return self.in_c.find(tensor)
        entry = self.known.get(id(tensor))
        return entry[1] if entry is not None and entry[0]() is tensor else None

    def id_of(self, tensor: torch.Tensor, source: Entry | None = None) -> int:
        """Returns the id of a tensor; a new one gets its id. `source`: see `add`."""
        number = self.find(tensor)
        return self.add(tensor, source)[1] if number is None else number

    def add_alias(self, tensor: torch.Tensor, storage: int) -> Entry:
        """Gives an id to a new tensor on a known storage that has a version counter of its own. Writes no row."""
        number = next(self.numbers)
        entry = self.known[id(tensor)] = (weakref.ref(tensor), number, number, storage)
        self._note_at_address(untyped_storage(tensor).data_ptr(), entry)
        return entry

    def add(self, tensor: torch.Tensor, source: Entry | None = None) -> Entry:
        """Gives a new tensor its id. `source` is no base of it, but has the same memory and version counter."""
        with self.adding:
            entry: Entry | None = self.known.get(id(tensor))  # another thread may have added it
            return entry if entry is not None and entry[0]() is tensor else self._add(tensor, source)

    def _add(self, tensor: torch.Tensor, source: Entry | None) -> Entry:
        if self.in_c is not None and source is None and (made := self.in_c.add(tensor)) is not None:
            return made
        base = tensor._base
        shared = source if base is None else self.entry(base)
        number = next(self.numbers)
        address, block, nbytes = (0, 0, 0) if base is not None else _memory(tensor)
        if shared is not None:
            counter, storage = shared[2:]
        else:
            counter, storage = number, self._storage(address, block, nbytes, number)
        entry = self.known[id(tensor)] = (weakref.ref(tensor), number, counter, storage)
        if address:
            self._note_at_address(address, entry)
        self.write_row(tensor, entry, None if base is None or shared is None else shared[1])
        return entry

    def write_row(self, tensor: torch.Tensor, entry: Entry, base: int | None = None) -> None:
        """Writes the TENSOR row of a new tensor."""
        _, number, counter, storage = entry
        dtype, device = text_of(tensor.dtype), text_of(tensor.device)
        kind = type(tensor).__name__
        self._rows.write(TensorRow, number, optional(storage), counter, shape_of(tensor), dtype, device, kind, base)
        if number >= self.due:
            self.sweep(number)

    def entry(self, tensor: torch.Tensor) -> Entry:
        """Returns the entry of a tensor; a new one gets its id."""
        if self.in_c is not None:
            return self.in_c.entry(tensor) or self.add(tensor)
        entry = self.known.get(id(tensor))
        return entry if entry is not None and entry[0]() is tensor else self.add(tensor)

    def note_moved(self, tensor: torch.Tensor) -> None:
        """Notes the memory of a tensor that `.data = ...` or `set_` has put elsewhere."""
        entry, base = self.entry(tensor), tensor._base
        address, block, nbytes = _memory(tensor)
        if base is None and address:
            storage = self._storage(address, block, nbytes, NONE)
            moved = self.known[id(tensor)] = (*entry[:3], storage)
            self._note_at_address(address, moved)

    def saved_storage(self, tensor: torch.Tensor) -> int:
        """Returns the id of a saved tensor's storage, or NONE.

        The graph has kept that storage alive, so the last tensor seen at its address was on it, even if it is dead now.
        A run that uses very many addresses has forgotten the tensors that died long ago.
        """
        address = _memory(tensor)[0]
        entry: Entry | None = self.blocks.get(address)
        if entry is not None:
            return entry[3]
        past: int | None = self._past.get(address, None)
        return self._older_past.get(address, NONE) if past is None else past

    def _storage(self, address: int, block: int, nbytes: int, number: int) -> int:
        """Returns the id of a storage, `NONE` without one. A new one gets `number`, or a new id if that is `NONE`."""
        if not block:
            return NONE
        entry: Entry | None = self.blocks.get(address) if address else None
        if entry is not None:
            for ref in (entry[0], *self.sharers.get(entry[3], ())):
                holder = ref()
                if holder is not None and _memory(holder)[1] == block:
                    return entry[3]
        if number == NONE:
            number = next(self.numbers)
        self._rows.write(StorageRow, number, nbytes)
        return number

    def _note_at_address(self, address: int, entry: Entry) -> None:
        """Notes a tensor as the last one seen at the address of its storage, and keeps the others on the storage."""
        before = self.blocks.get(address)
        if before is not None and before[3] == entry[3]:
            sharers = self.sharers.setdefault(entry[3], [])
            sharers[:] = [ref for ref in (*sharers, before[0]) if ref() is not None]
        self.blocks[address] = entry

    def counters_at(self, address: int) -> set[int]:
        """Returns the version counters of the live tensors on the storage at an address."""
        if self.in_c is not None:
            return self.in_c.counters_at(address)
        latest = self.blocks.get(address)
        refs = () if latest is None else (latest[0], *self.sharers.get(latest[3], ()))
        holders = [tensor for ref in refs if (tensor := ref()) is not None]
        return {self.entry(tensor)[2] for tensor in holders}

    def is_used(self, address: int, storage: int | None) -> bool:
        """Returns whether a tensor uses the storage at an address: the one with that number, unless it is None."""
        if storage is not None:
            latest = self.blocks.get(address)
            if latest is None or latest[3] != storage:
                return False
        return bool(self.counters_at(address))

    def live(self) -> list[tuple[int, torch.Tensor]]:
        """Returns every known tensor that is still alive, by id."""
        entries = list(self.known.values())
        pairs = [(entry[1], tensor) for entry in entries if (tensor := entry[0]()) is not None]
        return sorted(pairs, key=lambda pair: pair[0])

    def sweep(self, number: int) -> None:
        """Forgets dead tensors, and now and then writes which are alive, so that the reader can forget the others.

        `number` is the latest id.
        """
        compiled.drop_dead(self.known)
        self.set_due(number + max(SWEEP, len(self.known) // 2))
        if number < self._census_due:
            return
        self._census_due = number + max(CENSUS, len(self.known))
        for storage, refs in list(self.sharers.items()):
            if not any(ref() is not None for ref in refs):
                self.sharers.pop(storage, None)
        compiled.retire_dead(self.blocks, self._past, self.sharers)
        if len(self._past) >= MANY_PAST:
            self._older_past, self._past = self._past, compiled.storages()
        self._rows.write(AliveRow, tuple(sorted(compiled.ids_in(self.known))))
        if self.after_census is not None:
            self.after_census()

    def forget_unrecorded(self, requiring_grad: Container[int]) -> None:
        """Forgets the tensors that calls without a record may have changed. They get new ids when they are used again.

        Leaves stay known if they are where they were and require grad as before: `requiring_grad` has the ids of those
        that did.
        """
        if self.in_c is None or not self.in_c.forget_unrecorded():
            self._forget_unrecorded(requiring_grad)
        self._past.clear()
        self._older_past.clear()

    def _forget_unrecorded(self, requiring_grad: Container[int]) -> None:
        compiled.drop_dead(self.known)  # most are dead
        kept: dict[int, Entry] = {}
        blocks: dict[int, Entry] = {}
        for number, tensor in self.live():
            entry, base, is_same = self.known[id(tensor)], tensor._base, False
            if type(tensor) not in PLAIN or not _is_same_leaf(tensor, number in requiring_grad):
                pass
            elif base is None:
                address, block, _ = _memory(tensor)
                latest = self.blocks.get(address) if address else None
                is_same = not block or (latest is not None and latest[3] == entry[3])
                if is_same and address:
                    blocks[address] = entry
            else:
                of_base = kept.get(id(base))
                is_same = of_base is not None and of_base[3] == entry[3]
            if is_same:
                kept[id(tensor)] = entry
            else:
                self.known.pop(id(tensor), None)
        for address, entry in blocks.items():
            self.blocks[address] = entry
        compiled.retire_dead(self.blocks, self._past, {})
        for address, _ in list(self.blocks.items()):
            if address not in blocks:
                self.blocks.pop(address, None)

    def step_aside(self, *tensors: torch.Tensor) -> list[Entry | None]:
        """Drops the weak references to tensors until `resume`: `swap_tensors` accepts no tensor that has any."""
        entries = [self.known.pop(id(tensor), None) for tensor in tensors]
        refs = {id(entry[0]) for entry in entries if entry is not None}
        for address in [address for address, entry in self.blocks.items() if id(entry[0]) in refs]:
            del self.blocks[address]
            self._past[address] = NONE
        for sharers in self.sharers.values():
            sharers[:] = [ref for ref in sharers if id(ref) not in refs]
        return [entry and (None, *entry[1:]) for entry in entries]

    def resume(self, tensors: tuple[torch.Tensor, ...], entries: list[Entry | None]) -> None:
        """Restores the weak references that `step_aside` dropped. `entries` is what that returned."""
        for tensor, entry in zip(tensors, entries, strict=True):
            if entry is not None:
                again = self.known[id(tensor)] = (weakref.ref(tensor), *entry[1:])
                address = _memory(tensor)[0]
                if address:
                    self._note_at_address(address, again)


def _is_same_leaf(tensor: torch.Tensor, required_grad: bool) -> bool:
    try:
        return tensor.is_leaf and tensor.requires_grad == required_grad
    except RuntimeError:  # a view that PyTorch refuses to judge
        return False


def _memory(tensor: torch.Tensor) -> tuple[int, int, int]:
    """Returns (address, `_cdata`, bytes) of the storage. Without memory the address is 0; without a storage all are 0.

    The storage of a tensor of `torch.func.functionalize` is not read: PyTorch would treat the tensor as a view then.
    """
    if torch._is_functional_tensor(tensor):
        return 0, 0, 0
    try:
        storage = untyped_storage(tensor)
        return 0 if is_fake(tensor) else storage.data_ptr(), storage._cdata, storage.nbytes()
    except (RuntimeError, NotImplementedError, AttributeError, ValueError):
        return 0, 0, 0


def is_fake(tensor: torch.Tensor) -> bool:
    """Returns whether a tensor has no memory, as in the traces of PyTorch itself. Reading its address may warn."""
    kind = type(tensor)
    return tensor.is_meta if kind in PLAIN else kind.__module__ == "torch._subclasses.fake_tensor"


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Returns the sizes; () for a tensor without a shape (a lazy module's parameter) or with a symbolic one."""
    try:
        shape = tuple(tensor.shape)
        return shape if type(tensor) in PLAIN else tuple(map(int, shape))
    except (RuntimeError, TypeError, ValueError, AttributeError):  # AttributeError: a nested tensor's symbolic size
        return ()


def text_of(value: torch.dtype | torch.device) -> str:
    """Returns "float32" for `torch.float32`, "cpu" for that device."""
    text = texts.get(value)
    if text is None:
        text = texts[value] = str(value).removeprefix("torch.")
    return text
