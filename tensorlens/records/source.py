"""Reads source text: lines as Python counts them, columns, the text of a span, and the width of text on a screen."""

from __future__ import annotations

import ast
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # `tensorlens list` and the script's process import no records
    from tensorlens.records.model import Span

_ZERO_WIDTH = {"Mn", "Me"}
_IGNORE = ("ignore", None, Warning, None, 0)


@lru_cache(maxsize=64)
def lines_of(text: str) -> tuple[str, ...]:
    """Splits a text into lines, without line ends, where Python's tokenizer does: a form feed ends no line."""
    return tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))


def line_at(text: str, line: int) -> str:
    """Returns line `line` of a text, counted from 1; "" if the text has fewer lines."""
    lines = lines_of(text)
    return lines[line - 1] if 1 <= line <= len(lines) else ""


@contextmanager
def unwarned() -> Iterator[None]:
    """Ignores warnings inside the `with` block.

    `warnings.catch_warnings` would make Python repeat warnings that it shows only once, so this sets the filter by
    hand.
    """
    filters: list[object] = warnings.filters  # type: ignore[assignment]
    filters.insert(0, _IGNORE)
    try:
        yield
    finally:
        filters.remove(_IGNORE)


@lru_cache(maxsize=64)
def tree_of(text: str) -> ast.Module | None:
    """Returns the syntax tree of a text, which callers must not change; None if the text is not Python.

    Python showed its warnings about this text when it compiled the script, so they are ignored here.
    """
    try:
        with unwarned():
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def block_of(text: str, manager: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Returns the position of the `with` statement that has a manager at this position: as in a `SiteRow`."""
    for node in ast.walk(tree_of(text) or ast.Module([], [])):
        if isinstance(node, ast.With | ast.AsyncWith):
            if manager in [_position(item.context_expr) for item in node.items]:
                return _position(node)
    return manager


def _position(node: ast.expr | ast.stmt) -> tuple[int, int, int, int]:
    return node.lineno, node.end_lineno or node.lineno, node.col_offset, node.end_col_offset or 0


def text_of(text: str, span: Span) -> str:
    """Returns the text that `span` covers; parts of the span outside `text` are ignored."""
    lines = lines_of(text)[max(span.line - 1, 0) : max(span.end_line, 0)]
    if not lines:
        return ""
    if len(lines) == 1:
        return lines[0][max(span.column, 0) : max(span.end_column, 0)]
    return "\n".join([lines[0][max(span.column, 0) :], *lines[1:-1], lines[-1][: max(span.end_column, 0)]])


def column_of(line: str, offset: int) -> int:
    """Returns the character column of UTF-8 byte `offset` in `line`: `ast` and code objects count bytes."""
    if line.isascii():
        return min(offset, len(line))
    return len(line.encode("utf-8", "surrogatepass")[:offset].decode("utf-8", "ignore"))


def one_line(text: str, limit: int = 0) -> str:
    """Joins a text to one line with single spaces, and cuts it to `limit` characters with an ellipsis."""
    flat = " ".join(text.split())
    return flat if not limit or len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def width(text: str) -> int:
    """Returns the number of terminal cells that `text` takes: two for a Chinese character, none for a combining
    mark."""
    return len(text) if text.isascii() else sum(map(_cells, text))


@lru_cache(maxsize=4096)
def _cells(char: str) -> int:
    if unicodedata.category(char) in _ZERO_WIDTH or 0x1160 <= ord(char) <= 0x11FF:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def shown_path(file: str, folder: str) -> str:
    """Returns the path of `file` relative to `folder`, with forward slashes; `file` itself if it is not inside."""
    name, root = file.replace("\\", "/"), folder.replace("\\", "/").rstrip("/")
    return name[len(root) + 1 :] if root and name.startswith(root + "/") else name
