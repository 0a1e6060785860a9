"""Writes Markdown: tables, code, and other people's text, escaped so that it shows as it is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tensorlens.render.safe_text import safe


def markdown_table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of a table. The cells are Markdown already."""
    return [_row(titles), f"|{'---|' * len(titles)}", *map(_row, rows)]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def marked(text: str) -> str:
    """Escapes `text`, except that pairs of backticks in it stay code spans."""
    parts = safe(text).split("`")
    if len(parts) % 2 == 0:
        return escaped(text)
    return "".join(code(part) if index % 2 else escaped(part) for index, part in enumerate(parts))


def escaped(text: str) -> str:
    """Escapes every character that Markdown would take as markup."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", safe(text))


def code(text: str) -> str:
    """Returns a code span for a table cell, with enough backticks around it; "" for an empty text."""
    shown = safe(text).replace("|", "\\|")
    if not shown.strip():
        return ""
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    return f"{fence} {shown} {fence}" if len(fence) > 1 else f"`{shown}`"


def fenced(lines: list[str], language: str = "text") -> list[str]:
    """Returns a fenced block with a fence that no line of it can close."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *lines, fence]
