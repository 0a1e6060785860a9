"""Drops what no kept event or tensor needs, when a long run says which tensors are alive."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any

from tensorlens.journal.compact_calls import keep_only
from tensorlens.journal.memory_rows import TensorKind, TensorRow
from tensorlens.journal.retention import Retention
from tensorlens.records.failure_context import Assignment
from tensorlens.records.model import Failure

MOST_ASSIGNMENTS = 5_000  # of a run's first, and of its last ones, whose tensors are all dead


class StorageSizes:
    """The bytes of each storage. A census drops the storages of the tensors that are dropped.

    Those that are new since the census before stay: their tensors may have no row yet.
    """

    def __init__(self) -> None:
        self.latest: dict[int, int] = {}  # since the last census
        self._older: dict[int, int] = {}

    def all(self) -> dict[int, int]:
        return self._older | self.latest

    def forget_all_but(self, needed: Container[int], also: Container[int | None]) -> None:
        """Drops older storages that are in neither."""
        keep_only(self._older, needed, also)
        self._older.update(self.latest)
        self.latest.clear()


def other_storages(
    tensors: Mapping[int, TensorRow | TensorKind], retention: Retention, failures: Iterable[Failure]
) -> set[int | None]:
    """Returns the storages of tensors that have no id of their own tensor, and those that kept records name.

    These are in the states of the kept calls, and in what failed calls had saved.
    """
    found = retention.storages()
    kinds = dict(zip(map(id, tensors.values()), tensors.values(), strict=True))  # thousands of tensors may share one
    for row in kinds.values():
        if isinstance(row, TensorRow):
            found.add(row.storage)
        elif row.place is not None:
            found.add(row.place[0])
    found.update(saved.storage for failure in failures for saved in failure.saved)
    return found


def drop_events(checkpoints: dict[int, int], facts: dict[str, list[Any]], retention: Retention) -> None:
    """Drops the entries of checkpoints, and the facts about single events, whose event is not kept any more."""
    oldest = retention.oldest_event()
    calls = retention.kept_calls() if facts["nested"] else set[int]()
    for token in [token for token, index in checkpoints.items() if index < oldest]:
        del checkpoints[token]
    facts["recomputed"] = [fact for fact in facts["recomputed"] if fact.index >= oldest]
    facts["nested"] = [fact for fact in facts["nested"] if fact.index > oldest or fact.index - 1 in calls]


def kept_assignments(assignments: list[Assignment], tensors: Mapping[int, TensorRow | TensorKind]) -> list[Assignment]:
    """Returns the first and the last assignments, and those with a tensor that is kept."""
    last = len(assignments) - MOST_ASSIGNMENTS
    return [
        each
        for place, each in enumerate(assignments)
        if place < MOST_ASSIGNMENTS or place >= last or not tensors.keys().isdisjoint((*each.old, *each.new))
    ]
