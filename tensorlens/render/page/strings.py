"""Holds each text of a page once, safe to show, and writes tables of records as columns of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tensorlens.render.safe_text import safe

NONE = -1  # stands for None in a column of numbers


class Strings:
    """The table of texts. Records refer to a text by its position; the empty text is number 0."""

    def __init__(self) -> None:
        self.texts: list[str] = [""]
        self._numbers = {"": 0}

    def number(self, text: str) -> int:
        """Returns the position of a text; control characters and bidirectional marks in it are made visible."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self.texts)
            self.texts.append(safe(text))
        return found


def columns(names: str, rows: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    """Returns a table by columns: `names` are separated by blanks. None becomes -1, a bool 0 or 1."""
    headings = names.split()
    table: list[list[Any]] = [[] for _ in headings]
    for row in rows:
        for column, value in zip(table, row, strict=True):
            column.append(NONE if value is None else int(value) if isinstance(value, bool) else value)
    return dict(zip(headings, table, strict=True))
