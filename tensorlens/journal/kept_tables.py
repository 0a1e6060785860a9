"""Keeps the events and tables that were built for a trace, for another one of the same rows.

A second run of `--training` adds facts to those of the first. Most name no tensor that the trace does not have: then
only the facts differ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorlens.journal.trace_builder import TraceBuilder, ids_in
from tensorlens.records import model


class BuiltTables:
    """The events, tensors and storages of a trace, and the builder that gives further records their ids."""

    def __init__(self, count: int, named: object, builder: TraceBuilder) -> None:
        self.count, self.named, self.builder = count, named, builder
        self.events: tuple[model.Event, ...] = builder.events()
        self.storages, self.tensors = builder.storages, builder.tensors


class KeptTables:
    """The tables of the last trace, until more rows are read."""

    def __init__(self) -> None:
        self._last: BuiltTables | None = None

    def forget(self) -> None:
        """Drops the tables: rows are about to be read that may change them."""
        self._last = None

    def of(self, count: int, records: Any, build: Callable[[], TraceBuilder]) -> BuiltTables:
        """Returns the tables for so many events and for `records`, which decide with their ids what a trace keeps."""
        named = ids_in(records)
        if self._last is None or (self._last.count, self._last.named) != (count, named):
            self._last = BuiltTables(count, named, build())
        return self._last
