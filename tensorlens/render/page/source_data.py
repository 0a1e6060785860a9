"""Puts source files and places in them into the page's data: only lines near a place, with the kinds of their words."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from pygments.lexers import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, Operator, String

from tensorlens.records.model import Span, Trace
from tensorlens.records.source import line_at, lines_of, shown_path
from tensorlens.render.page.strings import columns
from tensorlens.render.report.headline import script_file
from tensorlens.render.safe_text import safe

_WHOLE = 2_000  # lines of a file that is shown whole
_AROUND = 20  # lines around a place, of a longer file
_LONGEST = 1_000  # characters of a line
_KINDS = (
    (Comment, "c"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Decorator, "d"),
    (Number, "n"),
    (String, "s"),
)


class Sources:
    """The files and places that the page's records refer to, by their positions."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._files = {script_file(trace): 0}
        self._places: dict[tuple[int, int, int, int, int, str], int] = {}

    def place(self, span: Span | None, function: str = "") -> int | None:
        """Returns the position of a place; columns count the characters that the page shows."""
        if span is None:
            return None
        file = self._files.setdefault(span.file, len(self._files))
        text = self._trace.sources.get(span.file, "")
        begin = len(safe(line_at(text, span.line)[: span.column]))
        end = len(safe(line_at(text, span.end_line)[: span.end_column]))
        key = (file, span.line, begin, span.end_line, end, function)
        return self._places.setdefault(key, len(self._places))

    def site(self, site: int | None) -> int | None:
        """Returns the position of a site's place."""
        if site is None or site < 0:
            return None
        known = self._trace.sites[site]
        return self.place(known.span, known.function)

    def places(self) -> dict[str, list[Any]]:
        """Returns the places as columns."""
        return columns("file line column end_line end_column function", self._places)

    def files(self) -> list[dict[str, Any]]:
        """Returns the files, the script first, each with its lines in blocks of neighbours."""
        return [self._file(file, number) for file, number in self._files.items()]

    def _file(self, file: str, number: int) -> dict[str, Any]:
        text = self._trace.sources.get(file, "")
        lines = [_short(safe(line)) for line in lines_of(text)] if text else []
        used = {line for place in self._places if place[0] == number for line in (place[1], place[3])}
        shown = [n for n in range(1, len(lines) + 1) if len(lines) <= _WHOLE or _is_near(n, used)]
        kinds = _kinds(lines) if len(lines) <= 5 * _WHOLE else [""] * len(lines)
        blocks = []
        for _, group in groupby(enumerate(shown), lambda pair: pair[1] - pair[0]):
            numbers = [line for _, line in group]
            blocks.append(
                {
                    "line": numbers[0],
                    "lines": [lines[n - 1] for n in numbers],
                    "kinds": [kinds[n - 1] for n in numbers],
                }
            )
        return {"name": safe(shown_path(file, self._trace.script.folder)), "length": len(lines), "blocks": blocks}


def _is_near(line: int, used: set[int]) -> bool:
    return not used.isdisjoint(range(line - _AROUND, line + _AROUND + 1))


def _short(line: str) -> str:
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _kinds(lines: list[str]) -> list[str]:
    """Returns the kinds of the words of each line: "k6_7n1" is a keyword of 6 characters, 7 others, and a number."""
    found: list[list[tuple[str, int]]] = [[] for _ in lines]
    line = 0
    for token, text in PythonLexer(stripnl=False, ensurenl=False).get_tokens("\n".join(lines)):
        kind = next((kind for parent, kind in _KINDS if token in parent), "_")
        for place, part in enumerate(text.split("\n")):
            line += place > 0
            if part and line < len(found):
                found[line].append((kind, len(part)))
    return [_joined(words) for words in found]


def _joined(words: list[tuple[str, int]]) -> str:
    groups = [(kind, sum(size for _, size in group)) for kind, group in groupby(words, lambda word: word[0])]
    return "" if {kind for kind, _ in groups} <= {"_"} else "".join(f"{kind}{size}" for kind, size in groups)
