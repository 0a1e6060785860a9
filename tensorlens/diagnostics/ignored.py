"""Leaves out the findings that a user ignores: by a comment in the source, or because an earlier report has them.

`# tensorlens: ignore[code]` on any line that a finding marks leaves the finding out. Several codes are separated by
commas.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from tensorlens.records.model import Span, Trace
from tensorlens.records.report import Diagnostic, Ignored, Report
from tensorlens.records.source import shown_path

_COMMENT = re.compile(r"#\s*tensorlens:\s*ignore\[([^\]]*)\]")
Key = tuple[str, str, str]  # (code, file of its first label, title without numbers)


def without_commented(report: Report) -> Report:
    """Returns the report without the findings that a comment on one of their lines ignores."""
    kept, ignored = [], []
    for diagnostic in report.diagnostics:
        comment = _comment_about(report.trace, diagnostic)
        if comment is None:
            kept.append(diagnostic)
        else:
            ignored.append(Ignored(diagnostic, comment))
    return replace(report, diagnostics=tuple(kept), ignored=(*report.ignored, *ignored)) if ignored else report


def without_known(report: Report, known: Counter[Key]) -> Report:
    """Returns the report without the findings that an earlier report has: as many of each as it has."""
    left, kept, ignored = Counter(known), [], []
    folder = report.trace.script.folder
    for diagnostic in report.diagnostics:
        files = [shown_path(label.span.file, folder) for label in diagnostic.labels]
        key = _key(diagnostic.code, files, diagnostic.title)
        if left[key] > 0:
            left[key] -= 1
            ignored.append(Ignored(diagnostic))
        else:
            kept.append(diagnostic)
    return replace(report, diagnostics=tuple(kept), ignored=(*report.ignored, *ignored)) if ignored else report


def keys_of(report: Mapping[str, Any]) -> Iterator[Key]:
    """Yields the key of each finding of a report that was written as JSON.

    Raises:
        KeyError, TypeError, AttributeError: it is no such report.
    """
    for diagnostic in report["diagnostics"]:
        yield _key(diagnostic["code"], [label["file"] for label in diagnostic["labels"]], diagnostic["title"])


def _key(code: str, files: list[str], title: str) -> Key:
    """Returns what stays the same when lines move: the title has names, and sometimes line numbers and versions."""
    return code, files[0] if files else "", re.sub(r"\d+", "0", title)


def _comment_about(trace: Trace, diagnostic: Diagnostic) -> Span | None:
    for label in diagnostic.labels:
        span = label.span
        comments = _comments(trace.sources.get(span.file, ""))
        for line, column, text, codes in comments:
            if diagnostic.code in codes and span.line <= line <= max(span.end_line, span.line):
                return Span(span.file, line, column, line, column + len(text))
    return None


@lru_cache(maxsize=64)
def _comments(text: str) -> tuple[tuple[int, int, str, frozenset[str]], ...]:
    """Returns (line, column, comment, codes) of each comment that ignores codes."""
    if "tensorlens:" not in text:
        return ()
    found = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            match = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
            if match:
                codes = frozenset(code.strip() for code in match[1].split(","))
                found.append((*token.start, token.string, codes))
    except (tokenize.TokenError, SyntaxError):  # the text is no whole program: what was read before counts
        pass
    return tuple(found)
