"""The rows that the tracer writes while a program runs, and the file that carries them to `reader`.

A row is a flat tuple whose first item is its tag, or, for most calls, a run of ints (see PLAN). Rows hold ints, strings
and tuples only, so that `marshal` carries them through a file and a process that is killed loses no more than its last
batch. No torch in here: the command's own process reads the journal of the child that runs the script.
"""

from __future__ import annotations

import marshal
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import IO, Any

(
    VERSIONS,  # tensorlens, torch, python
    SITE,  # id, file, function, (line, end line, column, end column in bytes), targets, caller, through
    SOURCE,  # file, text
    STORAGE,  # id, nbytes
    TENSOR,  # id, storage, counter, shape, dtype, device, type, base
    CALL,  # op, site, inputs, outputs, writes, states, first node, last node, mode
    BACKWARD_START,  # token
    BACKWARD,  # token, op, site, roots, gradients, inputs, retain_graph, create_graph, failed
    MODE,  # site, mode, cause, entering, decorator
    NOTICE,  # site, category, message, op
    GAP,  # reason, site
    FAILURE,  # type, message, op, inputs, saved, stack, site
    CLAIM,  # the fields of `verdicts.Claim`
    END,  # states, bindings
    OUTCOME,  # outcome, exit code, number of the failure that ended the script
    REGION,  # token, site, kind, entering, token of the checkpoint
    CHANGE,  # site, name, before, after, token of the checkpoint
    VALUES,  # number of the failure (none: the last notice), values
    ASSIGNMENT,  # site, name, tensors held before, tensors held now, whether they stand elsewhere too
    ARGUMENTS,  # number of the failure, (name, tensor) of each
    DEAD_ENDS,  # number of the failure, (name, sequence) of each, and of the node come to last
    NOTICED,  # name of a field of `Inspection`, the fields of its record less the index
    CALLBACK,  # name of a field of `UserCallbacks`, the fields of its record (`callbacks.record`)
    PLAN,  # id, the fields of `assembly.Plan`. A call of a plan is a run of ints: the plan's id, id and version of each
    #        input, and of the result (where there is none, of the first input) its id, its base's id or NONE, its
    #        version, and the first sequence number
    WITHIN,  # the optimizer step that is running from here on, or ""
    ALIVE,  # ids of the tensors that are alive
    PASS,  # samples of roots, (place, tensor, sample, sample of its gradient) of each, failed
    UNCOMPARED,  # `reference.PASSES` or `reference.FORMULAS`, why they could not be checked
) = range(28)

NONE = -1  # in place of a number, where there is none
SAME = -2  # in place of a node's sequence number in a state: the node is the one that was recorded last

NEW, WRITTEN, NOTHING = range(3)
"""What a call of a plan returned: a new tensor, its first argument, which it wrote, or nothing."""

SHARED_MEMORY = "memory is shared with an array outside torch: writes through it are not seen"
"""The reason of a gap that nearly every program has: those that load data from NumPy."""

BROKEN = "the journal of the run was damaged while it ran: what came after is not known"
LOST = "the program closed the journal of the run, or became another program: what came after is not known"

FULL = "the disk that holds the journal of the run was full, and not all that came after could be passed on"

MAX_BATCH = 512 * 1024 * 1024  # bytes of rows: many times what half a second of any program takes
_LENGTH = struct.Struct("<Q")


def pack(rows: list[Any]) -> bytes:
    """One batch of rows as bytes."""
    body = zlib.compress(marshal.dumps(rows), 1)
    return _LENGTH.pack(len(body)) + body


def rows_of(batch: list[Any], lengths: Mapping[int, int]) -> Iterator[tuple[Any, ...] | list[tuple[int, ...]]]:
    """The rows of a batch: each that is a tuple, and as one list all runs of ints between two of those. `lengths` says
    how long the runs of each plan are; it may grow while the rows are read.

    Raises:
        ValueError: what follows is no row.
    """
    items = tuple(batch)
    calls: list[tuple[int, ...]] = []
    position = 0
    while position < len(items):
        item = items[position]
        if type(item) is tuple:
            if calls:
                yield calls
                calls = []
            yield item
            position += 1
        elif type(item) is int and item in lengths:
            end = position + lengths[item]
            calls.append(items[position:end])
            position = end
        else:
            break
    yield calls
    if position < len(items):
        raise ValueError(f"no row begins with {items[position]!r}")


def values_text(values: Any) -> str:
    """Values as text, as in `[0.5, -1.25]`: nested lists of numbers, a number, or text already."""
    if isinstance(values, list):
        return "[" + ", ".join(map(values_text, values)) + "]"
    return f"{values:.4g}" if isinstance(values, float) else str(values)


def unpack(stream: IO[bytes]) -> Iterator[list[Any]]:
    """The batches of rows in a journal file, from where the stream is. What follows a batch that was cut short by a
    killed process, or that something else has written over, is left out; a stream that is read while the file still
    grows is left before the first batch that isn't whole."""
    while True:
        start = stream.tell()
        header = stream.read(_LENGTH.size)
        size = _LENGTH.unpack(header)[0] if len(header) == _LENGTH.size else -1
        left = _size(stream) - stream.tell()
        if size < 0 or size > left:
            stream.seek(start)
            return
        try:
            unpacker = zlib.decompressobj()
            content = unpacker.decompress(stream.read(size), MAX_BATCH)
            whole = unpacker.eof and not unpacker.unused_data  # or the checksum was not reached
            rows = marshal.loads(content) if whole else None
        except (EOFError, ValueError, TypeError, MemoryError, zlib.error):
            rows = None
        if not isinstance(rows, list):
            stream.seek(start)
            return
        yield rows


def is_read(stream: IO[bytes]) -> bool:
    """Whether nothing is left in a journal file where the stream is."""
    return stream.tell() >= _size(stream)


def _size(stream: IO[bytes]) -> int:
    return len(stream.getbuffer()) if isinstance(stream, BytesIO) else os.fstat(stream.fileno()).st_size
