"""Writes the sentence that says how a run ended and what was found in it."""

from __future__ import annotations

from tensorlens.diagnostics.shared.main_finding import is_about_failure, main_finding
from tensorlens.records.model import Trace
from tensorlens.records.report import Diagnostic, Report
from tensorlens.records.source import shown_path
from tensorlens.render.report import headline
from tensorlens.render.report.headline import count


def verdict(report: Report) -> str:
    """Says how the script ended, which line to look at, or how many findings there are."""
    trace, main = report.trace, main_finding(report)
    failed = _failure_line(trace)
    ended = headline.outcome(trace, failed)
    if main is None:
        return ended
    first = _line(trace, main)
    if is_about_failure(trace, main):
        ended += f"; look at {first}" if first and first != failed else ""
        more = len(report.diagnostics) - 1
        return f"{ended}; {count(more, 'more finding')}" if more else ended
    where = (" at " if len(report.diagnostics) == 1 else ", the first at ") + first if first else ""
    return f"{ended}; {_counted(report)}{where}"


def ignored_findings(report: Report) -> str:
    """Says which findings are left out because a comment or an earlier report has them; "" if there are none."""
    parts = []
    for each in report.ignored:
        if each.comment is not None:
            where = _place(report.trace, each.comment.file, each.comment.line)
            parts.append(f"`{each.diagnostic.code}` (comment at {where})")
    if known := sum(each.comment is None for each in report.ignored):
        parts.append(f"{count(known, 'finding')} of the baseline")
    return f"ignored: {', '.join(parts)}" if parts else ""


def _failure_line(trace: Trace) -> str:
    failure = headline.final_failure(trace)
    if failure is None or failure.site is None:
        return ""
    span = trace.sites[failure.site].span
    return _place(trace, span.file, span.line)


def _line(trace: Trace, diagnostic: Diagnostic) -> str:
    if not diagnostic.labels:
        return ""
    span = diagnostic.labels[0].span
    return _place(trace, span.file, span.line)


def _place(trace: Trace, file: str, line: int) -> str:
    own = file == headline.script_file(trace)
    return f"line {line}" if own else f"{shown_path(file, trace.script.folder)}:{line}"


def _counted(report: Report) -> str:
    """Returns `1 error and 2 warnings`."""
    severities = [diagnostic.severity for diagnostic in report.diagnostics]
    counts = [count(severities.count(each), each) for each in ("error", "warning", "note") if each in severities]
    *first, last = counts
    return f"{', '.join(first)} and {last}" if first else last
