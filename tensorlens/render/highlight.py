"""Colours source lines with Rich's `Syntax`, in the terminal's sixteen colours."""

from __future__ import annotations

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


@lru_cache(maxsize=16)
def _coloured(text: str) -> tuple[Text, ...] | None:
    """Returns the coloured lines of a source; None if it is too long, or if its lines would not stay as they are."""
    lines = [safe(line) for line in lines_of(text)]
    if len(lines) > _MOST_LINES:
        return None
    from rich.syntax import Syntax

    from tensorlens.render.theme import source_theme

    shown = Syntax("", "python", theme=source_theme()).highlight("\n".join(lines)).split("\n", allow_blank=True)
    rows = list(shown)[: len(lines)]
    if [row.plain for row in rows] != lines[: len(rows)]:
        return None
    return tuple(rows)
