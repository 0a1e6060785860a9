"""Runs a piece of a script under `trace(training=True)`, and returns what stands out."""

from __future__ import annotations

import textwrap
from pathlib import Path

from tensorlens.diagnostics import report_on
from tensorlens.records.invariants import validate
from tensorlens.records.model import Trace
from tensorlens.records.report import StandingOut


def traced_script(folder: Path, script: str) -> Trace:
    """Runs `script` at the top level of a file, whose names are those at the end of the run."""
    body = "import tensorlens\nwith tensorlens.trace(training=True) as lens:\n"
    body += textwrap.indent(textwrap.dedent(script), "    ")
    path = folder / "script.py"
    path.write_text(body)
    names: dict[str, object] = {"__name__": "script"}
    exec(compile(body, str(path), "exec"), names)
    trace: Trace = names["lens"].trace()  # type: ignore[attr-defined]
    assert validate(trace) == []
    return trace


def said(folder: Path, script: str, *words: str) -> tuple[list[StandingOut], list[str]]:
    """Returns the sentences that have one of some words, and the codes of the findings."""
    report = report_on(traced_script(folder, script))
    found = [each for each in report.standing_out or () if any(word in each.text for word in words)]
    return found, [each.code for each in report.diagnostics]
