"""Asking for the writes of each tensor reads the events once."""

from __future__ import annotations

import pytest
import torch
from support.recording import traced

from tensorlens.analysis import trace_index
from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.records.model import Event, Write


@pytest.mark.parametrize("size", [20, 40])
def test_the_events_are_read_once_for_all_tensors(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    def program() -> None:
        for _ in range(size):
            torch.ones(3).add_(1).mul_(2)

    facts = TraceIndex(traced(program))
    read: list[Event] = []
    original = trace_index._writes_of

    def counted(event: Event) -> tuple[Write, ...]:
        read.append(event)
        return original(event)

    monkeypatch.setattr(trace_index, "_writes_of", counted)
    writes = [list(facts.writes(tensor.counter)) for tensor in facts.trace.tensors]
    assert [[(write.before, write.after) for _, write in each] for each in writes] == [[(0, 1), (1, 2)]] * size
    assert len(read) == len(facts.trace.events) == 3 * size
