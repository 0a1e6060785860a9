"""Colours source lines and diffs with Rich's `Syntax`, in the terminal's sixteen colours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from rich.console import Console
from rich.text import Text

from tensorlens.records.source import lines_of, width
from tensorlens.render.safe_text import fitting, safe

_MOST_LINES = 3_000  # of a file to colour; more would take longer than a reader waits


def source_line(text: str, number: int, console: Console) -> Text:
    """Returns line `number` of a source, counted from 1, safe to print; with colours if the console shows them."""
    if console.color_system is not None:
        coloured = _coloured(text)
        if coloured is not None and 1 <= number <= len(coloured):
            return coloured[number - 1].copy()
    lines = lines_of(text)
    return Text(safe(lines[number - 1]) if 1 <= number <= len(lines) else "", "code")


def clipped(line: Text, room: int) -> Text:
    """Cuts a line at the right edge; an ellipsis marks the cut."""
    if width(line.plain) <= room:
        return line
    return Text.assemble(line[: len(fitting(line.plain, room - 1))], ("…", "quiet"))


def diff_lines(lines: Sequence[str], console: Console) -> list[Text]:
    """Returns the lines of a unified diff, safe to print; with colours if the console shows them."""
    text = "\n".join(lines)
    coloured = None if console.color_system is None else _coloured(text, "diff")
    return [Text(safe(line), "code") for line in lines] if coloured is None else [line.copy() for line in coloured]


@lru_cache(maxsize=16)
def _coloured(text: str, language: str = "python") -> tuple[Text, ...] | None:
    """Returns the coloured lines of a text; None if it is too long, or if its lines would not stay as they are."""
    lines = [safe(line) for line in lines_of(text)]
    if len(lines) > _MOST_LINES:
        return None
    from rich.syntax import Syntax

    from tensorlens.render.theme import source_theme

    shown = Syntax("", language, theme=source_theme()).highlight("\n".join(lines)).split("\n", allow_blank=True)
    rows = list(shown)[: len(lines)]
    if [row.plain for row in rows] != lines[: len(rows)]:
        return None
    return tuple(rows)
