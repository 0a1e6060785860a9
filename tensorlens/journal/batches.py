"""The journal file: batches of rows, each written with its length, compressed or not.

`marshal` carries the rows, because they hold only plain values. A process that is killed loses at most the batch that
it was writing.
"""

from __future__ import annotations

import marshal
import os
import struct
import zlib
from collections.abc import Iterator
from io import BytesIO
from typing import IO, Any

MAX_BATCH = 512 * 1024 * 1024  # bytes of rows: many times what a program writes in half a second
_LENGTH = struct.Struct("<Q")


def pack(rows: list[Any], compressed: bool = True) -> bytes:
    """Returns a batch of rows as bytes, which end with a checksum. Compressed, it has a fifth of the size."""
    body = zlib.compress(marshal.dumps(rows), 1 if compressed else 0)
    return _LENGTH.pack(len(body)) + body


def unpack(stream: IO[bytes]) -> Iterator[list[Any]]:
    """Yields the batches of rows in a journal file, from the position of the stream on.

    Stops at a batch that is incomplete, because its process was killed, or damaged, because something else was written
    over it. The stream then stays before that batch, which may be complete when it is read again.
    """
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
            is_whole = unpacker.eof and not unpacker.unused_data  # otherwise the checksum was not reached
            rows = marshal.loads(content) if is_whole else None
        except (EOFError, ValueError, TypeError, MemoryError, zlib.error):
            rows = None
        if not isinstance(rows, list):
            stream.seek(start)
            return
        yield rows


def is_read(stream: IO[bytes]) -> bool:
    """Returns whether the stream is at the end of the journal."""
    return stream.tell() >= _size(stream)


def _size(stream: IO[bytes]) -> int:
    return len(stream.getbuffer()) if isinstance(stream, BytesIO) else os.fstat(stream.fileno()).st_size
