"""Splits the names of a program into their words."""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_NAME = re.compile(r"""[A-Za-z_][\w.]*(\[["']\w+["']\])?""")
_PART = re.compile(r"[A-Za-z_]\w*")


def words_of(text: str) -> list[str]:
    """Returns the words of some names in lower case: `SinusoidalPositions.src_len` has four."""
    return [word.lower() for word in _WORD.findall(text)]


def words_of_last(name: str) -> list[str]:
    """Returns the words of the last part of a name: those of `src_len` for `batch["src_len"]`. None of an expression
    that is no name."""
    parts = _PART.findall(name) if _NAME.fullmatch(name) else []
    return words_of(parts[-1]) if parts else []
