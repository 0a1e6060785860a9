"""How a trace becomes a report in the form that was asked for, and the exit code that it makes for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tensorlens import diagnostics
from tensorlens.lessons.article_statements import STATEMENTS
from tensorlens.records.claim import Claim
from tensorlens.records.model import Trace
from tensorlens.records.report import Report
from tensorlens.records.trace_file import dumps
from tensorlens.render import RENDERERS, render

if TYPE_CHECKING:
    from tensorlens.cli.output import Output

INTERRUPTED = 130


@dataclass(frozen=True, slots=True)
class RenderedReport:
    """A report as it is to be written, and the exit code that it makes for."""

    text: str
    exit_code: int
    claims: tuple[Claim, ...] = ()


def make_reporter(output: Output, lesson: str = "", bundled: bool = True) -> Callable[[Trace], RenderedReport]:
    """The function that makes a report of a trace; `lesson` is the name that it goes by, if it is one's, and `bundled`
    whether the ids of its claims are those of the articles' statements."""
    diagnostics.load()
    RENDERERS[output.form].load()

    def tell(trace: Trace) -> RenderedReport:
        if lesson:
            trace = replace(trace, script=replace(trace.script, path=lesson))
        report = Report(trace, diagnostics.diagnose(trace))
        if output.form == "json" and output.format is None:  # -o x.json: what `view` can show again in any form
            text = dumps(trace)
        else:
            texts: dict[str, Any] = {"lesson": True, "statements": _statement_texts(bundled)} if lesson else {}
            texts |= {"titled": output.path is None} if lesson else {}
            text = render(report, output.form, output.options(**texts))
        return RenderedReport(text, exit_code(report, bool(lesson)), trace.claims)

    return tell


def _statement_texts(bundled: bool) -> dict[str, str]:
    return {statement.id: statement.text for statement in STATEMENTS} if bundled else {}


def exit_code(report: Report, lesson: bool = False) -> int:
    """0 nothing wrong, 1 something is, 130 interrupted. A lesson that ends in the error it announces is fine. Of a rank
    only a script that failed counts: a launcher stops all others for any other code."""
    trace = report.trace
    if trace.script.outcome == "interrupted":
        return INTERRUPTED
    if any(not claim.as_expected for claim in trace.claims):
        return 1
    announced = any(claim.check.startswith("raises") and claim.verdict == "holds" for claim in trace.claims)
    if lesson and announced and trace.script.outcome == "error":
        return 0
    failed = trace.script.outcome != "ok" and not (trace.script.outcome == "exit" and trace.script.exit_code == 0)
    if trace.script.rank is not None:
        return int(failed)
    return 1 if failed or any(diagnostic.severity == "error" for diagnostic in report.diagnostics) else 0
