"""Programs that go wrong (`endings.py`), and those that someone stops: Ctrl-C at a terminal, once and more
often, SIGTERM, and a kill at any moment."""

from __future__ import annotations

import os
import pty
import random
import re
import select
import signal
import sys
import textwrap
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from support.daily import first_daily
from support.endings import CALLS, ENDINGS, FOLDER, gaps, read, reported_ending, try_out

from tensorlens.records.invariants import validate
from tensorlens.records.model import Call
from tensorlens.runner.launch import RunOptions, Target, run_script

SECONDS = 120
LOST = 1.0  # seconds of recording that a killed process may lose


class Terminal:
    """`tensorlens explain` at a terminal of its own, where Ctrl-C reaches it and the script alike."""

    def __init__(self, script: Path, *options: str) -> None:
        self.text = ""
        self._pid, self._master = pty.fork()
        if self._pid == 0:
            command = [sys.executable, "-m", "tensorlens", "explain", *options, str(script)]
            os.execve(sys.executable, command, {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", "LINES": "100"})

    def _read(self, until: float) -> bool:
        """Returns whether there may be more."""
        if not select.select([self._master], [], [], max(until - time.monotonic(), 0))[0]:
            os.kill(self._pid, signal.SIGKILL)
            raise TimeoutError(self.text)
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how a terminal ends
            return False
        self.text += data.decode("utf-8", "replace").replace("\r\n", "\n")
        return bool(data)

    def wait_for(self, word: str) -> None:
        until = time.monotonic() + SECONDS
        while word not in self.text:
            assert self._read(until), self.text

    def interrupt(self) -> None:
        os.write(self._master, b"\x03")

    def wait_for_import(self) -> None:
        """Waits until the process that runs the script loads torch."""
        children = Path(f"/proc/{self._pid}/task/{self._pid}/children")
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            for child in children.read_text().split():
                with suppress(OSError):
                    if "libtorch" in Path(f"/proc/{child}/maps").read_text():
                        return
            time.sleep(0.01)

    def end(self) -> int:
        until = time.monotonic() + SECONDS
        while self._read(until):
            pass
        os.close(self._master)
        return os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])


def written(folder: Path, text: str) -> Path:
    path = folder / "program.py"
    path.write_text("import os, signal, sys, time, torch\nx = torch.ones(2)\ny = x * 2\n" + textwrap.dedent(text))
    return path


DAILY = {"raises/chained", "exits/os_exit", "crashes/a_null_pointer", "forks/the_child_raises", "itself/is_changed"}


def _marks(path: Path) -> list[pytest.MarkDecorator]:
    return [] if _name(path) in DAILY else [pytest.mark.complete]


def _name(path: Path) -> str:
    return path.relative_to(FOLDER).with_suffix("").as_posix()


@pytest.mark.parametrize("program", [pytest.param(path, id=_name(path), marks=_marks(path)) for path in ENDINGS])
def test_a_program_ends_as_it_does_without_the_lens_and_the_report_tells(program: Path, tmp_path: Path) -> None:
    ending = read(program)
    outcome = try_out(ending, tmp_path)
    assert outcome.comparable(outcome.under_lens) == outcome.comparable(outcome.plain)
    assert reported_ending(outcome.trace) == ending.reported
    assert outcome.recorded == CALLS
    reasons = gaps(outcome.trace)
    assert bool(reasons) == bool(ending.gap)
    assert [reason for reason in reasons if ending.gap not in reason] == []
    assert validate(outcome.trace) == []


def test_every_program_that_goes_wrong_is_described() -> None:
    assert {name for name in map(_name, ENDINGS) if name in DAILY} == DAILY
    kinds = re.compile(r"(ended|ran|was) .*(exit code -?\d+|by SIG\w+)")
    assert [path for path in ENDINGS if not kinds.fullmatch(read(path).reported)] == []


BUSY = ["in_backward", "in_a_sleep", "in_a_loop_of_calls", "in_a_loop_of_python", "waiting_for_a_thread"]


@pytest.mark.parametrize("place", first_daily(BUSY))
def test_ctrl_c_ends_the_script_and_the_report_follows(place: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(read(FOLDER / "interrupted" / f"{place}.py").source)
    terminal = Terminal(path)
    terminal.wait_for("ready")
    terminal.interrupt()
    assert terminal.end() == 130
    assert terminal.text.count("Traceback") == 1
    assert re.search(r"^KeyboardInterrupt", terminal.text, re.MULTILINE)
    assert "tensorlens" not in terminal.text
    assert "y = x * 2" in terminal.text


def test_a_second_ctrl_c_ends_the_cleaning_up(tmp_path: Path) -> None:
    body = """
        try:
            print("ready", flush=True)
            time.sleep(60)
        finally:
            print("cleaning", flush=True)
            time.sleep(60)
    """
    terminal = Terminal(written(tmp_path, body))
    for word in ("ready", "cleaning"):
        terminal.wait_for(word)
        time.sleep(0.3)  # python sleeps on where a signal comes between its last look for one and the system call
        terminal.interrupt()
    assert terminal.end() == 130
    assert "During handling of the above exception" in terminal.text
    assert "tensorlens" not in terminal.text
    assert "y = x * 2" in terminal.text


def test_a_script_that_handles_ctrl_c_goes_on(tmp_path: Path) -> None:
    body = """
        caught = []
        signal.signal(signal.SIGINT, lambda *_: caught.append(1))
        print("ready", flush=True)
        while not caught:
            x + y
        print("goes on", x.sum().item())
    """
    terminal = Terminal(written(tmp_path, body))
    terminal.wait_for("ready")
    terminal.interrupt()
    assert terminal.end() == 0
    assert "goes on 2.0" in terminal.text


def test_the_third_ctrl_c_kills_a_script_that_ignores_it(tmp_path: Path) -> None:
    body = """
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print("ready", flush=True)
        time.sleep(2)
        print("still", flush=True)
        time.sleep(60)
    """
    terminal = Terminal(written(tmp_path, body))
    terminal.wait_for("ready")
    for _ in range(2):
        terminal.interrupt()
        time.sleep(0.3)
    terminal.wait_for("still")
    terminal.interrupt()
    terminal.end()
    assert "SIGKILL" in terminal.text
    assert "y = x * 2" in terminal.text


def test_ctrl_c_before_the_script_has_begun(tmp_path: Path) -> None:
    terminal = Terminal(written(tmp_path, "time.sleep(60)\n"))
    terminal.wait_for_import()
    terminal.interrupt()
    assert terminal.end() == 130
    assert "tensorlens" not in terminal.text


@pytest.mark.parametrize("delay", first_daily([0, 0.5]))
def test_ctrl_c_while_the_report_is_made(delay: float, tmp_path: Path) -> None:
    body = """
        x = torch.ones(2, requires_grad=True)
        for n in range(3000):
            x = x * n
        print("done", flush=True)
        os._exit(0)
    """
    terminal = Terminal(written(tmp_path, body))
    terminal.wait_for("done")
    time.sleep(delay)
    terminal.interrupt()
    assert terminal.end() in (0, 130)
    assert "tensorlens" not in terminal.text


@pytest.mark.parametrize("delay", first_daily([0, 0.01, 0.05]))
def test_ctrl_c_once_the_report_is_out(delay: float, tmp_path: Path) -> None:
    terminal = Terminal(written(tmp_path, ""))
    terminal.wait_for("exit code 0")
    time.sleep(delay)
    terminal.interrupt()
    assert terminal.end() in (0, 130)
    assert "Traceback" not in terminal.text


def test_sigterm_reaches_the_script(tmp_path: Path) -> None:
    body = """
        def leave(*_):
            print("asked to leave", flush=True)
            sys.exit(4)
        signal.signal(signal.SIGTERM, leave)
        os.kill(os.getppid(), signal.SIGTERM)  # the command's own process
        time.sleep(60)
    """
    terminal = Terminal(written(tmp_path, body))
    terminal.end()
    assert "asked to leave" in terminal.text
    assert "exit code 4" in terminal.text


@pytest.mark.parametrize("number", first_daily(range(4)))
def test_a_killed_process_loses_the_last_second_at_the_most(number: int, tmp_path: Path) -> None:
    log = tmp_path / "log"
    body = f"""
        log = os.open({str(log)!r}, os.O_WRONLY | os.O_CREAT)
        os.write(log, b"%d 0\\n" % os.getpid())
        while True:
            x.add_(1)
            os.write(log, b"%d %f\\n" % (x._version, time.monotonic()))
    """
    killed = []

    def kill() -> None:
        while not (log.exists() and "\n" in log.read_text()):
            time.sleep(0.05)
        time.sleep(0.5 + 2 * random.random())
        killed.append(time.monotonic())
        os.kill(int(log.read_text().split()[0]), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    trace = run_script(Target("file", str(written(tmp_path, body))), RunOptions(timeout=SECONDS))
    thread.join()
    assert trace.script.outcome == "killed"
    assert validate(trace) == []
    lines = [line.split() for line in log.read_text().splitlines()[1:-1]]
    safe = max((int(version) for version, when in lines if float(when) < killed[0] - LOST), default=0)
    seen = max(write.after for event in trace.events if isinstance(event, Call) for write in event.writes)
    assert len(lines) > 100
    assert safe <= seen
