"""Draws one diagnostic: title, labelled source, why, notes, help and edits."""

from __future__ import annotations

from collections import defaultdict

from tensorlens.records.model import Trace
from tensorlens.records.report import Diagnostic, Edit, Fix
from tensorlens.records.source import lines_of, shown_path
from tensorlens.render.layout import Line, paragraph
from tensorlens.render.report.snippet import snippet
from tensorlens.render.report.underlines import clip
from tensorlens.render.safe_text import safe, safe_lines

_STYLES = {"error": "primary", "warning": "warning", "note": "note"}


def finding(diagnostic: Diagnostic, trace: Trace, size: int) -> list[Line]:
    """Returns the lines of one diagnostic, at most `size` cells wide."""
    code = f"[{safe(diagnostic.code)}]" if diagnostic.code else ""
    head: Line = [(f"{diagnostic.severity}{code}: ", diagnostic.severity)]
    lines = paragraph(safe(diagnostic.title), size, head, "heading", hang=4)
    gutter = 1
    if diagnostic.labels:
        source = snippet(diagnostic.labels, trace, size, _STYLES[diagnostic.severity])
        lines += source
        gutter = source[0][0][0].index("--> ") if source else 1
    if diagnostic.explanation:
        lines += _remark("why", diagnostic.explanation, "heading", gutter, size)
    for note in diagnostic.notes:
        lines += _remark("note", note, "heading", gutter, size)
    for number, fix in enumerate(diagnostic.fixes, 1):
        word = f"help {number}" if len(diagnostic.fixes) > 1 else "help"
        lines += _remark(f"{word}{_place(fix, diagnostic, trace)}", fix.title, "help", gutter, size)
        lines += _edits(fix, trace, gutter, size)
    for text in diagnostic.also:
        lines += _remark("also", text, "heading", gutter, size)
    for text in diagnostic.detail:
        lines += _remark("detail", text, "quiet", gutter, size, "quiet")
    return lines


def _place(fix: Fix, diagnostic: Diagnostic, trace: Trace) -> str:
    """Returns the line that a fix changes: " (line 5)", or " (net.py:5)" if that is not the file of the finding."""
    if fix.place is None:
        return ""
    file = fix.place.file
    own = diagnostic.labels[0].span.file if diagnostic.labels else file
    line = fix.place.line
    return f" (line {line})" if file == own else f" ({safe(shown_path(file, trace.script.folder))}:{line})"


def _remark(word: str, text: str, style: str, gutter: int, size: int, text_style: str = "plain") -> list[Line]:
    lines: list[Line] = []
    hang = gutter + 3 + min(len(word) + 2, 8)
    first: Line = [(" " * gutter + " = ", "gutter"), (f"{word}: ", style)]
    for part in safe_lines(text.strip()):
        lines += paragraph(part, size, first, text_style, hang)
        first = [(" " * hang, "plain")]
    return lines


def _edits(fix: Fix, trace: Trace, gutter: int, size: int) -> list[Line]:
    """Shows the lines that a fix changes, before and after."""
    by_file: dict[str, list[Edit]] = defaultdict(list)
    for edit in fix.edits:
        by_file[edit.span.file].append(edit)
    lines: list[Line] = []
    for file, edits in by_file.items():
        before = list(lines_of(trace.sources.get(file, "")))
        first = min(max(edit.span.line, 1) for edit in edits)
        last = min(max(max(edit.span.end_line, edit.span.line) for edit in edits), len(before))
        if file not in trace.sources or first > last:
            continue
        if len(by_file) > 1:
            lines.append([(" " * gutter + "::: ", "gutter"), (safe(shown_path(file, trace.script.folder)), "plain")])
        after = _applied(before, edits, first, last)
        lines += [_change(n, "-", text, gutter, size) for n, text in enumerate(before[first - 1 : last], first)]
        lines += [_change(n, "+", text, gutter, size) for n, text in enumerate(after, first)]
    return lines


def _change(number: int, sign: str, text: str, gutter: int, size: int) -> Line:
    style = "removed" if sign == "-" else "added"
    return [(f"{number:>{gutter}} {sign} ", style), (clip(text, size - max(gutter, len(str(number))) - 3), style)]


def _applied(before: list[str], edits: list[Edit], first: int, last: int) -> list[str]:
    """Returns lines `first` to `last` after the edits. The last edit is made first, so that the columns of the others
    stay valid."""
    text = list(before)
    for edit in sorted(edits, key=lambda edit: (edit.span.line, edit.span.column), reverse=True):
        start, end = max(edit.span.line, 1) - 1, min(max(edit.span.end_line, edit.span.line), len(before)) - 1
        if start < len(text):
            joined = text[start][: edit.span.column] + edit.text + text[end][edit.span.end_column :]
            text[start : end + 1] = joined.split("\n")
    return text[first - 1 : last + len(text) - len(before)]
