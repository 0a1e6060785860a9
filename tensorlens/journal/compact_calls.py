"""Reads runs of compact calls as native 64-bit ints, without a Python object for each number.

A *run* is `bytes`: the ints of whole compact calls (see `CallTemplateRow`), one call after the other. The recorder
writes its calls as plain ints or as such bytes. The functions below have twins in C (`_compact_calls.c`), used if a
compiler was there when TensorLens was installed; `TENSORLENS_PURE_PYTHON=1` disables these.
"""

from __future__ import annotations

import heapq
import os
import struct
from array import array
from collections.abc import Container
from contextlib import suppress
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import Any

from tensorlens.compiled_sources import is_built_from
from tensorlens.journal.memory_rows import StorageRow, TensorRow, TensorsRow
from tensorlens.journal.row_buffer import Tag
from tensorlens.journal.rows import NONE, of_alias

Row = tuple[Any, ...]
TAIL = 4  # ints at the end of a compact call: tensor, base, version, first sequence number
KEPT = 5  # calls of one tensor that `keep_new` returns
HEAD = struct.Struct("qq")  # before a call that is kept: its index, and the number of its step
STORAGE, TENSOR, TENSORS = int(Tag.STORAGE), int(Tag.TENSOR), int(Tag.TENSORS)
# items in a row, with the tag
OF_STORAGE, OF_TENSOR, OF_TENSORS = (1 + len(row._fields) for row in (StorageRow, TensorRow, TensorsRow))
INT = 8  # bytes
_INT = struct.Struct("q")


def numbers_of(call: bytes) -> tuple[int, ...]:
    """Returns the ints of a compact call."""
    return tuple(memoryview(call).cast("q"))


def base_of(call: bytes) -> int:
    """Returns the base in a compact call, or what is in its place."""
    base: int = _INT.unpack_from(call, INT * (1 - TAIL))[0]
    return base


def _ints(run: bytes) -> memoryview[int]:
    """Returns the ints of a run; one that is cut short at its end is left out."""
    return memoryview(run)[: len(run) // INT * INT].cast("q")


def split(items: list[Any]) -> tuple[list[Row | bytes], int]:
    """Returns the rows and the runs in a batch, and how many of its items these are: all, unless one is neither."""
    found: list[Row | bytes] = []
    numbers = array("q")
    known = 0
    for item in items:
        if type(item) is int:
            try:
                numbers.append(item)
            except OverflowError:
                break
        elif type(item) is tuple or type(item) is bytes:
            if numbers:
                found.append(numbers.tobytes())
                numbers = array("q")
            found.append(item)
        else:
            break
        known += 1
    if numbers:
        found.append(numbers.tobytes())
    return found, known


def ends(run: bytes, lengths: array[int]) -> bytes:
    """Returns where each call of a run ends, as 32-bit ints. Stops at a call that is incomplete or of no template.

    `lengths` holds the number of ints in a call of each template; 0 if there is no such template.
    """
    numbers, found, position = _ints(run), array("I"), 0
    while position < len(numbers):
        template = numbers[position]
        size = lengths[template] if 0 <= template < len(lengths) else 0
        if size < 1 + TAIL or size > len(numbers) - position:
            break
        position += size
        found.append(position)
    return found.tobytes()


def count(run: bytes, ends: bytes, start: int, stop: int, counts: array[int]) -> None:
    """Adds the calls from number `start` to `stop` to the `counts` of their templates."""
    numbers = _ints(run)
    for first in starts(ends, start, stop):
        counts[numbers[first]] += 1


def item_of(kept: bytes, steps: list[str]) -> tuple[int, bytes, str]:
    """Returns the index of a call that is kept after its `HEAD`, the call, and the optimizer step that was running."""
    index, step = HEAD.unpack_from(kept)
    return index, kept[HEAD.size :], steps[step]


def keep_new(
    calls: tuple[bytes, bytes, int, int],
    needed: set[int] | None,
    kept: dict[int, Any],
    last: int,
    place: tuple[int, int, list[str]],
) -> dict[int, list[int]]:
    """Puts the first call of each tensor that is newer than `last` into `kept`, as its `HEAD` and its bytes.

    If there is one in such a form already, both become items: see `item_of`. `calls` are a run, its ends, and the
    numbers of the first call and of the one after the last. `place` is the index of the call with number 0, the number
    of the optimizer step that was running, and the names of these steps. Returns the numbers of the other calls by the
    tensor that they made or changed: the first, and at most four later. Only tensors in `needed`, unless it is None.
    """
    run, ends, start, stop = calls
    index, step, steps = place
    numbers, found = _ints(run), dict[int, list[int]]()
    places_of_calls = zip(starts(ends, start, stop), memoryview(ends).cast("I")[start:stop], strict=True)
    for number, (first, end) in enumerate(places_of_calls, start):
        tensor = numbers[end - TAIL]
        if needed is not None and tensor not in needed:
            continue
        call, before = run[INT * first : INT * end], kept.get(tensor)
        if tensor > last and before is None:
            kept[tensor] = HEAD.pack(index + number, step) + call
            continue
        if tensor > last and isinstance(before, bytes) and tensor not in found:
            kept[tensor] = item_of(before, steps), (index + number, call, steps[step])
            continue
        places = found.setdefault(tensor, [])
        if len(places) == KEPT:
            del places[1]
        places.append(number)
    return found


def merge(
    tensors: bytes, ends: bytes, content: bytes, kept: dict[int, Any], needed: set[int] | None
) -> tuple[bytes, bytes, bytes]:
    """Returns packed calls with those in `kept` that are bytes: tensors, the ends of their calls, the calls themselves.

    Both are in order of the tensors. Of those packed before, only tensors in `needed` stay, unless it is None, and none
    that has several calls in `kept`.
    """
    before, first = list[tuple[int, bytes]](), 0
    for tensor, end in zip(memoryview(tensors).cast("q"), memoryview(ends).cast("q"), strict=True):
        if (needed is None or tensor in needed) and type(kept.get(tensor, b"")) is bytes:
            before.append((tensor, content[first:end]))
        first = end
    added = sorted((tensor, call) for tensor, call in kept.items() if type(call) is bytes)
    calls = list(heapq.merge(before, added, key=itemgetter(0)))
    found = array("q", [tensor for tensor, _ in calls])
    return (
        found.tobytes(),
        array("q", accumulate(len(call) for _, call in calls)).tobytes(),
        b"".join([call for _, call in calls]),
    )


def keep_only(table: dict[int, Any], needed: Container[int], also: Container[int | None] | None = None) -> None:
    """Drops what a table has for numbers that are in neither."""
    for number in [number for number in table if number not in needed and (also is None or number not in also)]:
        del table[number]


def add_aliases(kept: dict[int, Any], storages: set[int | None]) -> dict[int, Any]:
    """Adds the storages of the aliases that kept calls made. Returns the calls that are not compact, by index.

    `kept` has one call as bytes for a tensor, or some items of an index and a call.
    """
    others: dict[int, Any] = {}
    for items in kept.values():
        for index, call, *_ in ((0, items),) if type(items) is bytes else items:
            if type(call) is not bytes:
                others[index] = call
            elif (base := base_of(call)) < NONE:
                storages.add(of_alias(base))
    return others


def add_tensors(run: bytes, ends: bytes, start: int, stop: int, tensors: set[int]) -> None:
    """Adds every tensor that a call names to `tensors`, and perhaps `NONE` or lower numbers."""
    numbers = _ints(run)
    for first, end in zip(starts(ends, start, stop), memoryview(ends).cast("I")[start:stop], strict=True):
        tensors.update(numbers[first + 1 : end - TAIL + 1 : 2])
        tensors.add(numbers[end - TAIL + 1])


def add_changed(run: bytes, ends: bytes, start: int, stop: int, changed: dict[int, None]) -> None:
    """Adds the tensors that calls changed in place to `changed`: a call names such a result among its inputs, too."""
    numbers = _ints(run)
    for first, end in zip(starts(ends, start, stop), memoryview(ends).cast("I")[start:stop], strict=True):
        tensor = numbers[end - TAIL]
        if tensor in numbers[first + 1 : end - TAIL : 2]:
            changed[tensor] = None


def add_related(run: bytes, ends: bytes, start: int, stop: int, tensors: set[int], related: set[int]) -> None:
    """Adds every tensor that a call names to `related`, if it names one of `tensors`; perhaps also `NONE` or lower."""
    numbers = _ints(run)
    for first, end in zip(starts(ends, start, stop), memoryview(ends).cast("I")[start:stop], strict=True):
        named = (*numbers[first + 1 : end - TAIL + 1 : 2], numbers[end - TAIL + 1])
        if not tensors.isdisjoint(named):
            related.update(named)


def read_tables(
    items: list[Row | bytes],
    position: int,
    sizes: dict[int, int],
    tensors: dict[int, Any],
    row_type: type[Row],
    kind_type: type[Row],
) -> int:
    """Reads the rows of storages and tensors from a position on. Returns the position of the next row of another kind.

    These are most rows of some programs. `sizes` gets the bytes of each storage, and `tensors` the row of each tensor,
    as `row_type`, or what it has in common with others, as `kind_type`.
    """
    for number in range(position, len(items)):
        item = items[number]
        tag = item[0] if type(item) is tuple and item and type(item[0]) is int else None
        if tag == STORAGE and len(item) == OF_STORAGE:
            sizes[item[1]] = item[2]
        elif tag == TENSOR and len(item) == OF_TENSOR:
            tensors[item[1]] = tuple.__new__(row_type, item[1:])
        elif tag == TENSORS and len(item) == OF_TENSORS and type(item[1]) is bytes:
            found = _ints(item[1])
            tensors.update(dict.fromkeys(found, tuple.__new__(kind_type, item[2:])))
            if item[2] is not None:
                sizes.update(dict.fromkeys(found, item[2]))
        else:
            return number
    return max(position, len(items))


def starts(ends: bytes, start: int, stop: int) -> list[int]:
    """Returns where the calls from number `start` to `stop` begin."""
    return [0, *memoryview(ends).cast("I")][start:stop]


def _compiled() -> Any:
    """Returns the module with the twins in C; None if it is missing, or built from other sources."""
    with suppress(ImportError):
        from tensorlens.journal import _compact_calls

        if is_built_from(Path(__file__).with_name("_compact_calls.c"), _compact_calls.SOURCE):
            return _compact_calls
    return None


in_python = (
    split, ends, count, keep_new, merge, keep_only, add_aliases, add_tensors, add_changed, add_related, read_tables
)  # fmt: skip
if not os.environ.get("TENSORLENS_PURE_PYTHON") and (_c := _compiled()) is not None:
    split, ends, count, keep_new, merge, keep_only = _c.split, _c.ends, _c.count, _c.keep_new, _c.merge, _c.keep_only
    add_aliases, add_tensors = _c.add_aliases, _c.add_tensors
    add_changed, add_related, read_tables = _c.add_changed, _c.add_related, _c.read_tables
