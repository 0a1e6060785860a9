"""Finds the parts of a source line that run separately: its statements, and its comprehensions and lambdas."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from tensorlens.records.model import Site, Span
from tensorlens.records.source import column_of, line_at, tree_of

_Place = tuple[int, int]  # line, column
_Statements = dict[int, list[tuple[_Place, _Place]]]  # line -> begin and end of the statements on it
_REPEATING = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.Lambda)


class LineParts:
    """Finds the parts of source lines. It parses a file when it first needs it."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._statements: dict[str, _Statements] = {}
        self._repeated: dict[str, list[tuple[_Place, _Place]]] = {}

    def statement(self, site: Site) -> tuple[int, int]:
        """Returns (line, column) of the innermost statement around a site; (0, 0) if its line has only one
        statement."""
        if site.span.file not in self._statements:
            self._statements[site.span.file] = _statements(self._sources.get(site.span.file, ""))
        spans = self._statements[site.span.file].get(site.span.line, ())
        around = [begin for begin, end in spans if begin <= (site.span.line, site.span.column) <= end]
        return max(around, default=(0, 0))

    def is_repeated(self, site: Site) -> bool:
        """Returns whether the expression at a site is in a comprehension or a lambda: one run of its line may run it
        often."""
        if site.span.file not in self._repeated:
            self._repeated[site.span.file] = _repeated(self._sources.get(site.span.file, ""))
        begin, end = (site.span.line, site.span.column), (site.span.end_line, site.span.end_column)
        return any(first <= begin and end <= last for first, last in self._repeated[site.span.file])


def span_of(node: ast.expr | ast.stmt, text: str, file: str) -> Span:
    """Returns the span of `node` in the source `text` of a file."""
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    column = column_of(line_at(text, node.lineno), node.col_offset)
    return Span(file, node.lineno, column, end_line, column_of(line_at(text, end_line), end_column))


def _statements(text: str) -> _Statements:
    """Returns the statements of the lines that have more than one."""
    statements: _Statements = {}
    for node in ast.walk(tree_of(text) or ast.Module([], [])):
        if isinstance(node, ast.stmt):
            span = span_of(node, text, "")
            statements.setdefault(span.line, []).append(((span.line, span.column), (span.end_line, span.end_column)))
    return {line: spans for line, spans in statements.items() if len(spans) > 1}


def _repeated(text: str) -> list[tuple[_Place, _Place]]:
    spans = [
        span_of(node, text, "")
        for node in ast.walk(tree_of(text) or ast.Module([], []))
        if isinstance(node, _REPEATING)
    ]
    return [((span.line, span.column), (span.end_line, span.end_column)) for span in spans]
