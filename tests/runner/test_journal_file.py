"""The journal of a long run stays small on the disk: what was read is released, and the program waits for a reader that
is far behind."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tensorlens.journal.batches import unpack
from tensorlens.journal.reader import Reader
from tensorlens.journal.row_buffer import RowBuffer, plain
from tensorlens.journal.rows import GapRow
from tensorlens.records.model import Script
from tensorlens.runner import follow
from tensorlens.runner import journal_file as files
from tensorlens.runner.follow import JournalFollower
from tensorlens.tracer.recording import journal_writer
from tensorlens.tracer.recording.journal_writer import JournalWriter

SIZE = 300_000  # bytes of a row. Compressed, they are half as many
SCRIPT = Script("program.py", (), "", "ok", 0, None)


def on_disk(stream: files.JournalStream) -> int:
    return os.fstat(stream.fileno()).st_blocks * 512


def write(writer: JournalWriter, rows: list[Any], number: int) -> None:
    rows.append(plain(GapRow(f"{number} {os.urandom(SIZE // 2).hex()}", None)))
    writer.flush()


@pytest.fixture
def can_release() -> None:
    with files.journal_file() as journal:
        os.write(journal.descriptor, bytes(1 << 20))
        if not files._punch_hole(journal.stream.fileno(), 0, 1 << 20):
            pytest.skip("this file system can't release a part of a file")


@pytest.mark.usefixtures("can_release")
def test_what_was_read_is_released_and_the_rest_is_not() -> None:
    rows = RowBuffer()
    found: list[int] = []
    with files.journal_file() as journal:
        writer = JournalWriter(rows, journal.descriptor)
        stream = journal.stream
        for number in range(40):
            write(writer, rows, number)
            if number % 5 == 4:
                found += [int(row[1].split()[0]) for batch in unpack(stream) for row in batch]
                stream.release()
                assert on_disk(stream) < 2 << 20
        writer.close()
        assert os.fstat(stream.fileno()).st_size > 40 * SIZE // 2
    assert found == list(range(40))


@pytest.mark.parametrize("works", [True, False])
def test_a_followed_journal_is_read_whole_whether_it_can_be_released_or_not(
    works: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[int] = []
    punch = files._punch_hole

    def tried(descriptor: int, offset: int, size: int) -> bool:
        tries.append(size)
        return works and punch(descriptor, offset, size)

    monkeypatch.setattr(files, "_punch_hole", tried)
    monkeypatch.setattr(follow, "_PAUSE", 60.0)  # the thread does not read beside this one
    rows = RowBuffer()
    reader = Reader(SCRIPT)
    with files.journal_file() as journal:
        writer = JournalWriter(rows, journal.descriptor)
        with JournalFollower(reader, journal.stream) as follower:
            for number in range(40):
                write(writer, rows, number)
                follower._read()
            writer.close()
    assert [getattr(event, "reason", "").split()[0] for event in reader.trace().events] == [*map(str, range(40))]
    assert len(tries) > 1 if works else len(tries) == 1


@pytest.mark.usefixtures("can_release")
def test_the_program_waits_for_a_reader_that_is_far_behind_and_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(journal_writer, "pause", pauses.append)
    monkeypatch.setattr(journal_writer, "FAR_BEHIND", 4 * SIZE)
    monkeypatch.setattr(journal_writer, "INTERVAL", 60.0)  # the thread does not look
    rows = RowBuffer()
    with files.journal_file() as journal:
        writer = JournalWriter(rows, journal.descriptor)
        batches = unpack(journal.stream)
        monkeypatch.setattr(files, "_PORTION", 1)

        def look(written: int, read: int) -> list[float]:
            pauses.clear()
            for number in range(written):
                write(writer, rows, number)
            for _ in range(read):
                next(batches)
            journal.stream.release()
            writer._wait_for_reader()
            return pauses[:]

        assert look(20, 0) == []  # nobody reads
        assert look(2, 3) == [journal_writer.LONGEST_PAUSE]
        assert look(2, 0) == []  # it has stopped
        assert look(0, 18) == []  # it is not far behind
        writer.close()


@pytest.mark.usefixtures("can_release")
@pytest.mark.parametrize("reads", [True, False])
def test_the_journal_is_compressed_only_while_the_reader_is_behind(
    reads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_writer, "FEW_UNREAD", 4 * SIZE)
    monkeypatch.setattr(journal_writer, "INTERVAL", 60.0)  # the thread does not look
    monkeypatch.setattr(files, "_PORTION", 1)
    rows = RowBuffer()
    with files.journal_file() as journal:
        writer = JournalWriter(rows, journal.descriptor)
        batches = unpack(journal.stream)
        sizes = []
        for number in range(20):
            before = writer._written
            write(writer, rows, number)
            sizes.append(writer._written - before)
            if reads:
                next(batches)
                journal.stream.release()
            writer._wait_for_reader()
        writer.close()
        left = [int(row[1].split()[0]) for batch in batches for row in batch]
    assert all(size > SIZE for size in sizes) if reads else sizes[0] > SIZE > 1.5 * sizes[-1]
    assert left == ([] if reads else [*range(20)])


def test_a_pause_is_one() -> None:
    before = time.monotonic()
    journal_writer.pause(0.05)
    assert time.monotonic() - before >= 0.05


def test_a_program_runs_on_when_the_journal_has_gone(tmp_path: Path) -> None:
    rows = RowBuffer()
    with (tmp_path / "journal").open("w+b") as stream:
        writer = JournalWriter(rows, os.dup(stream.fileno()))
        assert writer._descriptor is not None
        os.close(writer._descriptor)
        writer._wait_for_reader()
        write(writer, rows, 0)
        writer.close()
