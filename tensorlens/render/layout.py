"""Lays out lines of styled text: hanging paragraphs, and tables that fold their wide columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from itertools import combinations

from rich.style import Style
from rich.text import Text

from tensorlens.records.source import width
from tensorlens.render.safe_text import fitting, wrap
from tensorlens.render.theme import console

Piece = tuple[str, str | Style]  # safe text; a style, or its name in the theme
Line = list[Piece]
GAP = "  "
_ANY_WIDTH = 10_000  # the lines are laid out already: Rich only colours them


def to_text(lines: Iterable[Line], color: bool) -> str:
    """Joins the lines into one text. Without `color` it has no escape codes."""
    if not color:
        texts = ["".join(text for text, _ in line).rstrip() for line in lines]
        return "\n".join(texts) + "\n" if texts else ""
    printer = console(_ANY_WIDTH, color)
    for line in lines:
        printer.print(Text.assemble(*line), no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)
    assert isinstance(printer.file, StringIO)
    return printer.file.getvalue()


def line_width(line: Line) -> int:
    return sum(width(text) for text, _ in line)


def paragraph(
    text: str, size: int, first: Line | None = None, style: str = "plain", hang: int | None = None
) -> list[Line]:
    """Wraps `text` to `size` cells. `first` begins the first line; the others are indented to its end, or to `hang`."""
    first = first or []
    begun = line_width(first)
    indent = begun if hang is None else hang
    head, *rest = wrap(text, size - indent, size - begun)
    hung: list[Line] = [[(" " * indent, "plain"), (row, style)] for row in rest]
    return [[*first, (head, style)], *hung]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. If room is short, the title is broken into two lines at `|`. If that is not enough, a column
    that `folds` leaves the table: its cells go to lines of their own below each row."""

    title: str
    style: str = "plain"
    folds: bool = False

    def titles(self, broken: bool) -> tuple[str, str]:
        """Returns the title as two lines; the first is empty if the title is not broken."""
        first, bar, second = self.title.rpartition("|")
        if broken and bar:
            return first, second
        return "", self.title.replace("_|", "_").replace("|", " ")


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], size: int) -> list[Line]:
    """Draws a table of safe texts, at most `size` cells wide. Columns that do not fit are folded, never cut. Of all
    ways to fold them, it takes the one with the fewest lines."""
    shown = [i for i, column in enumerate(columns) if any(row[i] for row in rows) or not column.folds]
    folding = [i for i in shown if columns[i].folds]
    choices = (folded for count in range(len(folding) + 1) for folded in combinations(folding, count))
    ways = (_table(columns, rows, size, [i for i in shown if i not in folded]) for folded in choices)
    return min((lines for lines in ways if lines), key=len, default=_table(columns, rows, size, [0]))


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]], size: int, inline: list[int]) -> list[Line]:
    """Draws the columns `inline` side by side and folds the others; returns [] if that is too wide."""
    broken = _total(_sizes(columns, rows, False), inline) > size
    sizes = _shrunk(columns, rows, _sizes(columns, rows, broken), inline, size)
    if _total(sizes, inline) > size and len(inline) > 1:
        return []
    titles = [columns[i].titles(broken) for i in inline]
    heads = [[(title[part], "quiet") for title in titles] for part in (0, 1)]
    heads = [head for head in heads if any(text for text, _ in head)]
    folds = [[i for i, cell in enumerate(row) if cell and (i not in inline or width(cell) > sizes[i])] for row in rows]
    cells = [
        [("" if i in folded else row[i], columns[i].style) for i in inline]
        for row, folded in zip(rows, folds, strict=True)
    ]
    grid = _grid([*heads, *cells], [sizes[i] for i in inline])
    lines = grid[: len(heads)]
    for row, folded, shown in zip(rows, folds, grid[len(heads) :], strict=True):
        if 0 in folded:
            lines += paragraph(row[0], size, style=columns[0].style)
        lines.append(shown)
        for i in folded:
            if i:
                title = f"    {columns[i].titles(False)[1]}  "
                lines += paragraph(row[i], size, [(title, "quiet")], columns[i].style)
    return lines


def _shrunk(
    columns: Sequence[Column], rows: Sequence[Sequence[str]], sizes: list[int], inline: list[int], size: int
) -> list[int]:
    """Shrinks column widths to fit. The widest column that folds shrinks first, to its next smaller cell (its larger
    cells fold); the first column shrinks last."""
    sizes, least = list(sizes), _sizes(columns, [], True)
    while _total(sizes, inline) > size and (wide := [i for i in inline if columns[i].folds and sizes[i] > least[i]]):
        widest = max(wide, key=lambda i: (sizes[i], i))
        smaller = [width(row[widest]) for row in rows if width(row[widest]) < sizes[widest]]
        sizes[widest] = max([least[widest], *smaller])
    sizes[0] = min(sizes[0], max(size - (_total(sizes, inline) - sizes[0]), least[0], 8))
    return sizes


def _sizes(columns: Sequence[Column], rows: Sequence[Sequence[str]], broken: bool) -> list[int]:
    titles = [max(map(width, column.titles(broken))) for column in columns]
    return [max([title, *(width(row[i]) for row in rows)]) for i, title in enumerate(titles)]


def _total(sizes: Sequence[int], chosen: Sequence[int]) -> int:
    return sum(sizes[i] for i in chosen) + len(GAP) * (len(chosen) - 1)


def _grid(rows: Sequence[Sequence[tuple[str, str]]], sizes: Sequence[int]) -> list[Line]:
    """Draws rows of (cell, style) in columns of these sizes, one line per row."""
    lines: list[Line] = []
    for row in rows:
        line: Line = []
        blanks = 0
        for (text, style), size in zip(row, sizes, strict=True):
            shown = fitting(text, size)
            if shown:
                line += [(" " * blanks, "plain"), (shown, style)]
                blanks = 0
            blanks += size - width(shown) + len(GAP)
        lines.append(line)
    return lines
