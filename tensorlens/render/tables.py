"""Makes the Rich tables of all output: one box style, and cells that fold between words, never inside one that fits.

Every table of the command is a `HouseTable`. `printed` turns renderables into text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from io import StringIO
from itertools import pairwise

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from tensorlens.render.safe_text import safe_lines
from tensorlens.render.theme import console

BOX = box.SIMPLE_HEAD
_LONGEST_PIECE = 24  # cells; a longer piece of a word may be broken anywhere
_BREAKS = (
    re.compile(r"(?<= )(?=\S)"),  # inside `v0 -> v1`, which stays together if it fits
    re.compile(r"(?<=[.,(\[=/])(?=.)|(?<=[a-z0-9])(?=[A-Z])"),  # after punctuation, before a hump of CamelCase
    re.compile(r"(?<=[_:-])(?=.)"),
)


def printed(renderables: Iterable[RenderableType], size: int, color: bool) -> str:
    """Prints renderables, separated by blank lines, as text of at most `size` cells per line. Without `color` it has no
    escape codes."""
    printer = console(size, color)
    for position, each in enumerate(renderables):
        if position:
            printer.print()
        printer.print(each)
    assert isinstance(printer.file, StringIO)
    text = printer.file.getvalue()
    return text if color else "\n".join(line.rstrip() for line in text.split("\n"))


class Cell:
    """A text that folds to the width of its column: at blanks, else after punctuation in a name, else after `_`.

    A string is made safe to print; a `Text` is safe already. `hang` indents what is folded of each of its lines: by
    the same for all, or by one number for each.
    """

    def __init__(self, text: Text | str, style: str = "plain", hang: int | Sequence[int] = 0) -> None:
        self.text = text if isinstance(text, Text) else Text("\n".join(safe_lines(text)), style)
        self._hang = hang

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        pieces = [piece for word in self.text.plain.split() for piece in _BREAKS[1].split(word)]
        least = max((min(cell_len(piece), _LONGEST_PIECE) for piece in pieces), default=0)
        most = max(map(cell_len, self.text.plain.split("\n")))
        return Measurement(min(least, options.max_width), min(most, options.max_width))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = list(self.text.split("\n", allow_blank=True)) or [Text()]
        hangs = [self._hang] * len(lines) if isinstance(self._hang, int) else self._hang
        for line, hang in zip(lines, hangs, strict=True):
            yield from folded(line, options.max_width, hang)


def folded(line: Text, room: int, hang: int = 0) -> list[Text]:
    """Folds one line of safe text into lines of at most `room` cells; those after the first are indented by `hang`."""
    hang = min(hang, room // 2)
    starts = [0]  # of each folded line, in characters
    used = 0
    for start, end in _pieces(line.plain, room - hang):
        size = cell_len(line.plain[start:end].rstrip(" "))
        if used and used + size > room - (hang if len(starts) > 1 else 0):
            starts.append(start)
            used = 0
        used += cell_len(line.plain[start:end])
    parts = list(line.divide(starts[1:]))  # at once: each slice of a `Text` copies the whole of it
    for part in parts:
        part.rstrip()
        part.no_wrap = True
    return [parts[0], *(Text(" " * hang).append_text(part) for part in parts[1:])]


def _pieces(text: str, room: int) -> Iterable[tuple[int, int]]:
    """Yields the (start, end) of the pieces that a line may be broken between; each fits into `room` cells."""
    for word in re.finditer(r"\S+(?: -> \S+)*\s*|\s+", text):
        yield from _broken(text, word.start(), word.end(), room, 0)


def _broken(text: str, start: int, end: int, room: int, level: int) -> Iterable[tuple[int, int]]:
    if cell_len(text[start:end].rstrip(" ")) <= room:
        yield start, end
    elif level < len(_BREAKS):
        cuts = [start, *(found.start() + start for found in _BREAKS[level].finditer(text[start:end])), end]
        for first, last in pairwise(cuts):
            yield from _broken(text, first, last, room, level + 1)
    else:
        first = start
        for position in range(start + 1, end):
            if cell_len(text[first : position + 1]) > max(room, 2):
                yield first, position
                first = position
        yield first, end


class HouseTable:
    """A table in the style of all output. A heading may have a line end. Empty columns of `optional` are left out.

    Args:
        headings: one per column; without any, the table has no heading row.
        styles: one per column; "plain" for those that are not given.
        right: the columns that are aligned to the right.
        optional: the columns that are left out if all their cells are empty.
    """

    def __init__(
        self,
        headings: Sequence[str],
        styles: Sequence[str] = (),
        right: Sequence[int] = (),
        optional: Sequence[int] = (),
    ) -> None:
        self._headings = headings
        self._styles = [*styles, *["plain"] * (len(headings) - len(styles))]
        self._right, self._optional = right, optional
        self._rows: list[list[Cell]] = []
        self._ends: set[int] = set()  # the rows that end a section

    def add(self, *cells: str | Text | Cell) -> None:
        """Adds a row. A string gets the style of its column."""
        texts = [c if isinstance(c, Cell) else Cell(c, style) for c, style in zip(cells, self._styles, strict=True)]
        self._rows.append(texts)

    def end_section(self) -> None:
        """Draws a line below the last row."""
        self._ends.add(len(self._rows) - 1)

    def __len__(self) -> int:
        return len(self._rows)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = [
            column
            for column in range(len(self._headings))
            if column not in self._optional or any(row[column].text.plain.strip() for row in self._rows)
        ]
        tight = options.max_width < 60
        table = Table(
            box=BOX,
            show_header=any(self._headings),
            header_style="plain",
            border_style="quiet",
            show_edge=False,
            pad_edge=False,
            padding=(0, 0 if tight else 1, 0, 0),
            collapse_padding=tight,
        )
        gaps = (len(shown) - 1) * (1 if tight else 2)
        sizes = self._sizes(console, options, shown, options.max_width - gaps)
        for column, size in zip(shown, sizes, strict=True):
            justify: JustifyMethod = "right" if column in self._right else "left"
            table.add_column(Cell(self._headings[column], "quiet"), justify=justify, width=size)
        for position, row in enumerate(self._rows):
            table.add_row(*(row[column] for column in shown), end_section=position in self._ends)
        yield table

    def _sizes(self, console: Console, options: ConsoleOptions, shown: Sequence[int], room: int) -> list[int]:
        """Returns the columns' widths. If room is short, the widest column shrinks first, but not below its longest
        word as long as another column can shrink: Rich's own way would break words."""
        columns = [[Cell(self._headings[column]), *(row[column] for row in self._rows)] for column in shown]
        measured = [[cell.__rich_measure__(console, options) for cell in cells] for cells in columns]
        least = [max(each.minimum for each in cells) for cells in measured]
        sizes = [max(each.maximum for each in cells) for cells in measured]
        while sum(sizes) > room and max(sizes) > 1:
            able = [place for place, size in enumerate(sizes) if size > least[place]]
            widest = max(able or range(len(sizes)), key=lambda place: sizes[place])
            sizes[widest] -= 1
        return sizes


def hanging(head: Text | str, body: RenderableType, indent: int = 0) -> RenderableType:
    """Puts `head` before `body`; the further lines of `body` are indented to the width of `head`."""
    head = Text(head) if isinstance(head, str) else head
    grid = Table.grid(padding=0)
    grid.add_column(no_wrap=True, width=cell_len(head.plain))
    grid.add_column()
    grid.add_row(head, Cell(body) if isinstance(body, str | Text) else body)
    return Padding(grid, (0, 0, 0, indent)) if indent else grid
