"""Makes other people's text safe to print: it escapes control characters, which a terminal would obey."""

from __future__ import annotations

import json
import unicodedata
from functools import lru_cache
from typing import Any

from tensorlens.records.source import width

TAB = "    "
_HIDDEN = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}


def safe(text: str) -> str:
    """Returns `text` on one line. A tab becomes four blanks; control and invisible characters, bidirectional marks and
    lone surrogates are escaped as in Python."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_shown, text))


def safe_lines(text: str) -> list[str]:
    """Splits a message into lines, each safe."""
    return [safe(line) for line in text.replace("\r\n", "\n").split("\n")]


@lru_cache(maxsize=4096)
def _shown(char: str) -> str:
    if char == "\t":
        return TAB
    if unicodedata.category(char) not in _HIDDEN:
        return char
    return char.encode("unicode_escape").decode("ascii")


def written(data: Any, indent: int) -> str:
    """Returns readable JSON in which characters that a terminal would obey or hide are escaped."""
    text = json.dumps(data, indent=indent, ensure_ascii=False).encode("utf-8", "replace").decode()
    for char in set(text):
        if char != "\n" and unicodedata.category(char) in _HIDDEN:
            text = text.replace(char, json.dumps(char)[1:-1])
    return text + "\n"


def cells(text: str) -> int:
    """Returns the width of `text` after `safe`."""
    return width(safe(text))


def cut(text: str, limit: int) -> str:
    """Cuts safe `text` to `limit` cells; an ellipsis marks the cut."""
    return text if width(text) <= limit else fitting(text, limit - 1) + "…"


def fitting(text: str, limit: int) -> str:
    """Returns the longest prefix of `text` that takes at most `limit` cells."""
    if text.isascii():
        return text[: max(limit, 0)]
    taken = 0
    for position, char in enumerate(text):
        taken += width(char)
        if taken > limit:
            return text[:position]
    return text


def pad(text: str, size: int) -> str:
    """Fills `text` up with blanks to `size` cells."""
    return text + " " * (size - width(text))


def wrap(text: str, size: int, first: int | None = None) -> list[str]:
    """Breaks safe `text` at blanks into lines of at most `size` cells; the first has at most `first`. There is always a
    line. `v0 -> v1` stays together if it fits."""
    sizes = (max(size if first is None else first, 2), max(size, 2))
    lines: list[str] = []
    current, *words = (word.replace("\0", " ") for word in text.replace(" -> ", "\0->\0").split(" "))
    for word in words:
        current = _chopped(current, lines, sizes)
        if width(current) + 1 + width(word) <= sizes[bool(lines)]:
            current += f" {word}"
        else:
            lines.append(current)
            current = word
    last = _chopped(current, lines, sizes)
    return [*lines, last]


def _chopped(word: str, lines: list[str], sizes: tuple[int, int]) -> str:
    """Moves pieces of a long `word` that fill whole lines to `lines`, and returns the rest of it."""
    while width(word) > sizes[bool(lines)]:
        lines.append(fitting(word, sizes[bool(lines)]))
        word = word[len(lines[-1]) :]
    return word
