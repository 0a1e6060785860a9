"""Draws labelled source as rustc does: the lines of a diagnostic's labels, with underlines and texts below them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from tensorlens.records.model import Trace
from tensorlens.records.report import Label
from tensorlens.records.source import lines_of, one_line, shown_path, width
from tensorlens.render.highlight import source_line
from tensorlens.render.report import underlines
from tensorlens.render.report.underlines import Line, Mark, View
from tensorlens.render.safe_text import safe, wrap
from tensorlens.render.tables import folded

_CONTEXT = 2  # lines to show at each end of a label that spans several lines
_MAX_NESTED = 3  # labels over several lines with a bar of their own; further ones mark their first line
_TEXT_ROOM = 36  # cells that the text of a long label gets at least, when it goes below the end of the label


def snippet(labels: Sequence[Label], trace: Trace, style: str, console: Console, size: int) -> list[Text]:
    """Draws the labelled files one after the other. The first label is the primary one: `style` is its style, and its
    file comes first."""
    files = list(dict.fromkeys(label.span.file for label in labels))
    gutter = gutter_of(labels, trace)
    lines: list[Text] = []
    for position, file in enumerate(files):
        in_file = [label for label in dict.fromkeys(labels) if label.span.file == file]
        span = in_file[0].span
        path = f"{safe(shown_path(file, trace.script.folder))}:{span.line}:{span.column + 1}"
        arrow = (" " * gutter + ("--> " if position == 0 else "::: "), "gutter")
        lines += folded(Text.assemble(arrow, path), size)
        lines += _File(in_file, trace.sources.get(file, ""), gutter, size, console).render(style, labels[0])
    return lines


def gutter_of(labels: Sequence[Label], trace: Trace) -> int:
    """Returns the width of the line numbers."""
    return max([1, *(len(str(_clamped(label, trace)[1])) for label in labels)])


def _clamped(label: Label, trace: Trace) -> tuple[int, int]:
    """Returns the first and last line of a label, limited to the lines of its file: a trace file may be wrong."""
    count = len(lines_of(trace.sources.get(label.span.file, "")))
    first = min(max(label.span.line, 1), count)
    return first, min(max(label.span.end_line, first), count)


class _File:
    """The labelled lines of one file."""

    def __init__(self, labels: Sequence[Label], text: str, gutter: int, size: int, console: Console) -> None:
        self._source, self._console = text, console
        self._text = lines_of(text)
        self._gutter = gutter
        self._single: list[tuple[int, Label]] = []
        self._multi: list[tuple[int, int, Label]] = []
        for label in labels:
            first = min(max(label.span.line, 1), len(self._text))
            last = min(max(label.span.end_line, first), len(self._text))
            if last > first and len(self._multi) < _MAX_NESTED:
                self._multi.append((first, last, label))
            else:
                self._single.append((first, label))
        self._room = max(size - gutter - 3 - 2 * len(self._multi), 16)
        self._size = size

    def render(self, style: str, primary: Label) -> list[Text]:
        if not self._source:
            return self._without_source()
        self._style, self._primary = style, primary
        lines: list[Text] = []
        previous = 0
        for number in self._numbers():
            if previous and number > previous + 1:
                lines.append(_text([("...".ljust(self._gutter + 3), "gutter"), *self._margin(previous + 1, "inside")]))
            lines += self._source_line(number)
            previous = number
        return lines

    def _without_source(self) -> list[Text]:
        lines = [self._line("", [("(the source of this file was not recorded)", "quiet")])]
        for label in [*(label for _, label in self._single), *(label for *_, label in self._multi)]:
            first = self._line("", [(f"line {label.span.line}: ", "quiet")])
            hang = len(first.plain)
            lines += folded(first.append(safe(one_line(label.text))), self._size, hang)
        return lines

    def _numbers(self) -> list[int]:
        """Returns the lines to show: those with marks, the ends of long labels, and single lines between shown ones."""
        wanted = {line for line, _ in self._single}
        for first, last, _ in self._multi:
            wanted |= {first, *range(first, min(first + _CONTEXT, last)), *range(max(last - 1, first), last + 1)}
        return sorted(wanted | {line + 1 for line in wanted if line + 2 in wanted})

    def _source_line(self, number: int) -> list[Text]:
        text = self._text[number - 1]
        here = [
            self._mark(label, label.span.column, self._end(label, text)) for n, label in self._single if n == number
        ]
        lines: list[Text] = []
        for view in underlines.views(text, here, self._room):
            line = self._line(str(number), self._margin(number, "line"))
            lines.append(line.append_text(self._shown(number, view)))
            for row in underlines.rows(view.marks, self._room):
                lines.append(self._line("", [*self._margin(number, "below"), *row]))
        for position, (first, last, label) in enumerate(self._multi):
            if number == first and not self._starts_line(position):
                lines += self._bracket(position, number, label.span.column, "")
            if number == last:
                lines += self._bracket(position, number, max(label.span.end_column - 1, 0), label.text)
        return lines

    def _shown(self, number: int, view: View) -> Text:
        """Returns the part of a source line that a view shows, in colours."""
        part = source_line(self._source, number, self._console)[view.start : view.start + len(view.text)]
        return Text.assemble((view.before, "quiet"), part, (view.after, "quiet"))

    def _end(self, label: Label, text: str) -> int:
        return len(text.rstrip()) if label.span.end_line > label.span.line else label.span.end_column

    def _mark(self, label: Label, start: int, end: int) -> Mark:
        primary = label is self._primary
        return Mark(start, end, safe(one_line(label.text)), self._style if primary else "secondary", primary)

    # --- labels over several lines ----------------------------------------------------------------------------------

    def _starts_line(self, position: int) -> bool:
        first, _, label = self._multi[position]
        return not self._text[first - 1][: label.span.column].strip()

    def _margin(self, number: int, part: str) -> Line:
        """Draws a bar at the left for each label that spans line `number`, or `/` if the label begins with it."""
        line: Line = []
        for position, (first, last, label) in enumerate(self._multi):
            style = self._mark(label, 0, 0).style
            opens = number == first and part == "line" and self._starts_line(position)
            open_below = first < number or (number == first and part != "line" and self._starts_line(position))
            inside = open_below and number <= last
            line.append(("/ " if opens else "| " if inside else "  ", style))
        return line

    def _bracket(self, position: int, number: int, column: int, text: str) -> list[Text]:
        """Draws `|____^ text` below the last line of a long label, or ` ____^` below its first line if it begins in the
        middle of that line."""
        _, _, label = self._multi[position]
        mark = self._mark(label, 0, 0)
        view = underlines.views(self._text[number - 1], [Mark(column, column + 1, "", mark.style, False)], self._room)[
            0
        ]
        margin = self._margin(number, "below")[:position]
        corner = "|" if text or number > self._multi[position][0] else " "
        reach = 2 * (len(self._multi) - position) - 1 + view.marks[0].start
        pieces: Line = [*margin, (corner + "_" * reach + ("^" if mark.primary else "-"), mark.style)]
        if not text:
            return [self._line("", pieces)]
        room = self._room + 2 * len(self._multi)
        used = 2 * position + reach + 3
        if used + width(mark.text) <= room:
            return [self._line("", [*pieces, (" " + mark.text, mark.style)])]
        start = max(min(used - 2, room - _TEXT_ROOM), 2 * position)
        below = [[*margin, (" " * (start - 2 * position) + part, mark.style)] for part in wrap(mark.text, room - start)]
        return [self._line("", line) for line in [pieces, *below]]

    def _line(self, number: str, rest: Line) -> Text:
        return _text([(f"{number:>{self._gutter}} | ", "gutter"), *rest])


def _text(line: Line) -> Text:
    return Text.assemble(*line, no_wrap=True)
