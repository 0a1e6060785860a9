"""Looks at what the command shows on a terminal while it is at work."""

from __future__ import annotations

import io
import os
import pty
import select
import sys
import time
from collections.abc import Iterator
from typing import TextIO

import pytest

from tensorlens.cli.waiting import working
from tensorlens.compare import compare


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[int, TextIO]]:
    """Opens a terminal; yields the user's end of it, and a stream for the program."""
    master, slave = pty.openpty()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with os.fdopen(slave, "w") as stream:
        yield master, stream
    os.close(master)


def shown_on(master: int) -> str:
    shown = b""
    while select.select([master], [], [], 0.1)[0]:
        shown += os.read(master, 100_000)
    return shown.decode()


def test_a_bar_is_shown_and_erased(terminal: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch) -> None:
    master, stream = terminal
    monkeypatch.setattr(sys, "stderr", stream)
    with working("[bold]measuring") as report:
        report(1, 4)
        time.sleep(0.6)
    shown = shown_on(master)
    assert "[bold]measuring" in shown
    assert shown.endswith("\x1b[2K"), "the line is erased"
    assert "\x1b[?25" not in shown, "the cursor stays as it is"


def test_nothing_is_shown_where_nobody_looks(terminal: tuple[int, TextIO], monkeypatch: pytest.MonkeyPatch) -> None:
    master, stream = terminal
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "dumb")
    with working("measuring") as report:
        report(1, 4)
    assert shown_on(master) == ""
    monkeypatch.setenv("TERM", "xterm")
    silent = io.StringIO()
    monkeypatch.setattr(sys, "stderr", silent)
    with working("measuring") as report:
        report(1, 4)
    assert silent.getvalue() == ""


def test_a_comparison_reports_each_answer() -> None:
    reports: list[tuple[int, int]] = []
    compare(["clone", "detach"], on_answer=lambda answered, asked: reports.append((answered, asked)))
    answered, asked = zip(*reports, strict=True)
    assert list(answered) == sorted(set(answered))
    assert set(asked) == {asked[0]}
    assert asked[0] / 2 < answered[-1] <= asked[0]
