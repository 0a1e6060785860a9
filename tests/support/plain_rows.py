"""Brings rows of the compiled fast path into the form of those that Python writes."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any

from tensorlens.journal.memory_rows import StorageRow, TensorKind
from tensorlens.journal.row_buffer import Tag, plain


def plain_rows(rows: Iterable[Any]) -> Iterator[Any]:
    """Yields the rows, the ints of packed calls one by one, and the rows of each tensor of a `TensorsRow`."""
    for row in rows:
        if type(row) is bytes:
            yield from array("q", row)
        elif type(row) is tuple and row[0] == Tag.TENSORS:
            kind = TensorKind(*row[2:])
            for tensor in array("q", row[1]):
                if kind.nbytes is not None:
                    yield plain(StorageRow(tensor, kind.nbytes))
                yield plain(kind.row(tensor))
        else:
            yield row
