"""Keeps the facts that a run's process has found, as records, and bounds those that a long run has in each step."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from itertools import chain
from typing import Any

from tensorlens.journal.rows import FactRow
from tensorlens.records import observations, training
from tensorlens.records.observations import Observations, Overwrite, StaleSavedTensor

FIRST, LAST = 5_000, 20_000  # writes that moved no version, and saved tensors that one changed
_PATIENCE = 3 * (FIRST + LAST)  # so many are kept before some are dropped
LEFT_OUT = (
    f"writes that moved no version are left out, and what they changed: a trace keeps the first {FIRST:,} and the last "
    f"{LAST:,}"
)


class Facts:
    """Reads facts into `tables`. A saved tensor refers to a write by the number that the write has in the run."""

    def __init__(self) -> None:
        self.tables: dict[str, list[Any]] = {table: [] for table in observations.RECORDS}
        self._numbers: list[int] = []  # of the writes that are kept
        self._writes = 0
        self.left_out = 0  # writes, and saved tensors that one changed

    def read(self, index: int, row: FactRow) -> Any:
        """Adds a fact that was found before the event `index`, and returns it."""
        self.tables[row.table].append(fact := observations.RECORDS[row.table](index, *row.fields))
        if isinstance(fact, Overwrite):
            self._numbers.append(self._writes)
            self._writes += 1
            self._bound()
        elif isinstance(fact, StaleSavedTensor):
            if fact.overwrite is not None and not self._is_kept(fact.overwrite):
                self.tables[row.table].pop()
                self.left_out += 1
            self._bound()
        elif isinstance(fact, training.TrainingMeasured):
            for table in ("measured", "groups", "statistics", "moved"):
                self.tables[table] = [earlier for earlier in self.tables[table] if earlier.number == fact.number]
        return fact

    def _is_kept(self, number: int) -> bool:
        place = bisect_left(self._numbers, number)
        return not self.left_out or (place < len(self._numbers) and self._numbers[place] == number)

    def _bound(self) -> None:
        """Drops facts between the first and the last, except writes that a kept fact refers to."""
        tables = self.tables
        writes, stale = tables["overwrites"], tables["stale"]
        if len(writes) <= _PATIENCE and len(stale) <= _PATIENCE:
            return
        kept_stale = [stale[place] for place in _first_and_last(len(stale))]
        needed = {each.overwrite for each in kept_stale}
        outer = set(_first_and_last(len(writes)))
        places = [place for place, number in enumerate(self._numbers) if place in outer or number in needed]
        self.left_out += len(stale) - len(kept_stale) + len(writes) - len(places)
        tables["overwrites"], tables["stale"] = [writes[place] for place in places], kept_stale
        self._numbers = [self._numbers[place] for place in places]

    def records(self) -> Observations:
        """Returns the facts of a trace, in which a saved tensor refers to a write by its position."""
        tables = {name: tuple(found) for name, found in self.tables.items()}
        if self.left_out:
            places = {number: place for place, number in enumerate(self._numbers)}
            tables["stale"] = tuple(
                replace(each, overwrite=None if each.overwrite is None else places[each.overwrite])
                for each in tables["stale"]
            )
        return Observations(**tables)


def _first_and_last(count: int) -> chain[int]:
    return chain(range(min(FIRST, count)), range(max(FIRST, count - LAST), count))
