"""Draws one finding: title, labelled source, why, notes, numbered help with edits, and details."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tensorlens.records.model import Trace
from tensorlens.records.report import Diagnostic, Fix
from tensorlens.records.source import shown_path
from tensorlens.render.highlight import clipped, source_line
from tensorlens.render.report.edited_lines import MOST, ChangedLine, edited_lines
from tensorlens.render.report.headline import count
from tensorlens.render.report.snippet import gutter_of, snippet
from tensorlens.render.report.underlines import clip
from tensorlens.render.safe_text import safe, safe_lines
from tensorlens.render.tables import folded

_STYLES = {"error": "primary", "warning": "warning", "note": "note"}
_CONFIRMED = {True: "confirmed", False: "not confirmed", None: "tried"}
_NO_RESULTS = ("not tried: ", "not decided: ")
_HANG = 4  # cells that the second line of a remark is indented by, at most, after its ` = `


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding as a person reads it."""

    diagnostic: Diagnostic
    trace: Trace

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        diagnostic, size = self.diagnostic, options.max_width
        yield from folded(_title(diagnostic), size, 4)
        gutter = gutter_of(diagnostic.labels, self.trace)
        if diagnostic.labels:
            yield from snippet(diagnostic.labels, self.trace, _STYLES[diagnostic.severity], console, size)
        for word, text, style in self._remarks():
            yield from _remark(word, text, style, gutter, size)
        if diagnostic.confirmation:
            word, text = confirmation_of(diagnostic)
            yield from _remark(word, text, "heading", gutter, size)
        for number, fix in enumerate(diagnostic.fixes, 1):
            word = f"help {number}" if len(diagnostic.fixes) > 1 else "help"
            yield from _remark(word + self._place(fix), fix.title, "help", gutter, size)
            if fix.verdict != "untried":  # the report shows what it changes in a section of its own
                yield from _tried(fix, gutter, size)
                continue
            yield from _edits(fix, self.trace, gutter, size)
            if not fix.edits:
                yield from self._line_of(fix, gutter, console, size)
        for text in diagnostic.also:
            yield from _remark("also", text, "heading", gutter, size)
        if diagnostic.detail:
            yield from _remark("detail", "; ".join(diagnostic.detail), "quiet", gutter, size)

    def _remarks(self) -> Iterator[tuple[str, str, str]]:
        if self.diagnostic.explanation:
            yield "why", self.diagnostic.explanation, "heading"
        for note in self.diagnostic.notes:
            yield "note", note, "heading"

    def _line_of(self, fix: Fix, gutter: int, console: Console, size: int) -> Iterator[Text]:
        """Shows the line that a fix changes, unless the labelled source or another fix shows it."""
        place, others = fix.place, self.diagnostic.fixes[: self.diagnostic.fixes.index(fix)]
        shown = {(label.span.file, label.span.line) for label in self.diagnostic.labels}
        shown |= {(other.place.file, other.place.line) for other in others if other.place is not None}
        if place is None or (place.file, place.line) in shown:
            return
        text = self.trace.sources.get(place.file, "")
        line = clipped(source_line(text, place.line, console), size - gutter - 3)
        if line.plain.strip():
            yield Text.assemble((f"{place.line:>{gutter}} | ", "gutter"), line, no_wrap=True)

    def _place(self, fix: Fix) -> str:
        """Returns the line that a fix changes: " (line 5)", or " (net.py:5)" if that is not the file of the finding."""
        if fix.place is None:
            return ""
        file, line = fix.place.file, fix.place.line
        own = self.diagnostic.labels[0].span.file if self.diagnostic.labels else file
        return f" (line {line})" if file == own else f" ({safe(shown_path(file, self.trace.script.folder))}:{line})"


def short_finding(diagnostic: Diagnostic, trace: Trace) -> Text:
    """Returns the title of a finding with its place, for a list of further findings."""
    text = _title(diagnostic)
    if diagnostic.labels:
        span = diagnostic.labels[0].span
        text.append(f"  {safe(shown_path(span.file, trace.script.folder))}:{span.line}")
    return text


def _title(diagnostic: Diagnostic) -> Text:
    code = f"[{safe(diagnostic.code)}]" if diagnostic.code else ""
    return Text.assemble((f"{diagnostic.severity}{code}: ", diagnostic.severity), (safe(diagnostic.title), "heading"))


def _remark(word: str, text: str, style: str, gutter: int, size: int) -> Iterator[Text]:
    first = Text.assemble((" " * gutter + " = ", "gutter"), (f"{word}: ", style))
    hang = gutter + 3 + _HANG
    for part in safe_lines(text.strip()):
        yield from folded(first.append(part, "quiet" if style == "quiet" else "plain"), size, hang)
        first = Text(" " * hang)


def confirmation_of(diagnostic: Diagnostic) -> tuple[str, str]:
    """Returns what a further run means for a finding, `confirmed` or `not decided`, and what it showed."""
    text = diagnostic.confirmation
    start = next((start for start in _NO_RESULTS if diagnostic.confirmed is None and text.startswith(start)), "")
    return start.removesuffix(": ") or _CONFIRMED[diagnostic.confirmed], text.removeprefix(start)


def _tried(fix: Fix, gutter: int, size: int) -> Iterator[Text]:
    from tensorlens.render.report.fix_diffs import verdict_text  # not above: most reports have none

    style = "good" if fix.verdict == "verified" else "quiet"
    hang = gutter + 3 + _HANG
    yield from folded(Text(" " * hang + "tried: " + safe(verdict_text(fix)), style), size, hang)


def _edits(fix: Fix, trace: Trace, gutter: int, size: int) -> Iterator[Text]:
    """Shows the lines that a fix changes, before and after."""
    changed = edited_lines(fix, trace)
    left = MOST
    for file, lines in changed.items():
        if lines and len(changed) > 1:
            arrow = (" " * gutter + "::: ", "gutter")
            yield from folded(Text.assemble(arrow, safe(shown_path(file, trace.script.folder))), size)
        for line in lines[:left]:
            yield _change(line, gutter, size)
        left = max(left - len(lines), 0)
    more = sum(map(len, changed.values())) - MOST
    if more > 0:
        yield Text(f"{'':{gutter}} … {count(more, 'more changed line')}", "quiet")


def _change(line: ChangedLine, gutter: int, size: int) -> Text:
    shown = clip(line.text, size - max(gutter, len(str(line.number))) - 3)
    style = "removed" if line.sign == "-" else "added"
    return Text(f"{line.number:>{gutter}} {line.sign} {shown}", style, no_wrap=True)
