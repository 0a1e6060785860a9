"""Runs a small script under `trace(training=True)` and reads what stands out in its training."""

from __future__ import annotations

import textwrap
import warnings
from pathlib import Path

import tensorlens
from tensorlens.diagnostics import report_on
from tensorlens.records.report import Report, StandingOut

MARK = "#!"  # ends the line that a sentence names first
HEAD = """\
import torch
from torch import nn
torch.manual_seed(0)
"""


def report_of(folder: Path, body: str) -> Report:
    """Runs a script of `HEAD` and `body`."""
    script = folder / "script.py"
    text = HEAD + textwrap.dedent(body).lstrip("\n")
    script.write_text(text)
    code = compile(text, str(script), "exec")
    with warnings.catch_warnings(action="ignore"), tensorlens.trace(training=True) as lens:
        exec(code, {"__name__": "__main__"})
    return report_on(lens.trace())


def sentences(folder: Path, body: str) -> tuple[StandingOut, ...]:
    found = report_of(folder, body).standing_out
    assert found is not None
    return found


def marked(body: str) -> int:
    """Returns the number of the marked line of a script."""
    lines = (HEAD + textwrap.dedent(body).lstrip("\n")).splitlines()
    (number,) = (number for number, line in enumerate(lines, start=1) if line.endswith(MARK))
    return number
