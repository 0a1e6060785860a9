"""Turns a trace into a report in the form that was asked for."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import IO, TYPE_CHECKING, Any

from tensorlens.cli.gate import Gate
from tensorlens.errors import TraceFileError

if TYPE_CHECKING:
    from pathlib import Path

    from tensorlens.cli.output import Output
    from tensorlens.records.claim import Claim
    from tensorlens.records.model import Trace
    from tensorlens.records.report import Report
    from tensorlens.records.trace_file import Trials


ERRORS = Gate()


@dataclass(frozen=True, slots=True)
class RenderedReport:
    """The text of a report, or the file with its saved trace, and the exit code of the command."""

    text: str
    exit_code: int
    claims: tuple[Claim, ...] = ()
    saved: IO[bytes] | None = None

    def write(self, output: Output, before: str = "") -> None:
        """Writes the report, after a text if that is given."""
        if self.saved is None:
            output.write(before + self.text)
        else:
            with self.saved:
                output.write_copy(self.saved)


class ScriptReporter:
    """Reports a script soon after its end: it imports in a thread while the script runs, and renders while the script's
    process exits."""

    def __init__(self, output: Output, lesson: str = "", is_bundled: bool = True, gate: Gate = ERRORS) -> None:
        self._output, self._lesson, self._is_bundled, self._gate = output, lesson, is_bundled, gate
        self._early: tuple[Trace, RenderedReport] | None = None

    def on_start(self) -> None:
        """Starts to import what the report needs, in a thread; called once the script runs."""
        form = self._output.form
        threading.Thread(target=_import_all, args=(form,), name="tensorlens-imports", daemon=True).start()

    def on_trace(self, trace: Trace) -> None:
        """Renders a trace that may be the final one."""
        self._early = trace, rendered_report(trace, self._output, self._lesson, self._is_bundled, self._gate)

    def report(self, trace: Trace) -> RenderedReport:
        """Returns the report of the final trace."""
        if self._early is not None and self._early[0] is trace:
            return self._early[1]
        return rendered_report(trace, self._output, self._lesson, self._is_bundled, self._gate)

    def rendered(self, report: Report) -> RenderedReport:
        """Returns a report that has been made already."""
        return _rendered(report, self._output, self._lesson, self._is_bundled, self._gate)


def _import_all(form: str) -> None:
    with suppress(Exception):  # an import that fails here fails again where its error is shown
        from tensorlens import diagnostics
        from tensorlens.lessons import article_statements  # noqa: F401
        from tensorlens.records import trace_file  # noqa: F401
        from tensorlens.render import report_renderer

        diagnostics.load()
        report_renderer(form)


def rendered_report(
    trace: Trace, output: Output, lesson: str = "", is_bundled: bool = True, gate: Gate = ERRORS
) -> RenderedReport:
    """Diagnoses and renders a trace. If the script damaged its journal so that this fails, renders an empty trace.

    `lesson` is the name to show if the script is a lesson. Only in a bundled lesson does the id of a claim name a
    statement of the articles.
    """
    try:
        return _diagnosed(trace, output, lesson, is_bundled, gate)
    except Exception:
        if _is_valid(trace):
            raise
    from tensorlens.runner.follow import empty_trace

    return _diagnosed(empty_trace(trace.script), output, lesson, is_bundled, gate)


def _is_valid(trace: Trace) -> bool:
    from tensorlens.records.invariants import validate

    try:
        return not validate(trace)
    except Exception:
        return False


def _diagnosed(trace: Trace, output: Output, lesson: str, is_bundled: bool, gate: Gate) -> RenderedReport:
    from tensorlens.diagnostics import report_on

    if lesson:
        trace = replace(trace, script=replace(trace.script, path=lesson))
    return _rendered(report_on(trace), output, lesson, is_bundled, gate)


def _rendered(report: Report, output: Output, lesson: str, is_bundled: bool, gate: Gate) -> RenderedReport:
    from tensorlens.render import render

    report, text, saved = gate.passed(report), "", None
    if output.saves_trace:
        saved = _saved(report)
    else:
        text = render(report, output.form, output.options(**_lesson_options(output, lesson, is_bundled)))
    return RenderedReport(text, gate.exit_code(report, bool(lesson)), report.trace.claims, saved)


def _saved(report: Report) -> IO[bytes]:
    """Returns a file without a name that holds the trace: that of a long run is too large for memory."""
    import io
    import tempfile

    from tensorlens.records.trace_file import pieces

    trials = _trials(report)
    with suppress(OSError):  # no folder for such files, or a full disk
        file = tempfile.TemporaryFile()  # noqa: SIM115 - the report has it until it is written
        file.writelines(map(str.encode, pieces(report.trace, trials)))
        return file
    return io.BytesIO("".join(pieces(report.trace, trials)).encode())


def _trials(report: Report) -> Trials | None:
    """Returns the findings of a report if further runs said something about them."""
    from tensorlens.records.trace_file import Trials

    if report.tried is None and not any(each.confirmation for each in report.diagnostics):
        return None
    return Trials(report.diagnostics, report.tried)


def saved_report(path: Path, output: Output, gate: Gate = ERRORS) -> RenderedReport:
    """Renders the report of a saved trace. Findings that further runs confirmed or repaired are shown as they were."""
    from tensorlens.diagnostics import explained_by
    from tensorlens.records.report import Report
    from tensorlens.records.trace_file import load_with_trials

    trace, trials = load_with_trials(path)
    if trials is None:
        return rendered_report(trace, output, gate=gate)
    try:
        explained = explained_by(trace, trials.diagnostics)
        return _rendered(Report(trace, trials.diagnostics, explained, trials.tried), output, "", True, gate)
    except Exception:
        if os.environ.get("TENSORLENS_DEBUG"):
            raise
        raise TraceFileError(f"{path} is a damaged trace: its findings can't be shown") from None


def _lesson_options(output: Output, lesson: str, is_bundled: bool) -> dict[str, Any]:
    if not lesson:
        return {}
    from tensorlens.lessons.article_statements import STATEMENTS

    statements = {statement.id: statement.text for statement in STATEMENTS} if is_bundled else {}
    return {"lesson": True, "statements": statements, "titled": output.path is None}
