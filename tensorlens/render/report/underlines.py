"""Draws the rows below a source line: underlines, with the labels' texts beside or below them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tensorlens.records.source import width
from tensorlens.render.safe_text import fitting, safe, wrap

Piece = tuple[str, str]  # safe text, and the name of its style in the theme
Line = list[Piece]
_MARGIN = 8  # cells of context kept before a label where a long line is cut
_LONGEST = 1_000_000  # characters of a line to read: a trace file may contain anything
_ROOM = 36  # cells; a text below the underlines that has less room moves to the left


@dataclass(frozen=True, slots=True)
class Mark:
    """The part of a label on one line: columns `start` to `end`, in characters of the source, or in a `View` in cells
    of the screen."""

    start: int
    end: int
    text: str
    style: str
    primary: bool


@dataclass(frozen=True, slots=True)
class View:
    """The shown part of a line, with its marks in cells from the left edge.

    The part between `before` and `after`, which are "…" where the line is cut, begins at character `start` of the safe
    line.
    """

    text: str
    marks: tuple[Mark, ...]
    start: int
    before: str
    after: str


def views(line: str, marks: Sequence[Mark], room: int) -> list[View]:
    """Fits `line` into `room` cells: whole, or cut around its marks; marks that are too far apart get a view each."""
    shown = [safe(char) for char in line[:_LONGEST]]
    offsets = [0]
    for text in shown:
        offsets.append(offsets[-1] + width(text))
    ordered = sorted(marks, key=lambda mark: (mark.start, mark.end))
    groups: list[list[Mark]] = [[]]
    for mark in ordered:
        group = groups[-1]
        if group and offsets[-1] > room and _cell(offsets, mark.end) - _cell(offsets, group[0].start) > room - 2:
            group = []
            groups.append(group)
        group.append(mark)
    return [_view(shown, offsets, group, room) for group in groups]


def _view(shown: list[str], offsets: list[int], marks: list[Mark], room: int) -> View:
    first, last = 0, len(shown)
    if offsets[-1] > room:
        if marks and _cell(offsets, max(mark.end for mark in marks)) > room - 1:
            left = _cell(offsets, marks[0].start) - _MARGIN
            end = _cell(offsets, max(mark.end for mark in marks)) - (room - 2)
            left = max(min(left, offsets[-1] - (room - 1)), min(end, left + _MARGIN), 0)
            first = next(i for i, offset in enumerate(offsets) if offset >= left)
        limit = offsets[first] + room - (first > 0)
        if offsets[-1] > limit:
            last = max(i for i, offset in enumerate(offsets) if offset <= limit - 1)
    shift = offsets[first] - (first > 0)
    edge = offsets[last] - shift
    before, after = "…" if first else "", "…" if last < len(shown) else ""
    moved = []
    for mark in marks:
        start = min(max(_cell(offsets, mark.start) - shift, 0), max(min(edge, room - 1), 0))
        end = min(max(_cell(offsets, mark.end) - shift, start + 1), max(edge, start + 1))
        moved.append(replace(mark, start=start, end=end))
    return View("".join(shown[first:last]), tuple(moved), sum(map(len, shown[:first])), before, after)


def _cell(offsets: list[int], column: int) -> int:
    return offsets[min(max(column, 0), len(offsets) - 1)]


def rows(marks: Sequence[Mark], room: int) -> list[Line]:
    """Returns the rows below a view: the underlines, with the text of the last mark beside them if it fits, then the
    other texts."""
    if not marks:
        return []
    ordered = sorted(marks, key=lambda mark: (mark.start, not mark.primary))
    underline = _underline(ordered)
    edge = max(mark.end for mark in ordered)
    last = ordered[-1]
    waiting = [mark for mark in ordered if mark.text]
    if last.end == edge and last.text and edge + 1 + width(last.text) <= room:
        underline += [(" ", "plain"), (last.text, last.style)]
        waiting.remove(last)
    lines = [underline]
    if len(waiting) > 1 or (waiting and waiting[-1] is not last):
        lines.append(_connectors(waiting, room))
    while waiting:
        mark = waiting.pop()
        start = max(min(mark.start, room - min(width(mark.text), _ROOM)), 0)
        for text in wrap(mark.text, room - start):
            line = _connectors([other for other in waiting if other.start < mark.start], start)
            reached = sum(width(piece) for piece, _ in line)
            lines.append([*line, (" " * (start - reached), "plain"), (text, mark.style)])
    return lines


def _underline(marks: Sequence[Mark]) -> Line:
    """Draws `^` below each cell of the primary label, and `-` below the others."""
    cells: dict[int, tuple[str, str]] = {}
    for mark in sorted(marks, key=lambda mark: mark.primary):
        for cell in range(mark.start, mark.end):
            cells[cell] = ("^" if mark.primary else "-", mark.style)
    line: Line = []
    for cell in range(max(cells) + 1):
        char, style = cells.get(cell, (" ", "plain"))
        if line and line[-1][1] == style:
            line[-1] = (line[-1][0] + char, style)
        else:
            line.append((char, style))
    return line


def _connectors(marks: Sequence[Mark], limit: int) -> Line:
    """Draws `|` at the start of each mark whose text follows further below, up to `limit`."""
    line: Line = []
    reached = 0
    for mark in marks:
        if reached <= mark.start < limit:
            line += [(" " * (mark.start - reached), "plain"), ("|", mark.style)]
            reached = mark.start + 1
    return line


def clip(text: str, room: int) -> str:
    """Cuts a line without marks at the right edge."""
    shown = safe(text)
    return shown if width(shown) <= room else fitting(shown, room - 1) + "…"
