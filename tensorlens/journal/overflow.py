"""Sends the rest of the journal through a pipe when the disk is full.

The script's process sends pieces of the journal, each with its offset: a piece that an interrupted write sends twice
does no harm. The command's process reads them into memory, as the continuation of the file.
"""

from __future__ import annotations

import fcntl
import os
import select
import struct
from collections.abc import Iterator
from contextlib import suppress
from io import BytesIO
from typing import IO

_HEAD = struct.Struct("<QH")  # offset in the journal, size of the piece
PIECE = select.PIPE_BUF - _HEAD.size  # written whole or not at all
PATIENCE = 10.0  # seconds to wait for room in the pipe
_ROOM = 1 << 20  # bytes in the pipe: more than a busy program writes between two reads


def pipe() -> tuple[int, int]:
    """Returns the two ends of a pipe that never blocks."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    with suppress(OSError, AttributeError):  # the system allows less room
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, _ROOM)
    return ends


def send(descriptor: int, offset: int, data: memoryview) -> int:
    """Writes a piece of `data`, which belongs at `offset` of the journal. Returns its size.

    Raises:
        OSError: the pipe stays full.
    """
    piece = data[:PIECE]
    try:
        os.write(descriptor, _HEAD.pack(offset, len(piece)) + piece)
    except BlockingIOError:
        if not select.select([], [descriptor], [], PATIENCE)[1]:
            raise
        return 0
    return len(piece)


class Overflow:
    """Reads the pieces from the pipe, in the command's process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._start: int | None = None  # offset of the part of the journal in memory
        self._incomplete = b""  # the start of a piece

    @property
    def is_used(self) -> bool:
        """Returns whether a piece was read from the pipe."""
        return self._start is not None

    def continued(self, stream: IO[bytes]) -> IO[bytes]:
        """Returns the journal from the position of `stream` on, with all pieces; `stream` itself if there are none."""
        pieces = list(self._pieces())
        if not pieces:
            return stream
        start = stream.tell() + (self._start or 0)
        data = bytearray(stream.read())
        if self._start is None:
            del data[max(pieces[0][0] - start, 0) :]  # the program may have written there itself
        self._start = start
        for offset, piece in pieces:
            if offset >= start:  # else it was read already
                data[offset - start : offset - start + len(piece)] = piece
        return BytesIO(data)

    def _pieces(self) -> Iterator[tuple[int, bytes]]:
        with suppress(BlockingIOError):
            while data := os.read(self._descriptor, _ROOM):
                data = self._incomplete + data
                position = 0
                while len(data) - position >= _HEAD.size:
                    offset, size = _HEAD.unpack_from(data, position)
                    end = position + _HEAD.size + size
                    if end > len(data):
                        break
                    yield offset, data[position + _HEAD.size : end]
                    position = end
                self._incomplete = data[position:]
