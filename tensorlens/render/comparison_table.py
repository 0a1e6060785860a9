"""Renders a comparison for a terminal: the rows that differ, then those that agree, then the costs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tensorlens.compare.comparison_records import Comparison, Row
from tensorlens.records.source import width
from tensorlens.render.comparison_cells import DIFFERS, NOT_ASKED, Cell, ErrorNotes, cells_of, main_input, shown_rows
from tensorlens.render.layout import GAP, Line, paragraph, to_text
from tensorlens.render.options import RenderOptions
from tensorlens.render.safe_text import pad, safe, wrap

NARROW = 18  # cells; if columns would be narrower, there are none: each answer is followed by its operands
MARK = len(DIFFERS) + 1  # width of the first column


def to_terminal(comparison: Comparison, options: RenderOptions) -> str:
    """Returns the comparison as text of at most `options.width` cells per line."""
    size = max(options.width, 40)
    notes = ErrorNotes()
    head = f"compare   torch {comparison.torch}   x: {main_input(comparison)}"
    differing, agreeing = shown_rows(comparison, options.everything)
    costs = [row for row in comparison.rows if row.group == "cost"] if options.everything else []
    sections = [
        [*paragraph(head, size, style="heading", hang=10), *_legend(comparison, size)],
        _columns(comparison, "they differ", differing, notes, size),
        _agreeing(comparison, agreeing, notes, size),
        _columns(comparison, "cost, on a large x", costs, notes, size),
        _layout_note(comparison, [*differing, *agreeing], size),
        [line for note in notes.listed() for line in _note(note, size)],
        [line for part in comparison.summary.splitlines() for line in paragraph(safe(part), size, hang=2)],
    ]
    lines: list[Line] = []
    for section in filter(None, sections):
        lines += [[], *section] if lines else section
    return to_text(lines, options.color)


def _layout_note(comparison: Comparison, rows: Sequence[Row], size: int) -> list[Line]:
    """Explains the `b` of `b[..., ::2]`, if the table mentions it."""
    lines = [text for row in rows for cell in cells_of(comparison, row, ErrorNotes()) for text in cell.lines]
    if not any("b[..., " in text for text in lines):
        return []
    return paragraph("b[..., ::2], b[..., :n]: every second column, the first columns, of a b twice as wide as x", size)


def _legend(comparison: Comparison, size: int) -> list[Line]:
    """Lists the code that was run for each operand, if the table has no room for it."""
    calls = [(safe(each.operand), safe(each.call)) for each in comparison.operands]
    if all(name in _titles(comparison, size) for _, name in calls):
        return []
    column = min(max(width(name) for name, _ in calls), size // 2)
    return [
        line
        for name, call in calls
        if name != call
        for line in paragraph(call, size, [(pad(name, column) + GAP, "name")])
    ]


def _titles(comparison: Comparison, size: int) -> list[str]:
    """Returns the operands' column titles: the code that was run if there is room, else the text that was typed."""
    room = 0 if _is_grouped(comparison, size) else _room(comparison, size)
    calls = [safe(operand.call) for operand in comparison.operands]
    return calls if all(width(call) <= room for call in calls) else [safe(each.operand) for each in comparison.operands]


def _is_grouped(comparison: Comparison, size: int) -> bool:
    return _room(comparison, size) < NARROW


def _room(comparison: Comparison, size: int) -> int:
    """Returns the width of each operand's column, in cells."""
    return (size - MARK - _label_width(comparison, size)) // len(comparison.operands) - len(GAP)


def _label_width(comparison: Comparison, size: int) -> int:
    return min(max((width(row.label) for row in comparison.rows), default=0), size // 3)


def _columns(comparison: Comparison, title: str, rows: Sequence[Row], notes: ErrorNotes, size: int) -> list[Line]:
    """Draws one row per probe and one column per operand, or groups if there is no room for columns."""
    if not rows:
        return []
    if _is_grouped(comparison, size):
        return [
            [(" " * MARK + title, "heading")],
            *(line for row in rows for line in _groups(comparison, row, notes, size)),
        ]
    label, room = _label_width(comparison, size), _room(comparison, size)
    titles = [([_breakable(name, room)], room) for name in _titles(comparison, size)]
    lines = _block([([""], len(DIFFERS)), ([title], label), *titles], "heading")
    for row in rows:
        cells = [(cell.lines, room) for cell in cells_of(comparison, row, notes)]
        lines += _block([([DIFFERS if row.differs else ""], len(DIFFERS)), ([row.label], label), *cells], "plain")
    return lines


def _breakable(code: str, room: int) -> str:
    """Inserts blanks where code may be broken to fit: before a dot or after a bracket, never inside a name."""
    if width(code) <= room:
        return code
    lines = [""]
    for part in re.findall(r"\.?[^.(,\s]*[(,\s]?", code):
        if lines[-1] and width(lines[-1] + part.rstrip()) > room - (2 if lines[1:] else 0):
            lines.append("")
        lines[-1] += part
    return " ".join(line.strip() for line in lines)


def _agreeing(comparison: Comparison, rows: Sequence[Row], notes: ErrorNotes, size: int) -> list[Line]:
    """Draws rows in which all operands agree: each answer once, without columns."""
    if not rows:
        return []
    label = _label_width(comparison, size)
    lines: list[Line] = [[(" " * MARK + "they agree", "heading")]]
    for row in rows:
        fullest = max(cells_of(comparison, row, notes), key=lambda cell: (cell.text != NOT_ASKED, len(cell.others)))
        first, *others = fullest.lines
        answer = [f"equal: {first}" if row.probe == "values" else first, *others]
        lines += _block([([""], len(DIFFERS)), ([row.label], label), (answer, size - MARK - label - len(GAP))], "plain")
    return lines


def _groups(comparison: Comparison, row: Row, notes: ErrorNotes, size: int) -> list[Line]:
    """Draws a row without columns: each answer once, and beside it the operands that give it."""
    mark = pad(DIFFERS if row.differs else "", MARK)
    lines: list[Line] = [
        [(mark, "bad" if row.differs else "plain"), (row.label, "heading" if row.differs else "plain")]
    ]
    givers: dict[Cell, list[str]] = {}
    for name, cell in zip(_titles(comparison, size), cells_of(comparison, row, notes), strict=True):
        if cell != Cell(NOT_ASKED, ()):
            givers.setdefault(cell, []).append(name)
    room = size - MARK - 4 - len(GAP)
    answer = min(max(width(line) for cell in givers for line in cell.lines), room // 2)
    for cell, names in givers.items():
        lines += _block([([""], MARK + 1), (cell.lines, answer), ([", ".join(names)], room - answer)], "plain")
    return lines


def _block(cells: Sequence[tuple[list[str], int]], style: str) -> list[Line]:
    """Draws one row of cells, each wrapped to its width; continued lines are indented by two."""
    columns = [[piece for text in texts for piece in _hanging(text, size)] for texts, size in cells]
    height = max(len(column) for column in columns)
    lines: list[Line] = []
    for index in range(height):
        pieces = [column[index] if index < len(column) else "" for column in columns]
        padded = [pad(piece, size) for piece, (_, size) in zip(pieces, cells, strict=True)]
        mark = "bad" if padded[0] == DIFFERS else "plain"
        lines.append([(padded[0], mark), (" ", "plain"), (GAP.join(padded[1:]).rstrip(), style)])
    return lines


def _hanging(text: str, size: int) -> list[str]:
    first, *rest = wrap(text, size)
    return [first, *(f"  {piece}" for piece in (wrap(" ".join(rest), size - 2) if rest else []))]


def _note(note: tuple[str, str, str], size: int) -> list[Line]:
    number, message, code = note
    text = f"{message} [{code}]" if code else message
    return paragraph(text, size, [(f"{number} ", "quiet")])
