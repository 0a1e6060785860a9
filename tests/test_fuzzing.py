"""Runs generated programs and trace files: some hundreds every day, thousands with `make fuzz`."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzzing import EVERYDAY, PARTS, THOROUGH
from fuzzing.damage import Corpus, damaged, wrong_bytes
from fuzzing.programs import programs
from fuzzing.texts import command_lines, said_by, sources
from fuzzing.verdict import obeyed, wrong_with, wrong_with_report
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from support.folders import PROGRAMS
from support.traces import gap_reasons
from support.warm import Warm, comparable

from tensorlens.errors import TraceFileError
from tensorlens.journal.batches import is_read, pack, unpack
from tensorlens.journal.reader import Reader
from tensorlens.journal.rows import BROKEN
from tensorlens.records import trace_file
from tensorlens.records.model import Call, Script
from tensorlens.records.report import Report

SAVED = (
    "correct/checkpointed_stack",
    "failing/checkpointed_stack_staging_buffer",
    "failing/tiling_function_forgets_repeat",
)
ROWS = 20  # of a batch
LONGEST = 300  # characters of a refusal

each_part = pytest.mark.parametrize(
    "part", [None, *(pytest.param(n, marks=pytest.mark.complete) for n in range(PARTS))]
)


def run(made: st.SearchStrategy[Any], try_one: Callable[[Any], str], kind: str, part: int | None) -> Counter[str]:
    """Counts the outcomes. The everyday run always generates the same examples, the thorough one new ones each time."""
    count = EVERYDAY[kind] if part is None else THOROUGH[kind] // PARTS
    outcomes: Counter[str] = Counter()

    @settings(
        max_examples=count, deadline=None, database=None, derandomize=part is None,
        suppress_health_check=list(HealthCheck), phases=(Phase.generate, Phase.shrink),
    )  # fmt: skip
    @given(made)
    def trial(one: Any) -> None:
        outcomes[try_one(one)] += 1

    trial()
    return outcomes


@each_part
def test_a_made_program_is_what_it_is_without_the_lens(
    part: int | None, warm: Warm, capsys: pytest.CaptureFixture[str]
) -> None:
    def try_one(text: str) -> str:
        with tempfile.TemporaryDirectory() as folder:
            script = Path(folder) / "program.py"
            script.write_text(text, encoding="utf-8")
            plain = warm.plain(script)
            if plain.returncode < 0:
                return "torch itself crashed"  # it may depend on what was read before
            under, trace = warm.traced(script)
        assert comparable(under) == comparable(plain)
        assert "could not be" not in gap_reasons(trace)
        assert wrong_with(trace) == []
        return trace.script.outcome

    outcomes = run(programs(), try_one, "programs", part)
    with capsys.disabled():
        print(f"\n{outcomes.total()} programs: {dict(outcomes)}")
    assert outcomes["ok"]
    assert outcomes["error"]


@pytest.fixture(scope="module")
def saved(warm: Warm) -> Corpus:
    folder = PROGRAMS
    return Corpus(trace_file.dumps(warm.traced(folder / f"{name}.py")[1]) for name in SAVED)


@each_part
def test_a_damaged_trace_file_is_refused_in_one_line_or_can_be_shown(
    part: int | None, saved: Corpus, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "trace.json"

    def try_one(content: bytes) -> str:
        path.write_bytes(content)
        try:
            trace = trace_file.load(path)
        except TraceFileError as error:
            message = str(error).removeprefix(str(path))
            assert message.isprintable()
            assert len(message) < LONGEST
            return "refused"
        assert wrong_with(trace, lesson=True) == []
        return "shown"

    outcomes = run(damaged(saved), try_one, "trace files", part)
    with capsys.disabled():
        print(f"\n{outcomes.total()} trace files: {dict(outcomes)}")
    assert outcomes["refused"]
    assert outcomes["shown"]


@pytest.fixture(scope="module")
def journal(warm: Warm) -> bytes:
    """Returns the journal of a real run in many small batches, like that of a long run."""
    whole = warm.journal(PROGRAMS / f"{SAVED[1]}.py")
    items = [item for batch in batches_of(whole) for item in batch]
    starts = [position for position, item in enumerate(items) if isinstance(item, tuple)][::ROWS]
    return b"".join(pack(items[start:stop]) for start, stop in zip(starts, [*starts[1:], len(items)], strict=True))


def batches_of(content: bytes) -> list[list[Any]]:
    with tempfile.TemporaryFile() as stream:
        stream.write(content)
        stream.seek(0)
        return list(unpack(stream))


def read(path: Path) -> Reader:
    reader = Reader(Script("program.py", (), "/", "killed", None, None))
    with path.open("rb") as stream:
        reader.read(unpack(stream))
        if not is_read(stream):
            reader.break_off(BROKEN)
    return reader


@each_part
def test_a_damaged_journal_keeps_what_came_before(
    part: int | None, journal: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "journal"
    path.write_bytes(journal)
    undamaged = read(path).trace()
    whole = [event.op for event in undamaged.events if isinstance(event, Call)]

    def try_one(content: bytes) -> str:
        path.write_bytes(content)
        trace = read(path).trace()
        calls = [event.op for event in trace.events if isinstance(event, Call)]
        assert calls == whole[: len(calls)]
        assert wrong_with(trace) == []
        if trace != undamaged:  # other bytes may unpack to the same rows
            assert BROKEN in gap_reasons(trace) or journal.startswith(content)
        return "all was read" if calls == whole else "the beginning was read" if calls else "nothing was read"

    outcomes = run(wrong_bytes(journal), try_one, "journals", part)
    with capsys.disabled():
        print(f"\n{outcomes.total()} journals: {dict(outcomes)}")
    assert outcomes["the beginning was read"]


@each_part
def test_whatever_is_typed_is_answered_with_an_exit_code_and_plain_text(
    part: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def try_one(arguments: list[str]) -> str:
        code, out, err = said_by(arguments)
        assert code in (0, 1, 2)
        assert obeyed("stdout", out) + obeyed("stderr", err) == []
        assert not re.search(r"^Traceback \(most", err, re.MULTILINE)
        return str(code)

    outcomes = run(command_lines(), try_one, "command lines", part)
    with capsys.disabled():
        print(f"\n{outcomes.total()} command lines: exit codes {dict(outcomes)}")
    assert outcomes["0"]
    assert outcomes["2"]


@each_part
def test_any_source_is_shown_and_never_obeyed(part: int | None, capsys: pytest.CaptureFixture[str]) -> None:
    def try_one(report: Report) -> str:
        assert wrong_with_report(report, lesson=True) == []
        return "shown"

    outcomes = run(sources(), try_one, "sources", part)
    with capsys.disabled():
        print(f"\n{outcomes.total()} sources: {dict(outcomes)}")
