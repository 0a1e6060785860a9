"""Renders findings as workflow commands of GitHub Actions, which shows them beside the lines of a pull request.

Source: https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
"""

from __future__ import annotations

from collections.abc import Mapping

from tensorlens.records.model import Span, Trace
from tensorlens.records.report import Report
from tensorlens.render.ci.issues import details, is_path, issues_of, shown_file
from tensorlens.render.options import RenderOptions
from tensorlens.render.safe_text import safe

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}


def to_github(report: Report, options: RenderOptions) -> str:
    """Returns one command per finding, at its main line."""
    trace, lines = report.trace, []
    for issue in issues_of(report):
        where = _where(issue.labels[0].span, trace) if issue.labels else {}
        message = "\n".join([safe(issue.text), *details(issue, trace)])
        lines.append(_command(_COMMANDS[issue.severity], {**where, "title": f"tensorlens: {issue.code}"}, message))
    return "".join(f"{line}\n" for line in lines)


def _where(span: Span, trace: Trace) -> dict[str, object]:
    """Returns the place of a span; GitHub takes columns only within one line."""
    if not is_path(span.file):
        return {}
    where: dict[str, object] = {"file": shown_file(span.file, trace), "line": span.line, "endLine": span.end_line}
    if span.line == span.end_line and span.end_column > span.column:
        where.update(col=span.column + 1, endColumn=span.end_column)
    return where


def _command(name: str, properties: Mapping[str, object], message: str) -> str:
    shown = ",".join(f"{key}={_property(str(value))}" for key, value in properties.items())
    return f"::{name} {shown}::{_data(message)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
