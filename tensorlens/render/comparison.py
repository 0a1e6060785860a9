"""A comparison as a table for the terminal, as Markdown and as JSON."""

from __future__ import annotations

import io
import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tensorlens.compare.records import Answer, Comparison, Row, to_dict

APART = "!="  # the mark of a row in which the operands differ
NARROW = 16  # columns; an operand that would get less is shown on lines of its own


@dataclass(frozen=True, slots=True)
class Cell:
    """What one operand answers: for the main input, then for the inputs where the answer is another."""

    text: str
    others: tuple[tuple[str, str], ...]  # (labels of the inputs, answer)

    @property
    def plain(self) -> str:
        return "; ".join([self.text, *(f"{labels}: {text}" for labels, text in self.others)])


def render_comparison(comparison: Comparison, format: str = "table", width: int = 80, color: bool = False) -> str:
    """The comparison as text in one of `FORMATS`; `width` and `color` are for the terminal's table."""
    if format == "table":
        return to_terminal(comparison, width, color)
    return FORMATS[format](comparison)


def to_json(comparison: Comparison) -> str:
    """One JSON object, as `docs/comparison.schema.json` describes it."""
    return json.dumps(to_dict(comparison), indent=2, ensure_ascii=False) + "\n"


def to_markdown(comparison: Comparison) -> str:
    """A Markdown table; what the user typed is data in it, never markup."""
    calls = [f"`{_inline(operand.call)}`" for operand in comparison.operands]
    lines = [f"| | probe | {' | '.join(calls)} |", "|---" * (len(calls) + 2) + "|"]
    notes = Notes()
    for row in comparison.rows:
        cells = [_escaped(cell.plain) for cell in cells_of(comparison, row, notes)]
        lines.append(f"| {APART if row.differs else ''} | {_escaped(row.label)} | {' | '.join(cells)} |")
    lines += ["", f"x: {_escaped(_main_input(comparison))}. `{APART}`: they differ.", ""]
    lines += [f"{_escaped(note)}\n" for note in notes.lines()]
    lines += [_summary_markdown(comparison)]
    return "\n".join(lines) + "\n"


def to_terminal(comparison: Comparison, width: int = 80, color: bool = False) -> str:
    """The table: the rows in which the operands differ first, then those in which they agree, then costs, in words."""
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, no_color=not color, highlight=False, emoji=False, legacy_windows=False,
        color_system="standard" if color else None,
    )  # fmt: skip
    console.print(Text(f"compare   torch {comparison.torch}   x: {_main_input(comparison)}"))
    notes = Notes()
    meaning = [row for row in comparison.rows if row.group != "cost"]
    apart, alike = [row for row in meaning if row.differs], [row for row in meaning if not row.differs]
    costs = [row for row in comparison.rows if row.group == "cost"]
    if apart:
        console.print()
        _section(console, comparison, "they differ", apart, notes)
    if alike:
        console.print()
        _agreed(console, comparison, alike, notes)
    if costs:
        console.print()
        _section(console, comparison, "cost, on a large x", costs, notes)
    if notes.lines():
        console.print()
        for line in notes.lines():
            console.print(Text(line))
    console.print()
    console.print(Text(_visible(comparison.summary)))
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


class Notes:
    """The error messages of a table, numbered: each is said once, in full, below it."""

    def __init__(self) -> None:
        self._numbers: dict[str, tuple[int, Answer]] = {}

    def shown(self, answer: Answer) -> str:
        """The answer's text, with the number of its error."""
        if not answer.error:
            return _visible(answer.text)
        same = re.sub(r"\[[^\]]*\]|\d+|which is output # of \w+,", "#", answer.error)
        number, _ = self._numbers.setdefault(same, (len(self._numbers) + 1, answer))
        return f"{_visible(answer.text)} ({number})"

    def lines(self) -> list[str]:
        """`(1) RuntimeError: ... [saved-tensor-modified-inplace]`"""
        return [
            f"({number}) {_visible(answer.error)}" + (f" [{answer.code}]" if answer.code else "")
            for number, answer in self._numbers.values()
        ]


def cells_of(comparison: Comparison, row: Row, notes: Notes) -> list[Cell]:
    """One cell an operand. An exception that is the same for all and only says that x had no grad is left out."""
    answers = [row.answers(operand) for operand in range(len(comparison.operands))]
    places = range(len(comparison.inputs))
    dull = {
        place
        for place in places
        if row.group == "graph"
        and not comparison.inputs[place].requires_grad
        and place != comparison.main
        and len({each[place].value if place in each else None for each in answers}) == 1
    }
    return [_cell(comparison, each, [place for place in places if place not in dull], notes) for each in answers]


def _cell(comparison: Comparison, answers: dict[int, Answer], places: Sequence[int], notes: Notes) -> Cell:
    main = answers.get(comparison.main)
    groups: dict[object, list[int]] = {}
    for place in places:
        answer = answers.get(place)
        if answer and place != comparison.main and (main is None or _kind(answer) != _kind(main)):
            groups.setdefault(_kind(answer), []).append(place)
    text = notes.shown(main) if main else "-"
    others = (
        (", ".join(comparison.inputs[place].label for place in group), notes.shown(answers[group[0]]))
        for group in groups.values()
    )
    return Cell(text, tuple(others))


def _kind(answer: Answer) -> object:
    """What makes two answers the same: `(3, 2), as x` and `(3, 1), as x` are; so are errors with one code."""
    if ", as x" in answer.text:
        return "as x"
    return (answer.value, answer.code or None)


def _section(console: Console, comparison: Comparison, title: str, rows: Sequence[Row], notes: Notes) -> None:
    operands = [_visible(operand.call) for operand in comparison.operands]
    label = min(max(cell_len(row.label) for row in comparison.rows), console.width // 3)
    room = (console.width - label - 4) // len(operands) - 2
    if room < NARROW:
        _stacked(console, comparison, title, rows, notes)
        return
    table = _grid()
    table.add_column(width=2)
    table.add_column(title, width=label, overflow="fold", header_style="bold")
    for operand in operands:
        table.add_column(Text(operand), width=room, overflow="fold", header_style="bold")
    for row in rows:
        cells = [_lines(cell) for cell in cells_of(comparison, row, notes)]
        table.add_row(_mark(row), _label(row), *cells)
    console.print(table)


def _agreed(console: Console, comparison: Comparison, rows: Sequence[Row], notes: Notes) -> None:
    """What is the same for all stands once, not in a column for each."""
    console.print(Text("   they agree", style="bold"))
    table = _grid(show_header=False)
    table.add_column(width=2)
    table.add_column(width=min(max(cell_len(row.label) for row in comparison.rows), console.width // 3))
    table.add_column(overflow="fold")
    for row in rows:
        cells = [cell for cell in cells_of(comparison, row, notes) if cell != Cell("-", ())]
        table.add_row("", _label(row), _lines(max(cells, key=lambda cell: len(cell.others))))
    console.print(table)


def _stacked(console: Console, comparison: Comparison, title: str, rows: Sequence[Row], notes: Notes) -> None:
    """Too many operands for columns: one line an operand under each probe."""
    console.print(Text(f"   {title}", style="bold"))
    names = [_visible(operand.call) for operand in comparison.operands]
    for row in rows:
        console.print(Text.assemble(_mark(row), " " * (3 - len(_mark(row))), _label(row)))
        table = _grid(show_header=False)
        table.add_column(width=3)
        table.add_column(width=min(max(map(cell_len, names)), console.width // 2), overflow="fold")
        table.add_column(overflow="fold")
        for name, cell in zip(names, cells_of(comparison, row, notes), strict=True):
            table.add_row("", Text(name), _lines(cell))
        console.print(table)


def _grid(show_header: bool = True) -> Table:
    return Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False, show_header=show_header)


def _mark(row: Row) -> str:
    return APART if row.differs else "  "


def _label(row: Row) -> Text:
    return Text(row.label, style="bold" if row.differs else "")


def _lines(cell: Cell) -> Text:
    return Text("\n").join([Text(cell.text), *(Text(f"{labels}: {text}") for labels, text in cell.others)])


def _main_input(comparison: Comparison) -> str:
    if not comparison.inputs:
        return "none"
    main = comparison.inputs[comparison.main]
    traits = [f"{main.dtype}{list(main.shape)}"]
    traits += [] if main.device == "cpu" else [main.device]
    traits.append("requires grad" if main.requires_grad else "no grad")
    traits += ["a leaf"] if main.leaf and main.requires_grad else []
    traits += ["non-contiguous"] if not main.contiguous else []
    traits += ["a view"] if main.view else []
    return ", ".join(traits)


def _visible(text: str) -> str:
    """Control and direction characters as escapes: what an operand or a message says is shown, never obeyed."""
    return "".join(
        char if unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") else ascii(char)[1:-1] for char in text
    )


def _inline(code: str) -> str:
    return _visible(code).replace("`", "'").replace("|", "\\|")


def _escaped(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", _visible(text))


def _summary_markdown(comparison: Comparison) -> str:
    """The summary's own backticks stay code; the rest is escaped."""
    parts = _visible(comparison.summary).split("`")
    return "`".join(part if index % 2 else _escaped(part) for index, part in enumerate(parts))


FORMATS: dict[str, Callable[[Comparison], str]] = {"table": to_terminal, "markdown": to_markdown, "json": to_json}
