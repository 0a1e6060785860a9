"""The one place where PyTorch's English is read: from the text of a message to the code of its page.

The patterns stand in `diagnostics/catalogue.json`, one entry a code, of this and of earlier versions of PyTorch. One
marked `generic` has a message that other mistakes share (`'NoneType' object has no attribute 'zero_'`): the facts of
the run have to confirm it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

_VARIES = "\0"
_LONG_WORD = re.compile(r"\w{200,}")  # none of PyTorch's, and slow to search
_LONG_TEXT = 50_000  # characters: its messages stand at the beginning or at the end of what is longer than two of these
_FILE = Path(__file__).parent / "diagnostics" / "catalogue.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of a code: `tier` 1 is met every day, 3 hardly ever; `raises` names the exception or warning."""

    code: str
    kind: Literal["error", "warning", "silent"]
    tier: int
    raises: str | None
    patterns: tuple[str, ...]
    generic: bool
    roles: tuple[str, ...]  # the parts that lines of the script play in its cause


@cache
def entries() -> tuple[Entry, ...]:
    """Every code, in the order in which patterns are tried."""
    raw = json.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(
        Entry(
            item["code"],
            item["kind"],
            item["tier"],
            item.get("raises"),
            tuple(item.get("patterns", ())),
            item.get("generic", False),
            tuple(item.get("roles", ())),
        )
        for item in raw
    )


def entry(code: str) -> Entry | None:
    return next((item for item in entries() if item.code == code), None)


def classify(message: str) -> str:
    """The code of a message, or "" where none is known. A specific entry wins over a generic one."""
    return next(iter(find(message)), "")


def find(text: str) -> list[str]:
    """The codes whose messages occur in `text`, which may hold a whole traceback; the most specific first."""
    if len(text) > 2 * _LONG_TEXT:
        text = f"{text[:_LONG_TEXT]} {text[-_LONG_TEXT:]}"
    flat = " ".join(_LONG_WORD.sub(lambda word: word[0][-100:], text).split())  # it may have been wrapped on its way
    hits = [item for item in entries() if any(_compiled(pattern).search(flat) for pattern in item.patterns)]
    return [item.code for item in sorted(hits, key=lambda item: item.generic)]


def find_by_piece(text: str) -> list[str]:
    """The codes with a message that `text` is a piece of, if it has three words or more."""
    piece = re.sub(r"\d+", _VARIES, " ".join(text.strip("\"'`. \n").split()).lower())
    if piece.count(" ") < 2:
        return []
    return [item.code for item in entries() if any(piece in _literal(pattern) for pattern in item.patterns)]


@cache
def _literal(pattern: str) -> str:
    """A pattern's own words in lower case, with a mark for each part that varies."""
    marked = re.sub(r"\\[dw][+*]?|\[[^]]*\][+*]?|\.[+*]\??", _VARIES, pattern)
    return re.sub(r"\\(\W)", r"\1", marked).lower()


def argument_named(message: str) -> str:
    """The parameter that a message names: `weight` in "with respect to argument 'weight'"; "" for none."""
    found = re.search(r"argument '(\w+)'", message)
    return found[1] if found else ""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
