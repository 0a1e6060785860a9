"""Runs the programs that end badly (`programs/endings`), with and without TensorLens.

Each program continues the prelude below. Comments in its first lines say what the report must say (the ending, a gap)
and how the program is stopped. `test_endings.py` checks the reports; `tools/trust_page.py` writes down the results.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.folders import PROGRAMS
from support.warm import Ran
from tensorlens import load
from tensorlens.records.model import Gap, Trace
from tensorlens.render.report.headline import outcome

FOLDER = PROGRAMS / "endings"
ENDINGS = sorted(FOLDER.rglob("*.py"))
PRELUDE = """\
import ctypes, os, signal, sys, threading, time, torch
x = torch.ones(2, requires_grad=True)
for _ in range(99): y = x * 2
"""
SCRIPT = "program.py"
CALLS = 100  # of torch, in the prelude
SECONDS = 120  # until a run counts as hanging
GRACE = 2  # seconds between asking a program to stop and killing it, as with `--timeout`

_ADDRESS = re.compile(r"0x[0-9a-f]+")
_REPEATED = re.compile(r"Previous line repeated \d+ more times")  # fewer under the lens: it needs frames too


_POINTER = re.compile(r"^ *[~^]+\n", re.MULTILINE)  # Ctrl-C falls anywhere in a line


@dataclass(frozen=True, slots=True)
class Ending:
    """A program, and what its first lines say of its end."""

    source: str
    reported: str  # "was killed by SIGSEGV"
    gap: str
    interrupts: tuple[str, ...]  # lines that it prints; Ctrl-C is pressed after each
    timeout: int | None  # seconds until it is stopped


def read(path: Path) -> Ending:
    text = path.read_text("utf-8")
    marks = dict(re.findall(r"^# (gap:|Ctrl-C after:|--timeout) (.*)$", text, re.MULTILINE))
    words = marks.get("Ctrl-C after:")
    timeout = marks.get("--timeout")
    return Ending(
        PRELUDE + text,
        text.partition("\n")[0].removeprefix("# "),
        marks.get("gap:", ""),
        tuple(words.split(", ")) if words else (),
        int(timeout) if timeout else None,
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """The results of a program: its plain run, its run under TensorLens, and the trace of that run."""

    plain: Ran
    under_lens: Ran
    trace: Trace

    @property
    def is_unchanged(self) -> bool:
        return self.comparable(self.plain) == self.comparable(self.under_lens)

    @staticmethod
    def comparable(ran: Ran) -> tuple[int, str, str]:
        texts = [_REPEATED.sub("", _ADDRESS.sub("0x", text)) for text in (ran.stdout, ran.stderr)]
        if "KeyboardInterrupt" in texts[1]:
            texts[1] = _POINTER.sub("", texts[1])
        return ran.returncode, texts[0], texts[1]

    @property
    def recorded(self) -> int:
        """Returns the number of the prelude's calls in the report, folded or not."""
        last = len(PRELUDE.splitlines())
        spans = {site.id: site.span for site in self.trace.sites}
        prelude = {n for n, span in spans.items() if span.file.endswith(SCRIPT) and span.line <= last}
        return sum(total.count for total in self.trace.totals if total.site in prelude)


def reported_ending(trace: Trace) -> str:
    """Returns the report's text about the ending: "was killed by SIGSEGV"."""
    return outcome(trace).removeprefix("the script ").partition(";")[0]


def gaps(trace: Trace) -> list[str]:
    return [event.reason for event in trace.events if isinstance(event, Gap)]


def try_out(ending: Ending, folder: Path) -> Outcome:
    """Runs a program with python, then with the command."""
    plain = _run([sys.executable, str(_written(ending, folder / "plain"))], ending, ending.timeout)
    script, saved = _written(ending, folder / "under_lens"), folder / "report.json"
    limit = [] if ending.timeout is None else ["--timeout", str(ending.timeout)]
    command = [sys.executable, "-m", "tensorlens", "explain", "-o", str(saved), *limit, str(script)]
    under_lens = _run(command, ending, SECONDS)
    trace = load(saved)
    status = trace.script.exit_code
    assert status is not None
    if status == 128 + signal.SIGINT:  # the code that a shell shows; the plain process ends by the signal
        status = -signal.SIGINT
    texts = [text.replace(str(script.parent), str(folder / "plain")) for text in (under_lens.stdout, under_lens.stderr)]
    return Outcome(plain, Ran(status, *texts), trace)


def _written(ending: Ending, folder: Path) -> Path:
    folder.mkdir()
    path = folder / SCRIPT
    path.write_text(ending.source, "utf-8")
    return path


def _run(command: list[str], ending: Ending, seconds: float | None) -> Ran:
    streams: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    streams["preexec_fn"] = _enable_interrupts
    with subprocess.Popen(command, start_new_session=True, **streams) as process:
        assert process.stdout is not None
        first = b""
        for line in ending.interrupts:
            while not first.endswith(line.encode() + b"\n"):
                first += process.stdout.readline()
            time.sleep(0.3)  # a signal just before python's system call would not wake it
            os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = _stopped(process, seconds or SECONDS)
    return Ran(process.returncode, (first + out).decode("utf-8", "replace"), err.decode("utf-8", "replace"))


def _enable_interrupts() -> None:
    """Enables Ctrl-C, which a shell disables for background processes and their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _stopped(process: subprocess.Popen[bytes], seconds: float) -> tuple[bytes, bytes]:
    """Returns the output of a process, which is stopped after so many seconds, and then killed."""
    for patience, stop in ((seconds, process.terminate), (GRACE, process.kill)):
        try:
            return process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            stop()
    return process.communicate()
