"""Builds the sites of a trace, and the sources that they are in, from the rows of a journal."""

from __future__ import annotations

from typing import Any, TypeVar

from tensorlens.journal import rows
from tensorlens.records import model
from tensorlens.records.source import block_of, column_of, line_at

_T = TypeVar("_T")


class SourceSites:
    """The sources and the sites of a run so far."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.sites: list[model.Site] = []
        self._values: dict[Any, Any] = {}  # one object for equal values: a wide program has 100,000 sites

    def add_source(self, row: rows.SourceRow) -> None:
        self.sources[row.file] = row.text

    def add_site(self, row: rows.SiteRow) -> None:
        """Adds a site, or replaces it. Its source has been added before, unless it is not known."""
        text = self.sources.get(row.file, "")
        line, end_line, column, end_column = block_of(text, row.position) if row.of_block else row.position
        start, end = column_of(line_at(text, line), column), column_of(line_at(text, end_line), end_column)
        one = self._one
        last = one(line) if end_line == line else end_line
        span = model.Span(one(row.file), one(line), start, last, end)
        site = model.Site(row.site, span, one(row.function), one(row.caller), one(row.targets), one(row.through))
        self.sites[row.site : row.site + 1] = [site]

    def _one(self, value: _T) -> _T:
        """Returns the first value that is equal."""
        first: _T = self._values.setdefault(value, value)
        return first
