"""Renders findings as a Code Quality report of GitLab, for `artifacts:reports:codequality`.

Source: https://docs.gitlab.com/ci/testing/code_quality/
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

from tensorlens.records.report import Report
from tensorlens.render.ci.issues import details, issues_of, main_file, shown_file, source_line
from tensorlens.render.options import RenderOptions
from tensorlens.render.safe_text import safe, written

_SEVERITIES = {"error": "critical", "warning": "major", "note": "info"}


def to_gitlab(report: Report, options: RenderOptions) -> str:
    """Returns a JSON array with one object per finding, at its main line."""
    trace, seen = report.trace, Counter[str]()
    found: list[dict[str, Any]] = []
    for issue in issues_of(report):
        path, begin, end, source = main_file(trace), 1, 1, ""
        if issue.labels:
            span = issue.labels[0].span
            path, begin, end, source = shown_file(span.file, trace), span.line, span.end_line, source_line(span, trace)
        same = f"{issue.code}\0{path}\0{source.strip()}"
        seen[same] += 1
        found.append(
            {
                "description": " ".join([safe(issue.text), *(f"({each})" for each in details(issue, trace))]),
                "check_name": issue.code,
                "fingerprint": hashlib.sha256(f"{same}\0{seen[same]}".encode()).hexdigest(),
                "severity": _SEVERITIES[issue.severity],
                "location": {"path": path, "lines": {"begin": begin, "end": end}},
            }
        )
    return written(found, indent=1)
