"""Journals and saved traces that are well-formed and make no sense are handled in bounded time and memory."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest
from support.folders import DATA, TESTS
from support.forged_trace import EDITS
from support.traces import written_alias
from support.warm import Warm

from tensorlens.cli.output import Output
from tensorlens.cli.rendered_report import rendered_report
from tensorlens.journal import batches
from tensorlens.journal.batches import pack, unpack
from tensorlens.journal.reader import Reader
from tensorlens.journal.row_buffer import Tag, plain
from tensorlens.journal.rows import BROKEN, GapRow
from tensorlens.records.model import Script
from tensorlens.records.trace_file import dumps
from tensorlens.runner.follow import JournalFollower, trace_of

PROGRAM = DATA / "entrances.py"
MEMORY = 1536 * 1024 * 1024
JOURNALS, FIRST, PART = 1560, 60, 250
SEEDS = [
    range(FIRST),
    *(pytest.param(range(n, n + PART), marks=pytest.mark.complete) for n in range(FIRST, JOURNALS, PART)),
]
EVERYDAY = {"columns", "bases in a circle", "callers in a circle", "nodes", "versions", "codes that name no finding"}


@pytest.fixture(scope="module")
def recorded(warm: Warm, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("forged") / "journal"
    path.write_bytes(warm.journal(PROGRAM))
    return path


def limited(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, *command],
        check=False,
        stderr=subprocess.PIPE,
        text=True,
        timeout=600,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(TESTS), os.environ.get("PYTHONPATH", "")))},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("seeds", SEEDS)
def test_a_forged_journal_is_told_of(seeds: range, recorded: Path, tmp_path: Path) -> None:
    limited("-m", "support.forged_journal", str(recorded), str(tmp_path), *map(str, seeds))


@pytest.mark.parametrize("edits", [EVERYDAY, pytest.param(set(EDITS) - EVERYDAY, marks=pytest.mark.complete)])
def test_a_forged_trace_is_shown_or_refused(edits: set[str], tmp_path: Path) -> None:
    source = "a = f()\nout = a.sigmoid()\nc = out.detach()\nc.zero_()\nout.sum().backward()\n"
    path = tmp_path / "trace.json"
    path.write_text(dumps(written_alias(source).trace), encoding="utf-8")
    limited("-m", "support.forged_trace", str(path), *sorted(edits))


def json_report(path: Path, rows: list[Any]) -> str:
    path.write_bytes(pack(rows))
    reader = Reader(Script("forged.py", (), "", "killed", None, None))
    with path.open("rb", buffering=0) as stream, JournalFollower(reader, stream):
        pass
    return rendered_report(trace_of(reader, reader.script), Output("json")).text


@pytest.mark.parametrize(
    "rows",
    [
        [(Tag.CALL.value, "torch.ones", 10**9, (), (), (), (), 0, 0, 0)],
        [(Tag.CALL_TEMPLATE.value, 7, "torch.ones", 0, (), "", "", 0, False, None, 0, 0, 0, -40, 0), 7, 7, 7, 7],
        [(Tag.CALL_TEMPLATE.value, 7, "torch.ones", 0, (), "", "", 0, False, None, 0, 0, 0, 2**62, 0), 7, 7, 7, 7],
        [(Tag.BACKWARD.value, 0, "autograd.grad", 0, (), (), (-1,), False, False, False)],
        [(Tag.GAP.value,)],
        [(10**9,)],
        [()],
        [10**30],
    ],
)
def test_what_makes_no_sense_is_said_to_be_damaged(rows: list[Any], tmp_path: Path) -> None:
    report = json.loads(json_report(tmp_path / "journal", rows))
    assert BROKEN in [gap["reason"] for gap in report["gaps"]]


def test_a_batch_that_unpacks_to_too_much_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_BATCH", 1 << 20)
    body = zlib.compress(bytes(1 << 26))
    path = tmp_path / "journal"
    path.write_bytes(pack([plain(GapRow("before", None))]) + len(body).to_bytes(8, "little") + body)
    with path.open("rb") as stream:
        assert list(unpack(stream)) == [[plain(GapRow("before", None))]]
        assert not batches.is_read(stream)
