"""The way round a full disk: what the journal's file has no room for goes through a pipe.

The program's process writes pieces of the journal, each with its place in it, so that a piece that an interrupted
write sends twice does no harm. The command's process reads them into memory and goes on from where the file ends.
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

_HEAD = struct.Struct("<QH")  # place in the journal, bytes that follow
PIECE = select.PIPE_BUF - _HEAD.size  # written whole or not at all
PATIENCE = 10.0  # seconds that the other side may take to make room
_ROOM = 1 << 20  # bytes in the pipe: as much as a busy program writes between two looks


def pipe() -> tuple[int, int]:
    """Both ends; neither waits for the other."""
    ends = os.pipe()
    for end in ends:
        os.set_blocking(end, False)
    with suppress(OSError, AttributeError):  # less room, then
        fcntl.fcntl(ends[1], fcntl.F_SETPIPE_SZ, _ROOM)
    return ends


def send(descriptor: int, place: int, data: memoryview) -> int:
    """Write a piece of `data`, which belongs at `place`; how much of it.

    Raises:
        OSError: nobody makes room.
    """
    piece = data[:PIECE]
    try:
        os.write(descriptor, _HEAD.pack(place, len(piece)) + piece)
    except BlockingIOError:
        if not select.select([], [descriptor], [], PATIENCE)[1]:
            raise
        return 0
    return len(piece)


class Overflow:
    """The end of the pipe that the command reads."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._start: int | None = None  # where the part of the journal that is held in memory begins
        self._cut = b""

    @property
    def is_used(self) -> bool:
        return self._start is not None

    def continued(self, stream: IO[bytes]) -> IO[bytes]:
        """The journal from where `stream` is, with what has come since: `stream` itself where nothing has."""
        pieces = list(self._pieces())
        if not pieces:
            return stream
        start = stream.tell() + (self._start or 0)
        data = bytearray(stream.read())
        if self._start is None:
            del data[max(pieces[0][0] - start, 0) :]  # what the program has written there itself
        self._start = start
        for place, piece in pieces:
            if place >= start:  # else it was read already
                data[place - start : place - start + len(piece)] = piece
        return BytesIO(data)

    def _pieces(self) -> Iterator[tuple[int, bytes]]:
        with suppress(BlockingIOError):
            while data := os.read(self._descriptor, _ROOM):
                data = self._cut + data
                position = 0
                while len(data) - position >= _HEAD.size:
                    place, size = _HEAD.unpack_from(data, position)
                    end = position + _HEAD.size + size
                    if end > len(data):
                        break
                    yield place, data[position + _HEAD.size : end]
                    position = end
                self._cut = data[position:]
