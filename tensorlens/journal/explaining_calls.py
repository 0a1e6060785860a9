"""Keeps the calls that explain tensors: of each tensor the first call, and the last ones that changed it.

A long run has a hundred thousand such tensors, and most have one compact call: it is kept in one `bytes`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain
from operator import itemgetter

from tensorlens.journal.call_runs import Call, CallRun, Item
from tensorlens.journal.compact_calls import (
    HEAD,
    INT,
    TAIL,
    add_aliases,
    item_of,
    keep_new,
    keep_only,
    merge,
    numbers_of,
)
from tensorlens.journal.rows import NONE, CallRow, State, of_alias

_LATEST = 3  # calls that changed a tensor last
_Kept = bytes | tuple[Item, ...]  # one compact call after its `HEAD`, or calls of any kind
_storage_of = itemgetter(7)  # of a state


class StatesOfCall:
    """Finds the states of tensors after a call. One call may have those of thousands: it is indexed once in a row."""

    def __init__(self) -> None:
        self._call: CallRow | None = None
        self._states: dict[int, list[State]] = {}

    def of(self, call: CallRow, tensor: int) -> list[State]:
        """Returns the states of a tensor, in order."""
        if call is not self._call:
            self._call, self._states = call, {}
            for state in call.states:
                self._states.setdefault(state[0], []).append(state)
        return self._states.get(tensor, [])

    def give_node(self, call: bytes | CallRow, tensor: int) -> bool:
        """Returns whether a call gave a tensor a new node. False if the call left the node as it was."""
        if not isinstance(call, CallRow):
            return True
        return any(state[5] is not None and state[5] >= 0 for state in self.of(call, tensor))


class _Packed:
    """One compact call of each of many tensors, in order of the tensors: half the size of a `dict` with them."""

    def __init__(self, tensors: bytes = b"", ends: bytes = b"", content: bytes = b"") -> None:
        self.parts = tensors, ends, content
        self._tensors, self._ends = memoryview(tensors).cast("q"), memoryview(ends).cast("q")
        self._ints = memoryview(content).cast("q")

    @property
    def last(self) -> int:
        """The highest number of a tensor. Most tensors whose calls are added are newer."""
        return self._tensors[-1] if self._tensors else NONE

    def get(self, tensor: int) -> bytes | None:
        tensors = self._tensors
        if not tensors or tensor > tensors[-1]:
            return None
        number = bisect_left(tensors, tensor)
        return self._call(number) if tensors[number] == tensor else None

    def items(self) -> Iterator[tuple[int, bytes]]:
        for number, tensor in enumerate(self._tensors):
            yield tensor, self._call(number)

    def heads(self) -> Iterator[tuple[int, int]]:
        """Yields each tensor with the index of its call."""
        first = 0
        for tensor, end in zip(self._tensors, self._ends, strict=True):
            yield tensor, self._ints[first]
            first = end // INT

    def aliases(self) -> set[int]:
        """Returns the storages of aliases."""
        ints, place = self._ints, 1 - TAIL
        bases = {ints[end // INT + place] for end in self._ends}
        return {of_alias(base) for base in bases if base < NONE}

    def _call(self, number: int) -> bytes:
        return self.parts[2][self._ends[number - 1] if number else 0 : self._ends[number]]


class ExplainingCalls:
    """The calls of each tensor. An item is the index of a call, the call, and the optimizer step that was running."""

    def __init__(self) -> None:
        self._packed = _Packed()
        self._kept: dict[int, _Kept] = {}  # what was added since they were packed, and tensors with several calls
        self._steps: list[str] = []  # the few names of optimizer steps, by number
        self._dropped: dict[int, tuple[int, bytes | CallRow]] = {}  # see `dropped_nodes`
        self._states = StatesOfCall()

    def add(self, tensor: int, item: Item) -> None:
        """Adds a call of a tensor: its first one stays, and the `_LATEST` last ones."""
        kept = self._kept.get(tensor) or self._packed.get(tensor)
        if kept is None and type(item[1]) is bytes:
            self._kept[tensor] = HEAD.pack(item[0], self._step_of(item[2])) + item[1]
            return
        items = (*self._items(kept), item)
        if len(items) > _LATEST + 1:
            index, call, _ = items[1]
            items = (items[0], *items[2:])
            if self._states.give_node(call, tensor):
                self._dropped[tensor] = index, call
        self._kept[tensor] = items

    def add_run(self, run: CallRun, needed: set[int] | None) -> None:
        """Adds the calls of a run that explain tensors in `needed`, or all if that is None."""
        calls, ends = run.calls, memoryview(run.ends).cast("I")
        of_run = calls, run.ends, run.start, run.stop
        place = run.index, self._step_of(run.within), self._steps
        others = keep_new(of_run, needed, self._kept, self._packed.last, place)
        for tensor, numbers in others.items():
            for number in numbers:
                call = calls[INT * ends[number - 1] if number else 0 : INT * ends[number]]
                self.add(tensor, (run.index + number, call, run.within))

    def add_to_each(self, tensors: Iterable[int], item: Item) -> None:
        """Adds one call to each of several tensors: there may be thousands, most of them new.

        It is added once for each time that the call names the tensor, as output, written or in a state. So a tensor
        that many calls change has fewer of these calls, and the bounded trace has room for those of other tensors.
        """
        kept, packed = self._kept, self._packed
        last, alike = packed.last, [(item,) * times for times in range(_LATEST + 2)]
        for tensor, times in Counter(tensors).items():
            before = kept.get(tensor) or (packed.get(tensor) if tensor <= last else None)
            if before is None:
                kept[tensor] = alike[min(times, _LATEST + 1)]
            elif times <= _LATEST + 1 - (1 if type(before) is bytes else len(before)):
                kept[tensor] = self._items(before) + alike[times]
            else:
                for _ in range(times):
                    self.add(tensor, item)

    def _step_of(self, name: str) -> int:
        if name not in self._steps:
            self._steps.append(name)
        return self._steps.index(name)

    def _items(self, kept: _Kept | None) -> tuple[Item, ...]:
        if not isinstance(kept, bytes):
            return kept or ()
        return (item_of(kept, self._steps),)

    def of(self, tensor: int) -> tuple[Item, ...]:
        """Returns the calls of a tensor, in order; a compact call is `bytes`."""
        return self._items(self._kept.get(tensor) or self._packed.get(tensor))

    def forget_all_but(self, needed: set[int]) -> None:
        """Drops the calls of other tensors, and packs the others."""
        keep_only(self._kept, needed)
        keep_only(self._dropped, needed)
        self.pack(needed)

    def pack(self, needed: set[int] | None = None) -> None:
        """Packs the calls that were added since the last time; of those packed before, drops all but the needed."""
        self._packed = _Packed(*merge(*self._packed.parts, self._kept, needed))
        self._kept = {tensor: kept for tensor, kept in self._kept.items() if not isinstance(kept, bytes)}

    def indices(self) -> set[int]:
        """Returns the indices of all calls."""
        found = {index for tensor, index in self._packed.heads() if tensor not in self._kept}
        for kept in self._kept.values():
            if isinstance(kept, bytes):
                found.add(HEAD.unpack_from(kept)[0])
            else:
                found.update([index for index, *_ in kept])
        return found

    def since(self, first: int) -> dict[int, Item]:
        """Returns the calls from index `first` on, by their indices."""
        kept = [each for each in self._kept.values() if not isinstance(each, bytes)]
        found = {item[0]: item for items in kept for item in items if item[0] >= first}
        single = [each for each in self._kept.values() if isinstance(each, bytes)]
        packed = (call for tensor, call in self._packed.items() if tensor not in self._kept)
        for (item,) in map(self._items, chain(single, packed)):
            if item[0] >= first:
                found[item[0]] = item
        return found

    def storages(self) -> set[int | None]:
        """Returns the storages in the states of calls, and those of aliases."""
        found: set[int | None] = {*self._packed.aliases()}
        for call in add_aliases(self._kept, found).values():
            found.update(storages_of(call))
        return found

    def dropped_nodes(self) -> dict[int, tuple[int, Call]]:
        """Returns for each tensor the last dropped call that gave it a node, with its index."""
        return {
            tensor: (index, numbers_of(call) if isinstance(call, bytes) else call)
            for tensor, (index, call) in self._dropped.items()
        }


def storages_of(call: object) -> Iterable[int | None]:
    """Returns the storages in the states of a call, some of them again; none of a compact call."""
    return map(_storage_of, call.states) if isinstance(call, CallRow) else ()
