"""Remembers which tensors of a long run were changed in place, and which tensors the same calls name.

A graph may need such a tensor long after the program has let go of it: a backward pass then fails, and the report names
the call that changed it. So the last of these tensors count as alive.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from itertools import filterfalse, islice
from typing import Any, Protocol

from tensorlens.journal import compact_calls
from tensorlens.journal.rows import NONE, CallRow

MOST_WAITING = 100_000  # calls that are looked at together
MOST = 1_000  # tensors that were changed and are dead
MOST_RELATED = 4_000  # tensors that a call names beside one of these


class Run(Protocol):
    """Compact calls in a row, as `retention.CallRun` holds them."""

    calls: bytes
    ends: bytes
    start: int

    @property
    def stop(self) -> int: ...


class ChangedTensors:
    """The last tensors that calls before the window changed in place."""

    def __init__(self) -> None:
        self._runs: list[Run] = []  # not looked at yet, and the rows
        self._rows: list[CallRow] = []
        self._waiting = 0  # calls in these
        self._changed: dict[int, None] = {}  # the latest last
        self._related: dict[int, None] = {}

    def add(self, runs: Collection[Run], rows: Collection[CallRow]) -> None:
        """Adds calls that leave the window."""
        self._runs += runs
        self._rows += rows
        self._waiting += sum(run.stop - run.start for run in runs) + len(rows)
        if self._waiting > MOST_WAITING:
            self._look()

    def latest(self, alive: Collection[int] = ()) -> set[int]:
        """Returns the last of the tensors that are not in `alive`, and forgets all others."""
        self._look()
        self._changed = _last(self._changed, alive, MOST)
        self._related = _last(self._related, alive, MOST_RELATED)
        return {*self._changed, *self._related}

    def _look(self) -> None:
        found: dict[int, None] = {}
        for run in self._runs:
            compact_calls.add_changed(run.calls, run.ends, run.start, run.stop, found)
        for row in self._rows:
            found.update(dict.fromkeys(row.writes[::3]))
        if found:
            _put_last(self._changed, found)
            _put_last(self._related, _related(self._runs, self._rows, set(found)))
        self._runs, self._rows, self._waiting = [], [], 0


def _put_last(table: dict[int, None], tensors: dict[int, None]) -> None:
    for tensor in table.keys() & tensors.keys():
        del table[tensor]
    table.update(tensors)


def _related(runs: Collection[Run], rows: Collection[CallRow], changed: set[int]) -> dict[int, None]:
    """Returns the tensors of all calls that name a changed one, the latest last."""
    related: set[int] = set()
    for run in runs:
        compact_calls.add_related(run.calls, run.ends, run.start, run.stop, changed, related)
    for row in rows:
        named: tuple[Any, ...] = (*row.inputs[::2], *row.outputs[::2], *row.writes[::3])
        if not changed.isdisjoint(named):
            related.update(named)
    found = sorted(related)
    return dict.fromkeys(found[bisect_right(found, NONE) :])


def _last(table: dict[int, None], alive: Collection[int], most: int) -> dict[int, None]:
    latest = islice(filterfalse(alive.__contains__, reversed(table)), most)
    return dict.fromkeys(reversed(list(latest)))
