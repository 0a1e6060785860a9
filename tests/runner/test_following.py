"""The runner returns all that a script recorded, until its process is gone; `on_start` runs while the script does."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tensorlens.records.model import Call, Trace
from tensorlens.runner.follow import JournalFollower
from tensorlens.runner.launch import RunOptions, Target, run_script

EXITS_SLOWLY = """
    import atexit, os, pathlib, time
    import torch

    def last():
        until = time.monotonic() + 60
        while not pathlib.Path({mark!r}).exists() and time.monotonic() < until:
            time.sleep(0.05)
        {last}

    atexit.register(last)
    torch.ones(2)
"""


def traced(folder: Path, last: str = "pass") -> Trace:
    """The trace of a script that waits for `on_start` before it does `last` and exits."""
    mark = folder / "started"
    script = folder / "slow.py"
    script.write_text(textwrap.dedent(EXITS_SLOWLY).format(mark=str(mark), last=last), encoding="utf-8")
    calls: list[None] = []

    def on_start() -> None:
        calls.append(None)
        mark.touch()

    trace = run_script(Target("file", str(script)), RunOptions(timeout=100), on_start)
    assert len(calls) == 1
    return trace


def ops(trace: Trace) -> list[str]:
    return [event.op for event in trace.events if isinstance(event, Call)]


def test_on_start_is_called_while_the_script_runs(tmp_path: Path) -> None:
    trace = traced(tmp_path, f"pathlib.Path({str(tmp_path / 'late')!r}).touch(exist_ok=False)")
    assert (tmp_path / "late").exists()
    assert ops(trace) == ["torch.ones"]


def test_the_trace_includes_what_runs_after_the_last_line(tmp_path: Path) -> None:
    assert ops(traced(tmp_path, "torch.zeros(3)")) == ["torch.ones", "torch.zeros"]


def test_an_exit_status_that_changes_at_exit_is_recorded(tmp_path: Path) -> None:
    trace = traced(tmp_path, "os._exit(7)")
    assert trace.script.exit_code == 7
    assert ops(trace) == ["torch.ones"]


@pytest.mark.parametrize(("last", "is_final"), [("pass", True), ("torch.zeros(3)", False), ("os._exit(7)", False)])
def test_a_trace_is_ready_before_the_process_is_gone(tmp_path: Path, last: str, is_final: bool) -> None:
    """The script waits for `on_trace` before it does `last`; the early trace is returned if it is still complete."""
    mark, traces = tmp_path / "traced", []

    def on_trace(trace: Trace) -> None:
        traces.append(trace)
        mark.touch()

    script = tmp_path / "slow.py"
    script.write_text(textwrap.dedent(EXITS_SLOWLY).format(mark=str(mark), last=last), encoding="utf-8")
    final = run_script(Target("file", str(script)), RunOptions(timeout=100), on_trace=on_trace)
    assert [ops(trace) for trace in traces] == [["torch.ones"]]
    assert (final is traces[0]) == is_final


def test_the_journal_is_read_while_the_script_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The script waits until its first rows were read: it exits only if they are read before its end."""
    mark = tmp_path / "started"
    counted = JournalFollower._noted

    def noted(self: JournalFollower, batches: object) -> object:
        for batch in counted(self, batches):  # type: ignore[arg-type]
            mark.touch()
            yield batch

    monkeypatch.setattr(JournalFollower, "_noted", noted)
    script = tmp_path / "slow.py"
    last = f"assert pathlib.Path({str(mark)!r}).exists()"
    script.write_text(textwrap.dedent(EXITS_SLOWLY).format(mark=str(mark), last=last), encoding="utf-8")
    trace = run_script(Target("file", str(script)), RunOptions(timeout=30))
    assert trace.script.outcome == "ok"
