"""Lines of styled text, and the two shapes that reports are made of: hanging paragraphs and tables that fold."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tensorlens.render.text import wrap
from tensorlens.render.theme import paint
from tensorlens.source import width

Piece = tuple[str, str]  # safe text, style
Line = list[Piece]
GAP = "  "


def to_text(lines: Iterable[Line], color: bool) -> str:
    """The lines as one text; without colour no escape code is in it."""
    texts = []
    for line in lines:
        plain = "".join(text for text, _ in line)
        texts.append("".join(paint(text, style) for text, style in line) if color else plain.rstrip())
    return "\n".join(texts) + "\n" if texts else ""


def line_width(line: Line) -> int:
    return sum(width(text) for text, _ in line)


def paragraph(
    text: str, size: int, first: Line | None = None, style: str = "plain", hang: int | None = None
) -> list[Line]:
    """`text` wrapped to `size` cells; `first` begins the first line, and the others hang below its end or at `hang`."""
    first = first or []
    begun = line_width(first)
    indent = begun if hang is None else hang
    head, *rest = wrap(text, size - begun)
    rest = wrap(" ".join(rest), size - indent) if rest else []
    return [[*first, (head, style)], *([(" " * indent, "plain"), (row, style)] for row in rest)]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table. One that may fold is moved to lines of its own, below the row, when room is short; before
    that, titles are broken into two lines at `|`."""

    title: str
    style: str = "plain"
    folds: bool = False

    def titles(self, broken: bool) -> tuple[str, str]:
        """The title over two lines, the first empty where it isn't broken."""
        first, bar, second = self.title.rpartition("|")
        if broken and bar:
            return first, second
        return "", self.title.replace("_|", "_").replace("|", " ")


def table(columns: Sequence[Column], rows: Sequence[Sequence[str]], size: int) -> list[Line]:
    """A table of safe cells in at most `size` cells of width; what doesn't fit is folded, never lost."""
    inline = [i for i, column in enumerate(columns) if any(row[i] for row in rows) or not column.folds]
    broken = _total(_sizes(columns, rows, False), inline) > size
    sizes = _sizes(columns, rows, broken)
    folded: list[int] = []
    while _total(sizes, inline) > size and (candidates := [i for i in inline if columns[i].folds]):
        widest = max(candidates, key=lambda i: (sizes[i], i))
        inline.remove(widest)
        folded.append(widest)
    spare = size - (_total(sizes, inline) - sizes[0])
    sizes[0] = min(sizes[0], max(spare, width(columns[0].title), 8))
    titles = [columns[i].titles(broken) for i in inline]
    heads = [[(title[part], "quiet", sizes[i]) for title, i in zip(titles, inline, strict=True)] for part in (0, 1)]
    lines = [_row(head) for head in heads if any(text for text, *_ in head)]
    for row in rows:
        if width(row[0]) > sizes[0]:
            lines.extend(paragraph(row[0], size, style=columns[0].style))
            row = ["", *row[1:]]
        lines.append(_row([(row[i], columns[i].style, sizes[i]) for i in inline]))
        for i in sorted(folded):
            if row[i]:
                title = f"    {columns[i].titles(False)[1]}  "
                lines.extend(paragraph(row[i], size, [(title, "quiet")], columns[i].style))
    return lines


def _sizes(columns: Sequence[Column], rows: Sequence[Sequence[str]], broken: bool) -> list[int]:
    titles = [max(map(width, column.titles(broken))) for column in columns]
    return [max([title, *(width(row[i]) for row in rows)]) for i, title in enumerate(titles)]


def _total(sizes: Sequence[int], chosen: Sequence[int]) -> int:
    return sum(sizes[i] for i in chosen) + len(GAP) * (len(chosen) - 1)


def _row(cells: Sequence[tuple[str, str, int]]) -> Line:
    line: Line = []
    for text, style, size in cells:
        line += [(text, style), (" " * (size - width(text)) + GAP, "plain")]
    return line[:-1]
