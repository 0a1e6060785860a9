"""Renders a comparison for a terminal: the rows that differ, then those that agree, then the costs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.measure import Measurement
from rich.text import Text

from tensorlens.compare.comparison_records import Comparison, Row
from tensorlens.records.source import width
from tensorlens.render import comparison_cells as cells
from tensorlens.render.comparison_cells import DIFFERS, NOT_ASKED, ErrorNotes, cells_of, shown_rows
from tensorlens.render.options import RenderOptions
from tensorlens.render.safe_text import pad, safe
from tensorlens.render.tables import Cell, HouseTable, hanging, printed

NARROW = 18  # cells; if columns would be narrower, there are none: each answer is followed by its operands
GAP = 2  # cells between columns
MARK = len(DIFFERS) + GAP  # cells of the first column
ANSWERS = 50  # cells for the answers; the names of rows get the rest
LEAST = 12  # cells of the names of rows, however narrow the terminal
BLANK = " " * len(DIFFERS)


def to_terminal(comparison: Comparison, options: RenderOptions) -> str:
    """Returns the comparison as text of at most `options.width` cells per line."""
    size = max(options.width, 40)
    return printed(_Sections(comparison, size, options.everything).all(), size, options.color)


class _Label(Cell):
    """The name of a row. It stays on one line if that leaves `ANSWERS` cells; the answers beside it fold first."""

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        most = width(self.text.plain)
        room = max(min(options.max_width - ANSWERS, options.max_width * 3 // 8), LEAST)
        return Measurement(min(most, room), most)


class _Sections:
    """The parts of a comparison, drawn for a width."""

    def __init__(self, comparison: Comparison, size: int, everything: bool) -> None:
        self._comparison, self._size = comparison, size
        self._differing, self._agreeing = shown_rows(comparison, everything)
        self._costs = [row for row in comparison.rows if row.group == "cost"] if everything else []
        self._notes = ErrorNotes()
        self._grouped = self._natural_width() > size and self._room() < NARROW
        room = 0 if self._grouped else self._room()
        calls = [safe(each.call) for each in comparison.operands]
        fit = all(width(call) <= room for call in calls)
        self._titles = calls if fit else [safe(each.operand) for each in comparison.operands]

    def all(self) -> list[RenderableType]:
        comparison = self._comparison
        head = f"compare   torch {comparison.torch}   x: {cells.main_input(comparison)}"
        parts: list[RenderableType] = [Group(Cell(head, "heading", 10), *self._legend())]
        parts += [self._table("they differ", self._differing)] if self._differing else []
        parts += [self._agreement()] if self._agreeing else []
        parts += [self._table("cost, on a large x", self._costs)] if self._costs else []
        parts += self._layout_note()
        notes = self._notes.listed()
        parts += [Group(*(hanging(Text(f"{each[0]} ", "quiet"), _note(each)) for each in notes))] if notes else []
        return [*parts, Group(*(Cell(safe(part), hang=2) for part in comparison.summary.splitlines()))]

    def _room(self) -> int:
        """Returns the width of each operand's column if all are equally wide."""
        rows = [*self._differing, *self._costs]
        label = min(max((width(row.label) for row in rows), default=0), self._size // 3)
        return (self._size - MARK - label) // len(self._comparison.operands) - GAP

    def _natural_width(self) -> int:
        """Returns the width of the table of differing rows if no cell is folded."""
        columns = [[safe(operand.operand)] for operand in self._comparison.operands]
        for row in self._differing:
            for column, cell in zip(columns, cells_of(self._comparison, row, ErrorNotes()), strict=True):
                column.extend(cell.lines)
        label = max((width(row.label) for row in self._differing), default=0)
        return MARK + label + sum(GAP + max(map(width, column)) for column in columns)

    def _legend(self) -> list[RenderableType]:
        """Lists the code that was run for each operand, if the table has no room for it."""
        calls = [(safe(each.operand), safe(each.call)) for each in self._comparison.operands]
        if all(name in self._titles for _, name in calls):
            return []
        column = min(max(width(name) for name, _ in calls), self._size // 2)
        gap = " " * GAP
        return [hanging(Text(pad(name, column) + gap, "name"), call) for name, call in calls if name != call]

    def _table(self, title: str, rows: Sequence[Row]) -> HouseTable:
        """Draws one row per probe and one column per operand, or groups if there is no room for columns."""
        if self._grouped:
            return self._groups(title, rows)
        table = HouseTable([BLANK, title, *self._titles])
        for row in rows:
            answers = (Cell("\n".join(cell.lines), hang=2) for cell in cells_of(self._comparison, row, self._notes))
            table.add(*_mark_and_label(row), *answers)
        return table

    def _groups(self, title: str, rows: Sequence[Row]) -> HouseTable:
        """Draws each answer of a row once, and beside it the operands that give it."""
        table = HouseTable([BLANK, title, "answer", "given by"])
        for row in rows:
            givers: dict[cells.Cell, list[str]] = {}
            for name, cell in zip(self._titles, cells_of(self._comparison, row, self._notes), strict=True):
                if cell != cells.Cell(NOT_ASKED, ()):
                    givers.setdefault(cell, []).append(name)
            head = _mark_and_label(row)
            for cell, names in givers.items():
                table.add(*head, Cell("\n".join(cell.lines), hang=2), ", ".join(names))
                head = (Cell(""), Cell(""))
        return table

    def _agreement(self) -> HouseTable:
        """Draws rows in which all operands agree: each answer once."""
        table = HouseTable([BLANK, "they agree", ""])
        for row in self._agreeing:
            answers = cells_of(self._comparison, row, self._notes)
            fullest = max(answers, key=lambda cell: (cell.text != NOT_ASKED, len(cell.others)))
            first, *others = fullest.lines
            answer = [f"equal: {first}" if row.probe == "values" else first, *others]
            table.add("", _Label(row.label, hang=2), Cell("\n".join(answer), hang=2))
        return table

    def _layout_note(self) -> list[RenderableType]:
        """Explains the `b` of `b[..., ::2]`, if the table mentions it."""
        rows = [*self._differing, *self._agreeing]
        lines = [text for row in rows for cell in cells_of(self._comparison, row, ErrorNotes()) for text in cell.lines]
        if not any("b[..., " in text for text in lines):
            return []
        return [Cell("b[..., ::2], b[..., :n]: every second column, the first columns, of a b twice as wide as x")]


def _mark_and_label(row: Row) -> tuple[Cell, Cell]:
    return Cell(DIFFERS if row.differs else "", "bad"), _Label(row.label, "name" if row.differs else "plain", hang=2)


def _note(note: tuple[str, str, str]) -> str:
    _, message, code = note
    return f"{message} [{code}]" if code else message
