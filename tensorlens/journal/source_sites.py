"""Keeps the sites of a run, and the sources that they are in, from the rows of a journal.

A wide program has a hundred thousand sites: while it runs, each is a few numbers in a table. `records` makes the
records of a trace from them.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from tensorlens.journal import rows
from tensorlens.records.model import Site, Span
from tensorlens.records.record_code import maker
from tensorlens.records.source import block_of, column_of

_NO_CALLER = -1
_COLUMNS = 9  # file, line, column, end line, end column, function, caller, targets, through
_span: Callable[..., Span] = maker(Span)
_site: Callable[..., Site] = maker(Site)


class SourceSites:
    """The sources and the sites of a run so far."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self._lines: dict[str, _Lines] = {}  # of sources
        self._places = array("i")  # `_COLUMNS` numbers for each site
        self._numbers: dict[Any, int] = {}  # of the values that many sites have: names, files, targets
        self._records: tuple[Site, ...] = ()

    def __len__(self) -> int:
        return len(self._places) // _COLUMNS

    def add_source(self, row: rows.SourceRow) -> None:
        self.sources[row.file] = row.text
        self._lines.pop(row.file, None)

    def add_site(self, row: rows.SiteRow) -> None:
        """Adds a site, or replaces it. Its source has been added before, unless it is not known.

        Raises:
            ValueError: a site before it is missing.
        """
        if not 0 <= row.site <= len(self):
            raise ValueError("a site has no such number")
        text = self.sources.get(row.file, "")
        line, end_line, column, end_column = block_of(text, row.position) if row.of_block else row.position
        lines = self._lines.get(row.file) or self._lines.setdefault(row.file, _Lines(text))
        start, end = column_of(lines.at(line), column), column_of(lines.at(end_line), end_column)
        function, targets, through = map(self._number, (row.function, row.targets, row.through))
        caller = _NO_CALLER if row.caller is None else row.caller
        numbers = (self._number(row.file), line, start, end_line, end, function, caller, targets, through)
        first = row.site * _COLUMNS
        self._places[first : first + _COLUMNS] = array("i", numbers)
        self._records = ()

    def records(self) -> tuple[Site, ...]:
        """Returns the sites as records, which share equal values."""
        if not self._records:
            self._records = tuple(self._made())
        return self._records

    def _made(self) -> list[Site]:
        values, found, ints = list(self._numbers), [], dict[int, int]()
        one = ints.setdefault
        columns = iter(self._places)
        for number, (file, line, start, end_line, end, function, caller, targets, through) in enumerate(
            zip(*[columns] * _COLUMNS, strict=True)
        ):
            span = _span(values[file], one(line, line), start, one(end_line, end_line), end)
            called_by = None if caller == _NO_CALLER else one(caller, caller)
            found.append(_site(number, span, values[function], called_by, values[targets], values[through]))
        return found

    def _number(self, value: Any) -> int:
        """Returns the number of a value: equal ones have the same."""
        return self._numbers.setdefault(value, len(self._numbers))


class _Lines:
    """Finds the lines of a text by where they begin: a tuple of all lines takes five times as much memory."""

    def __init__(self, text: str) -> None:
        self._text = text.replace("\r\n", "\n").replace("\r", "\n")
        self._starts = array("I", accumulate((len(line) + 1 for line in self._text.split("\n")), initial=0))

    def at(self, line: int) -> str:
        """Returns a line, as `line_at` does."""
        if not 1 <= line < len(self._starts):
            return ""
        return self._text[self._starts[line - 1] : self._starts[line] - 1]
