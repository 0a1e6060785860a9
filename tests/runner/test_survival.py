"""Programs that take their process down, journals and traces that were tampered with, text that is not to be obeyed."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.traces import written_alias

import tensorlens
from tensorlens.errors import TraceFileError, UsageError
from tensorlens.journal import overflow
from tensorlens.journal.batches import pack, unpack
from tensorlens.journal.row_buffer import RowBuffer, plain
from tensorlens.journal.rows import BROKEN, LOST, GapRow
from tensorlens.records.model import Call, Gap
from tensorlens.records.trace_file import loads
from tensorlens.render import render
from tensorlens.runner.launch import Target, run_script
from tensorlens.tracer.recording.journal_writer import JournalWriter

PACKAGE = Path(tensorlens.__file__).parent
SOURCE = "a = f()\nout = a.sigmoid()\nc = out.detach()\nc.zero_()\nout.sum().backward()\n"
GIGABYTES = 2
PEAK = 600 * 1024  # KiB


@pytest.mark.parametrize("name", ["nosuchmodule", "nosuchpackage.part", "", ".", "\0", "a b"])
def test_a_module_that_is_not_there_is_told_in_one_line(name: str) -> None:
    with pytest.raises(UsageError, match="no module named") as refused:
        run_script(Target("module", name))
    assert "\n" not in str(refused.value)


def test_a_script_behind_a_link_that_changes_while_it_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    real = tmp_path / "real.py"
    real.write_text("import torch\nopen(__file__, 'w').write('changed')\nx = torch.ones(2)\nprint(x.sum().item())\n")
    link = tmp_path / "link.py"
    link.symlink_to(real)
    trace = run_script(Target("file", str(link)))
    assert capfd.readouterr().out == "2.0\n"
    assert trace.script.outcome == "ok"
    assert "x = torch.ones(2)" in trace.sources[str(link)]


def test_bytes_are_passed_through_as_they_come(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("import os, sys\nfor _ in range(64): os.write(1, bytes(range(256)) * 4096)\n")
    command = [sys.executable, "-m", "tensorlens", "explain", str(path), "-o", str(tmp_path / "report.txt")]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    assert done.stdout == bytes(range(256)) * 4096 * 64


@pytest.mark.complete
def test_gigabytes_are_passed_through(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(f"import sys\nfor _ in range({GIGABYTES} * 1024): sys.stdout.write('x' * (1 << 20))\n")
    command = [sys.executable, "-m", "tensorlens", "explain", str(path), "-o", str(tmp_path / "report.txt")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    passed, expected = 0, b"x" * (1 << 20)
    with process.stdout:
        while piece := process.stdout.read(1 << 20):
            assert piece == expected[: len(piece)]
            passed += len(piece)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert (passed, status) == (GIGABYTES << 30, 0)
    assert used.ru_maxrss < PEAK  # of the command and of the program's process


@given(st.lists(st.text(min_size=1, max_size=20), min_size=3, max_size=3), st.text(max_size=60))
@settings(max_examples=20, deadline=None)
def test_nothing_in_a_report_is_obeyed_by_the_terminal(names: list[str], message: str) -> None:
    hostile = [f"\x1b[31m[bold]{names[0]}", f"\x9b2J\u202e{names[1]}", f"\r\b\x07[/]{names[2]}"]
    report = written_alias(SOURCE, names=(hostile[0], hostile[1], hostile[2]), message=f"\x1b]0;t\x07{message}")
    for form in ("table", "markdown"):
        obeyed = {c for c in render(report, form) if unicodedata.category(c) == "Cc" and c not in "\n"}
        assert obeyed == set()
        assert "\u202e" not in render(report, form)


@given(st.integers(0, 2**32), st.integers(1, 20))
@settings(max_examples=200, deadline=None)
def test_a_journal_with_wrong_bytes_yields_batches_or_ends(
    tmp_path_factory: pytest.TempPathFactory, seed: int, count: int
) -> None:
    data = bytearray(pack([1, 2, ("row", "text")]) + pack([3, (4, 5)]))
    chance = random.Random(seed)
    for _ in range(count):
        data[chance.randrange(len(data))] = chance.randrange(256)
    path = tmp_path_factory.getbasetemp() / "journal"
    path.write_bytes(data)
    with path.open("rb") as stream:
        assert len(list(unpack(stream))) <= 2


@pytest.mark.parametrize("damage", [lambda body: body[:-1], lambda body: body + b"x"])
def test_a_batch_whose_checksum_is_not_reached_is_no_batch(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    whole = pack([1, 2, ("row", "text")])
    size = struct.Struct("<Q")
    body = damage(whole[size.size :])
    path = tmp_path / "journal"
    path.write_bytes(whole + size.pack(len(body)) + body)
    with path.open("rb") as stream:
        assert list(unpack(stream)) == [[1, 2, ("row", "text")]]
        assert stream.tell() == len(whole)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 1_000_000,
        '{"format": "tensorlens.trace", "version": 1, "trace": ' + '{"a":' * 100_000,
        '{"format": "tensorlens.trace", "version": ' + "9" * 10_000 + "}",
        '{"format": "tensorlens.trace", "version": "\\u001b[31m\\n"}',
        '{"format": "tensorlens.trace", "version": 1e999}',
        '{"format": "tensorlens.trace", "version": NaN}',
        "cposix\nsystem\n(S'true'\ntR.",
        "\x00" * 100,
        '{"format": ' * 3,
    ],
)
def test_a_hostile_trace_is_refused_in_one_printable_line(text: str) -> None:
    with pytest.raises(TraceFileError) as refused:
        loads(text)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


def test_a_program_that_closes_every_descriptor_finds_nothing_of_ours_in_its_files(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import os, time, torch\nx = torch.ones(2)\ntime.sleep(1)\nos.closerange(3, 60)\n"
        "files = [open(str(number), 'wb') for number in range(20)]\ny = x * 2\ntime.sleep(1)\n"
        "print([os.fstat(file.fileno()).st_size for file in files])\n"
    )
    monkeypatch.chdir(tmp_path)
    trace = run_script(Target("file", str(path)))
    assert capfd.readouterr().out == f"{[0] * 20}\n"
    assert [event.op for event in trace.events if isinstance(event, Call)] == ["torch.ones"]
    assert LOST in [event.reason for event in trace.events if isinstance(event, Gap)]


@pytest.mark.parametrize(("garbage", "broken"), [("b'not a journal'", False), ("bytes(1 << 20)", True)])
def test_what_a_program_writes_into_its_journal_is_written_over(
    garbage: str, broken: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import os, sys, time, torch\nx = torch.ones(2)\ntime.sleep(1)\n"
        "for number in range(3, 60):\n"
        "    if '/tensorlens-' in os.path.realpath(f'/proc/self/fd/{number}'):\n"
        f"        os.write(number, {garbage})\n"
        "time.sleep(0.2)\n"  # it is read while it is written
        "y = x * 2\n"
    )
    trace = run_script(Target("file", str(path)))
    assert capfd.readouterr().err == ""
    assert [event.op for event in trace.events if isinstance(event, Call)] == ["torch.ones", "Tensor.mul"]
    assert (BROKEN in [event.reason for event in trace.events if isinstance(event, Gap)]) == broken


def test_what_is_flushed_again_by_a_signal_is_written_once(tmp_path: Path) -> None:
    """Ctrl-C, or a handler that ends the process, may come at any point of a flush."""
    interrupted = 0
    for moment in range(1, 60):
        path = tmp_path / f"journal{moment}"
        rows = RowBuffer()
        rows.extend(plain(GapRow(str(number), None)) for number in range(5))
        with path.open("w+b") as journal:
            sink = JournalWriter(rows, journal.fileno())
            steps = 0

            def interrupt(frame: Any, event: str, argument: Any, moment: int = moment) -> Any:
                nonlocal steps
                if not Path(frame.f_code.co_filename).is_relative_to(PACKAGE):
                    return None  # a callback of the garbage collector, which hypothesis adds
                steps += 1
                if steps == moment:
                    raise KeyboardInterrupt
                return interrupt

            sys.settrace(interrupt)
            try:
                sink.flush()
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                sys.settrace(None)
            rows.append(plain(GapRow("last", None)))
            sink.close()
            journal.seek(0)
            assert [row[1] for batch in unpack(journal) for row in batch] == ["0", "1", "2", "3", "4", "last"]
    assert interrupted > 5


def test_no_character_of_a_json_report_is_obeyed_by_the_terminal() -> None:
    hidden = "\x7f\x9b31m\x9d0;title\x9c\u202e\u2066\u2028\u2029\u200b\ufeff\U000e0041\u00ad"
    report = written_alias(SOURCE, names=(hidden, "b", "é数"), message=hidden)
    text = render(report, "json")
    assert {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") and c != "\n"} == set()
    assert "\\u009b31m" in text
    assert "é数" in text
    data = json.loads(text)
    assert hidden in [tensor["name"] for tensor in data["tensors"]]


def test_a_disk_that_is_full_loses_nothing_of_a_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import resource, time, torch\nx = torch.ones(2)\ntime.sleep(0.5)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))\n"  # as on a full disk: no file can grow
        "for n in range(5000): y = x * n\n"
        "time.sleep(0.5)\nz = y.exp()\nprint('end')\n"
    )
    trace = run_script(Target("file", str(path)))
    assert capfd.readouterr() == ("end\n", "")
    assert {total.op: total.count for total in trace.totals} == {"torch.ones": 1, "Tensor.mul": 5000, "Tensor.exp": 1}
    assert [event.reason for event in trace.events if isinstance(event, Gap)] == []
    assert (trace.script.outcome, trace.script.exit_code) == ("ok", 0)


@pytest.mark.parametrize("is_read", [True, False])
def test_what_a_full_disk_has_no_room_for_is_read_from_the_pipe(
    is_read: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overflow, "PATIENCE", 0.01)
    rows = RowBuffer()
    with open("/dev/full", "r+b", buffering=0) as full, (tmp_path / "journal").open("w+b") as empty:
        ends = overflow.pipe()
        sink = JournalWriter(rows, full.fileno(), spare=ends)
        following = overflow.Overflow(ends[0])
        stream: Any = empty
        found: list[Any] = []
        for number in range(40):
            rows.append(plain(GapRow(os.urandom(50_000).hex(), number)))  # the pipe has room for some of them
            sink.flush()
            if is_read:
                stream = following.continued(stream)
                found += [row[2] for batch in unpack(stream) for row in batch]
        sink.close()
        stream = following.continued(stream)
        found += [row[2] for batch in unpack(stream) for row in batch]
        for end in ends:
            os.close(end)
    assert found == list(range(40)) if is_read else 1 < len(found) < 40


def test_a_program_that_forks_has_no_thread_of_the_lens_beside_it(tmp_path: Path) -> None:
    """Python 3.12 and later warn of a fork while other threads run, and the warning may be an error."""
    script = tmp_path / "script.py"
    script.write_text(
        "import os, time, warnings\n"
        "import torch\n"
        "warnings.simplefilter('error')\n"
        "def threads():\n"
        "    return len(os.listdir('/proc/self/task'))\n"
        "with_ours = threads()\n"
        "for _ in range(20):\n"
        "    torch.ones(2)\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        os._exit(threads() - 1)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "time.sleep(0.1)\n"
        "assert threads() == with_ours\n"
    )
    trace = run_script(Target("file", str(script)))
    assert (trace.script.outcome, [failure.message for failure in trace.failures]) == ("ok", [])
    assert sum(isinstance(event, Call) for event in trace.events) == 20


def test_the_thread_ends_before_a_fork_and_starts_after_it(tmp_path: Path) -> None:
    def threads() -> set[str]:
        return {task.name for task in Path("/proc/self/task").iterdir()}

    with (tmp_path / "journal").open("w+b") as journal:
        rows = RowBuffer()
        rows.write(GapRow, "before", None)
        before = threads()
        sink = JournalWriter(rows, journal.fileno())
        sink.pause()
        assert threads() <= before, "threads of other tests may end meanwhile"
        sink.resume()
        for _ in range(200):
            if threads() - before and not rows:
                break
            time.sleep(0.05)
        assert rows == []
        sink.close()
