"""A reader drops what nothing that it keeps needs, each time that a long run lists the tensors that are alive."""

from __future__ import annotations

from typing import Any

import pytest

from tensorlens.journal import census
from tensorlens.journal.reader import Reader
from tensorlens.journal.row_buffer import Tag
from tensorlens.journal.rows import LEFT_OUT, CallRow
from tensorlens.records.model import Call, Gap, Region, Script

WINDOW = 10
ROUNDS = 2_000
CENSUS = 100  # rounds


def _round(number: int) -> list[tuple[Any, ...]]:
    """Returns the rows of a checkpoint that runs again with other values, on a tensor of its own."""
    tensor = number + 1
    state = (tensor, 0, False, True, None, None, False, tensor)
    call = CallRow("torch.ones", 0, (), (tensor, 0), (), (state,), 0, 0, 0)
    return [
        (Tag.REGION, number, 0, "checkpoint", True, None),
        (Tag.STORAGE, tensor, 8 * tensor),
        (Tag.TENSOR, tensor, tensor, tensor, (), "float32", "cpu", "Tensor", None),
        (Tag.CALL, *call),
        (Tag.FACT, "nested", ((tensor,),)),
        (Tag.REGION, None, 0, "recomputation", True, number),
        (Tag.FACT, "recomputed", (0, "1", "2", True)),
        (Tag.ASSIGNMENT, 0, "weight", (tensor,), (tensor + 1,), False),
    ]


def _read(rounds: int, alive: tuple[int, ...]) -> Reader:
    reader = Reader(Script("x.py", (), "", "ok", 0, None), WINDOW)
    batch: list[Any] = [
        (Tag.SOURCE, "x.py", "x = 1\n"),
        (Tag.SITE, 0, "x.py", "", (1, 1, 0, 5), (), None, "", False),
    ]
    for number in range(rounds):
        batch += [(int(row[0]), *row[1:]) for row in _round(number)]
        if number % CENSUS == CENSUS - 1:
            batch.append((int(Tag.ALIVE), alive))
    reader.read([batch])
    assert {event.reason for event in reader.trace().events if isinstance(event, Gap)} <= {LEFT_OUT}
    return reader


def _held(reader: Reader) -> list[int]:
    facts = (reader.facts["nested"], reader.facts["recomputed"])
    return list(map(len, (reader._checkpoints, reader._assignments, reader._sizes.all(), *facts)))


def test_the_reader_holds_no_more_of_a_longer_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(census, "MOST_ASSIGNMENTS", 10)
    monkeypatch.setattr("tensorlens.journal.retention._OTHERS", 50)
    half, whole = _held(_read(ROUNDS // 2, (1,))), _held(_read(ROUNDS, (1,)))
    assert half == whole
    assert max(whole) < 3 * CENSUS


def test_what_a_kept_event_or_tensor_needs_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(census, "MOST_ASSIGNMENTS", 10)
    monkeypatch.setattr("tensorlens.journal.retention._OTHERS", 50)
    reader = _read(ROUNDS, (1, 700))
    trace = reader.trace()
    regions = {event.index: event for event in trace.events if isinstance(event, Region)}
    again = [event for event in regions.values() if event.name == "recomputation"]
    assert len(again) > WINDOW // 4
    assert all(event.checkpoint in regions for event in again[1:])
    nbytes = {trace.storages[tensor.storage].nbytes for tensor in trace.tensors if tensor.storage is not None}
    assert {8 * 1, 8 * 700, 8 * ROUNDS} <= nbytes
    assert {700, 1} <= {number for each in reader._assignments for number in each.old}
    assert {fact.index for fact in trace.inspection.recomputed} >= {event.index + 1 for event in again}
    calls = {event.index for event in trace.events if isinstance(event, Call)}
    assert calls <= {fact.index - 1 for fact in trace.inspection.nested}
