"""Each tag has its row and its reader, and rows survive the journal."""

from __future__ import annotations

import io
from dataclasses import fields
from typing import get_type_hints

import pytest

from tensorlens.journal import memory_rows, rows, sample_rows
from tensorlens.journal.batches import pack, unpack
from tensorlens.journal.reader import READERS, Reader
from tensorlens.journal.row_buffer import ROW_TYPES, RowBuffer, Tag, plain, typed
from tensorlens.journal.rows import GapRow, RegionRow
from tensorlens.records.model import Region, Script
from tensorlens.records.observations import RECORDS, TABLES, Overwrite, StaleSavedTensor, Step

SCRIPT = Script("rows.py", (), "", "killed", None, None)


def test_every_tag_has_a_row_and_every_row_has_a_tag() -> None:
    modules = {**vars(rows), **vars(sample_rows), **vars(memory_rows)}
    defined = {value for name, value in modules.items() if name.endswith("Row")}
    assert list(ROW_TYPES) == list(Tag)
    assert set(ROW_TYPES.values()) == defined
    assert len(defined) == len(Tag)


def test_every_tag_has_a_reader_of_its_row() -> None:
    assert list(READERS) == list(Tag)
    for tag, read in READERS.items():
        assert get_type_hints(read)["row"] is ROW_TYPES[tag]


def test_the_numbers_of_tags_stay_as_they_are() -> None:
    """A number that changes its meaning would be read as another row."""
    numbers = {tag.name: tag.value for tag in Tag}
    assert numbers["VERSIONS"] == 1
    assert numbers["CALL"] == 20
    assert numbers["FACT"] == 70
    assert len(set(numbers.values())) == len(Tag.__members__)


@pytest.mark.parametrize("by_name", [False, True])
def test_a_row_is_the_same_after_the_journal(by_name: bool) -> None:
    buffer = RowBuffer()
    if by_name:
        buffer.write(RegionRow, entering=True, kind="checkpoint", site=3, checkpoint=None, token=7)
    else:
        buffer.write(RegionRow, 7, 3, "checkpoint", True, None)
    ((row,),) = unpack(io.BytesIO(pack(buffer[:])))
    assert typed(row) == RegionRow(7, 3, "checkpoint", True, None)
    assert row == plain(typed(row))
    assert type(row) is tuple


@pytest.mark.parametrize("length", [1, 3])
def test_a_row_of_another_length_is_not_read(length: int) -> None:
    row = (Tag.GAP.value, *("reason", None, None)[:length])
    with pytest.raises(TypeError):
        typed(row)


def test_nothing_follows_a_row_that_is_not_read() -> None:
    buffer = RowBuffer()
    buffer.write(GapRow, "before", None)
    buffer.append((Tag.GAP.value, "too short"))
    buffer.write(GapRow, "after", None)
    reader = Reader(SCRIPT)
    reader.read([buffer[:]])
    assert [getattr(event, "reason", "") for event in reader.trace().events] == ["before", rows.BROKEN]


def test_a_fact_by_position_and_one_by_name_are_the_same_record() -> None:
    buffer = RowBuffer()
    buffer.write(RegionRow, None, 0, "detect_anomaly", True, None)
    buffer.write_fact(Step, 0, "SGD.step", (), (), ())
    buffer.write_fact(Step, site=0, op="SGD.step", parameters=(), versions=(), gradients=())
    reader = Reader(SCRIPT)
    reader.read([buffer[:]])
    trace = reader.trace()
    assert isinstance(trace.events[0], Region)
    assert trace.inspection.steps == (Step(1, 0, "SGD.step", (), (), ()),) * 2


def test_facts_get_the_ids_of_the_trace() -> None:
    """The tracer's ids have holes; the fields of a fact that hold ids are found by their type hints alone."""
    buffer = RowBuffer()
    for tensor in (4, 9):
        buffer.write(memory_rows.TensorRow, tensor, None, tensor, (), "float32", "cpu", "Tensor", None)
    buffer.write_fact(Overwrite, "Tensor.numpy", None, (), 9)
    buffer.write_fact(StaleSavedTensor, 0, "MulBackward0", 1, "self", 4, (0, 0), "1", "2")
    reader = Reader(SCRIPT)
    reader.read([buffer[:]])
    inspection = reader.trace().inspection
    assert (inspection.stale[0].tensor, inspection.overwrites[0].tensor) == (0, 1)


def test_every_fact_has_a_table() -> None:
    assert {table: fact for fact, table in TABLES.items()} == RECORDS
    assert all(fields(fact)[0].name == "index" for fact in TABLES)
