"""The facts that a long run has in each step are bounded, and still refer to each other."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tensorlens.journal import facts
from tensorlens.journal.reader import Reader
from tensorlens.journal.row_buffer import Tag
from tensorlens.records.invariants import validate
from tensorlens.records.model import Gap, Script, Trace

FIRST, LAST = 3, 10


def _read(steps: int, *later: int) -> tuple[Reader, Trace]:
    """Reads a run with a write in each step that a saved tensor of every fourth step notices, and of `later` writes."""
    reader = Reader(Script("x.py", (), "", "ok", 0, None))
    batch: list[Any] = [(int(Tag.SOURCE), "x.py", "x = 1\n")]
    batch += [(int(Tag.SITE), 0, "x.py", "", (1, 1, 0, 5), (), None, "", False)]
    for number in range(steps):
        batch.append((int(Tag.FACT), "overwrites", (f"way {number}", 0, (0,), None)))
        if number % 4 == 0:
            batch.append(_stale(number))
    reader.read([[*batch, *map(_stale, later)]])
    trace = reader.trace()
    assert validate(trace) == []
    return reader, trace


def _stale(number: int) -> tuple[Any, ...]:
    return (int(Tag.FACT), "stale", (number, f"way {number}", number, "self", None, (0, 0), "1", "2", None))


def _refer_to_their_write(trace: Trace) -> bool:
    inspection = trace.inspection
    return all(inspection.overwrites[each.overwrite or 0].way == each.node for each in inspection.stale)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "FIRST", FIRST)
    monkeypatch.setattr(facts, "LAST", LAST)
    monkeypatch.setattr(facts, "_PATIENCE", 3 * (FIRST + LAST))


def test_a_longer_run_keeps_no_more_writes_and_says_how_many_are_left_out() -> None:
    kept = []
    for steps in (500, 5_000):
        reader, trace = _read(steps)
        kept.append(len(reader.facts["overwrites"]) + len(reader.facts["stale"]))
        assert [each.way for each in trace.inspection.overwrites[:FIRST]] == [f"way {n}" for n in range(FIRST)]
        assert trace.inspection.overwrites[-1].way == f"way {steps - 1}"
        assert trace.inspection.stale[-1].node == f"way {steps - 4}"
        assert _refer_to_their_write(trace)
        found = len(trace.inspection.overwrites) + len(trace.inspection.stale)
        (gap,) = [event for event in trace.events if isinstance(event, Gap)]
        assert (gap.reason, gap.count) == (facts.LEFT_OUT, steps + steps // 4 - found)
    assert max(kept) <= 6 * (FIRST + LAST)


def test_a_saved_tensor_that_refers_to_a_write_that_is_left_out_is_left_out_too() -> None:
    _, trace = _read(500, 101, 499)
    assert _refer_to_their_write(trace)
    assert trace.inspection.stale[-1].node == "way 499"
    assert "way 101" not in {each.node for each in trace.inspection.stale}
    (gap,) = [event for event in trace.events if isinstance(event, Gap)]
    found = len(trace.inspection.overwrites) + len(trace.inspection.stale)
    assert gap.count == 500 + 500 // 4 + 2 - found


def test_a_short_run_keeps_all() -> None:
    _, trace = _read(3 * (FIRST + LAST), 1)
    assert [each.way for each in trace.inspection.overwrites] == [f"way {n}" for n in range(3 * (FIRST + LAST))]
    assert trace.inspection.stale[-1].overwrite == 1
    assert not [event for event in trace.events if isinstance(event, Gap)]


def test_a_trace_with_further_facts_has_the_same_tables_and_goes_on_with_more_rows() -> None:
    reader, first = _read(4)
    reader.facts["overwrites"].append(replace(reader.facts["overwrites"][0], way="a second run's"))
    second = reader.trace()
    assert second.inspection.overwrites[-1].way == "a second run's"
    assert (second.tensors, second.storages, second.events) == (first.tensors, first.storages, first.events)
    reader.read([[(int(Tag.FACT), "overwrites", ("one more", 0, (0,), None))]])
    third = reader.trace().inspection.overwrites[-2:]
    assert [each.way for each in third] == ["a second run's", "one more"]
