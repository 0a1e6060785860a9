"""Renders one line per finding, as compilers do: `file:line:column: level[code]: text`. Editors and problem matchers
read it."""

from __future__ import annotations

from tensorlens.records.report import Report
from tensorlens.render.ci.issues import issues_of, main_file, shown_file
from tensorlens.render.options import RenderOptions
from tensorlens.render.safe_text import safe


def to_concise(report: Report, options: RenderOptions) -> str:
    """Returns a line per finding, and one per other line that a finding marks, as a note; columns count from 1."""
    trace, lines = report.trace, []
    for issue in issues_of(report):
        message = f"{issue.severity}[{issue.code}]: {issue.text}"
        if not issue.labels:
            lines.append(f"{main_file(trace)}: {message}")
        for number, label in enumerate(issue.labels):
            where = f"{shown_file(label.span.file, trace)}:{label.span.line}:{label.span.column + 1}"
            lines.append(f"{where}: {message if number == 0 else f'note: {label.text}'}")
    return "".join(f"{safe(line)}\n" for line in lines)
