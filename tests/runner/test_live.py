"""The live line of a long run: on a terminal only, on its last row, and never between what the program writes."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tensorlens.runner import progress_line
from tensorlens.runner.progress_line import ProgressLine

TAKE_TERMINAL = """\
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
OURS = re.compile("\x1bD\x1b7\x1b\\[1;[0-9]+r\x1b8\x1b\\[A|\x1b7[^8]*?\x1b\\[2K([^\x1b]*)\x1b8")
SLOW = """\
import pathlib, sys, time
import torch
print("begun, no end of line", end="", flush=True)
until = time.monotonic() + 60
while not pathlib.Path(sys.argv[1]).exists() and time.monotonic() < until:
    torch.ones(2)
    time.sleep(0.01)
print(": goes on", flush=True)
"""


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    """Both ends of a terminal of 80 columns and 24 rows: the one on which it is watched, and a program's."""
    watched, program = pty.openpty()
    termios.tcsetwinsize(program, (24, 80))
    yield watched, program
    for end in (watched, program):
        os.close(end)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "slow.py"
    path.write_text(SLOW, encoding="utf-8")
    return path


def explained(
    terminal: tuple[int, int], script: Path, enough: Callable[[str, int], object], stderr: int | None = None
) -> str:
    """Returns what `tensorlens explain` sends to a terminal, until `enough(text, pid)` is true."""
    watched, program = terminal
    lens = [sys.executable, "-m", "tensorlens", "explain", str(script), str(script.with_name("enough"))]
    process = subprocess.Popen(
        [sys.executable, "-c", TAKE_TERMINAL, *lens],
        stdin=program,
        stdout=program,
        stderr=program if stderr is None else stderr,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
    )
    text = ""
    while process.poll() is None or _is_waiting(watched):
        if _is_waiting(watched):
            text += os.read(watched, 65536).decode()
            enough(text, process.pid)
    return text.replace("\r\n", "\n")


def _is_waiting(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0.05)[0])


def read_all(watched: int) -> str:
    text = ""
    while _is_waiting(watched):
        text += os.read(watched, 1000).decode()
    return text


def test_the_line_stands_apart_from_what_the_program_writes(terminal: tuple[int, int], script: Path) -> None:
    def enough(text: str, pid: int) -> None:
        if len(OURS.findall(text)) > 3:
            script.with_name("enough").touch()

    text = explained(terminal, script, enough)
    lines = [found for found in OURS.findall(text) if found]
    assert all(re.fullmatch(r"tensorlens: [\d,]+ ops, \d+ s", line) for line in lines)
    assert len(lines) >= 2
    rest = OURS.sub("", text)
    assert rest.startswith("begun, no end of line: goes on\nslow.py   torch ")
    assert rest.rstrip().endswith("exit code 0")
    assert "\x1b" not in rest
    assert text.rindex("\x1b[r") > text.rindex("\x1b[1;23r")  # all rows scroll again


def test_the_terminal_is_whole_again_after_ctrl_c(terminal: tuple[int, int], script: Path) -> None:
    sent: list[int] = []

    def enough(text: str, pid: int) -> None:
        if OURS.search(text) and not sent:
            sent.append(pid)
            os.killpg(pid, signal.SIGINT)

    text = explained(terminal, script, enough)
    assert sent
    assert text.rindex("\x1b[r") > text.rindex("\x1b[1;23r")
    assert "KeyboardInterrupt" in OURS.sub("", text)


def test_no_line_where_standard_error_is_no_terminal(terminal: tuple[int, int], script: Path) -> None:
    script.write_text(f"import torch, time\ntorch.ones(2)\ntime.sleep({progress_line.AFTER + 1})\n", encoding="utf-8")
    with open(script.with_name("errors"), "wb") as errors:
        text = explained(terminal, script, lambda text, pid: None, errors.fileno())
    assert "exit code 0" in text
    assert "\x1b" not in text
    assert script.with_name("errors").read_bytes() == b""


def test_a_program_that_takes_the_terminal_over_is_left_alone(
    terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    watched, program = terminal
    monkeypatch.setattr(progress_line, "AFTER", 0.0)
    monkeypatch.setattr(progress_line, "EVERY", 0.0)
    monkeypatch.setattr(os, "tcgetpgrp", lambda descriptor: os.getpgrp())
    line = ProgressLine(program)
    line.show(1)
    assert "1 ops" in read_all(watched)
    modes = termios.tcgetattr(program)
    modes[3] &= ~(termios.ICANON | termios.ECHO)
    termios.tcsetattr(program, termios.TCSANOW, modes)
    line.show(2)
    assert "ops" not in read_all(watched)
    line.show(3)
    line.remove()
    assert read_all(watched) == ""


def test_a_low_terminal_has_no_row_to_spare(terminal: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    watched, program = terminal
    monkeypatch.setattr(progress_line, "AFTER", 0.0)
    monkeypatch.setattr(os, "tcgetpgrp", lambda descriptor: os.getpgrp())
    termios.tcsetwinsize(program, (4, 80))
    line = ProgressLine(program)
    line.show(1)
    line.remove()
    assert read_all(watched) == ""


KEEPS_TERMINAL = """\
import fcntl, pathlib, subprocess, sys, termios, time
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
lens = subprocess.Popen(sys.argv[2:])
print("pid", lens.pid, flush=True)
lens.wait()
while not pathlib.Path(sys.argv[1]).exists():
    time.sleep(0.05)
time.sleep(1)
"""


def test_the_terminal_is_whole_again_when_the_command_is_killed(
    terminal: tuple[int, int], script: Path, tmp_path: Path
) -> None:
    watched, program = terminal
    files = tmp_path / "files"
    files.mkdir()
    enough = script.with_name("enough")
    lens = [sys.executable, "-m", "tensorlens", "explain", str(script), str(enough)]
    shell = subprocess.Popen(
        [sys.executable, "-c", KEEPS_TERMINAL, str(enough), *lens],
        stdin=program,
        stdout=program,
        stderr=program,
        start_new_session=True,
        env={**os.environ, "TERM": "xterm", "TMPDIR": str(files)},
    )
    text, killed = "", False
    while shell.poll() is None or _is_waiting(watched):
        if _is_waiting(watched):
            text += os.read(watched, 65536).decode()
        if not killed and "\x1b[1;23r" in text:
            os.kill(int(text.split()[1]), signal.SIGKILL)
            killed = True
        if killed and "\x1b[r" in text:
            enough.touch()
    assert text.rindex("\x1b[r") > text.rindex("\x1b[1;23r")
    assert text.endswith(": goes on\r\n")  # the program went on without us
    assert list(files.iterdir()) == []


@pytest.mark.complete
def test_the_terminal_is_whole_while_the_command_is_stopped(terminal: tuple[int, int], script: Path) -> None:
    seen: list[str] = []

    def enough(text: str, pid: int) -> None:
        if not seen and OURS.search(text):
            seen.append(text)
            os.kill(pid, signal.SIGTSTP)
        elif len(seen) == 1 and "\x1b[r" in text:
            seen.append(text)
            os.kill(pid, signal.SIGCONT)
        elif len(seen) == 2 and text.count("\x1b[1;23r") == 2:
            script.with_name("enough").touch()

    text = explained(terminal, script, enough)
    assert len(seen) == 2
    assert text.rstrip().endswith("exit code 0")


def test_a_program_that_is_quit_is_reported(terminal: tuple[int, int], script: Path) -> None:
    def enough(text: str, pid: int) -> None:
        if "begun" in text and not script.with_name("enough").exists():
            script.with_name("enough").touch()
            os.killpg(pid, signal.SIGQUIT)

    text = explained(terminal, script, enough)
    assert "SIGQUIT" in text
