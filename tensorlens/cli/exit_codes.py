"""Turns an error into a line and an exit code, and a report into an exit code.

0: nothing is wrong. 1: the script failed, a finding is an error, or a claim is not as recorded. 2: wrong usage.
70: an internal error. 130: interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from tensorlens.errors import TensorLensError

if TYPE_CHECKING:
    from tensorlens.records.report import Report

OK, FAILED, USAGE, INTERNAL_ERROR = 0, 1, 2, 70
INTERRUPTED = 128 + signal.SIGINT


def guarded(command: Callable[[], int]) -> int:
    """Runs the command line and returns its exit code; prints an error as one line, an internal error as a bug."""
    try:
        _open_streams()
        return command()
    except SystemExit as leave:
        return leave.code if isinstance(leave.code, int) else OK if leave.code is None else FAILED
    except TensorLensError as error:
        print(f"tensorlens: {safe_line(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        print(
            f"tensorlens: this is a bug in tensorlens, not in your script: {type(error).__name__}: "
            f"{safe_line(str(error))} (set TENSORLENS_DEBUG=1 for the traceback, and please report it)",
            file=sys.stderr,
        )
        return INTERNAL_ERROR


def safe_line(text: str) -> str:
    """Escapes what a terminal would take as a control sequence in other people's text."""
    from tensorlens.render.safe_text import safe

    return safe(text)


def _open_streams() -> None:
    """Opens the null device for each closed standard stream (`>&-`): the next file to be opened would get its
    number."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            os.dup2(opened, number)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115  (stays open)


def report_exit_code(report: Report, is_lesson: bool = False) -> int:
    """Returns the exit code for a report: OK also for a lesson that ends in the error that one of its claims announces.

    In a distributed run, findings do not count: the launcher stops all ranks for any exit code but 0.
    """
    trace = report.trace
    outcome = trace.script.outcome
    if outcome == "interrupted":
        return INTERRUPTED
    if any(not claim.as_expected for claim in trace.claims):
        return FAILED
    announced = any(claim.check.startswith("raises") and claim.verdict == "holds" for claim in trace.claims)
    if is_lesson and announced and outcome == "error":
        return OK
    failed = outcome not in ("ok", "recording") and not (outcome == "exit" and trace.script.exit_code == 0)
    if trace.script.rank is not None:
        return int(failed)
    return FAILED if failed or any(diagnostic.severity == "error" for diagnostic in report.diagnostics) else OK
