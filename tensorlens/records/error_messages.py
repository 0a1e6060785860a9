"""The one place where PyTorch's English is read: from the text of a message to the code of its page.

The patterns stand in `diagnostics/catalogue.json`, one entry a code, of this and of earlier versions of PyTorch. One
marked `generic` has a message that other mistakes share (`'NoneType' object has no attribute 'zero_'`): the facts of
the run have to confirm it. `also` holds wordings that lead a reader to a page and classify nothing in a run: those of
old versions whose words PyTorch has since given to another mistake, and warnings that hint at a silent one.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from tensorlens.paths import PACKAGE

_VARIES = "\0"
_LONG_WORD = re.compile(r"\w{200,}")  # none of PyTorch's, and slow to search
_LONG_TEXT = 50_000  # characters: its messages stand at the beginning or at the end of what is longer than two of these
_RAISED = re.compile(
    r"^[ |]*(?:\[rank\d+\]:\s*)?(?P<type>(?:\w+\.)*\w*(?:Error|Exception|Interrupt|Exit|Warning)\w*)(?=:\s|\s*$)",
    re.MULTILINE,
)
_RAISED_WITHIN = re.compile(r"\b(?P<type>\w+(?:Error|Exception|Warning)): ")  # of a traceback on one line
_FOREIGN = {
    "a shape error": r"shapes cannot be multiplied|[sS]ize mismatch|The size of tensor a \(\d+\) must match"
    r"|is invalid for input of size|[sS]izes of tensors must match|expects each tensor to be equal size"
    r"|Given groups=.*weight of size|The expanded size of the tensor|Expected input batch_size"
    r"|Dimension out of range|Expected size for first two dimensions|shape mismatch|[Ee]xpected \d+D .*input"
    r"|should contain \d+ elements|inconsistent tensor size|not broadcastable",
    "a dtype error": r"[eE]xpected scalar type \w+ but|must have the same dtype|to have the same dtype"
    r"|[eE]xpected object of (scalar )?type|not implemented for '\w+'|Found dtype \w+ but expected"
    r"|to have one of the following scalar types|should be the same",
    "a device error": r"[eE]xpected all tensors to be on the same device|[eE]xpected object of (backend|device type)",
    "an index error": r"index out of range in self|is out of bounds|index \d+ is out of",
    "a lack of memory": r"out of memory|can't allocate memory",
    "a mismatch of saved and present parameters": r"Error\(s\) in loading state_dict",
    "an error inside a CUDA kernel": r"CUDA error",
}  # what is looked up here by mistake
_FILE = PACKAGE / "diagnostics" / "catalogue.json"


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of a code: `tier` 1 is met every day, 3 hardly ever; `raises` names the exception or warning.
    `see` names what else to read: `run detach`, `compare detach clone`, `errors anomaly-nan`."""

    code: str
    kind: Literal["error", "warning", "silent"]
    tier: int
    raises: str | None
    patterns: tuple[str, ...]
    generic: bool
    roles: tuple[str, ...]  # the parts that lines of the script play in its cause
    message: str  # PyTorch's own words, of one example; "" where it says nothing
    also: tuple[str, ...]
    see: tuple[str, ...]


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
            item.get("message", ""),
            tuple(item.get("also", ())),
            tuple(item.get("see", ())),
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


def find_for_reader(text: str) -> list[str]:
    """The codes whose pages answer a pasted text, the best first: of a traceback, its last exception decides."""
    said = last_said(text)
    flat = " ".join(said.split())
    also = [item.code for item in entries() if any(_compiled(pattern).search(flat) for pattern in item.also)]
    return list(dict.fromkeys([*also, *(find(said) or ([] if also else find_by_piece(said)))]))


def last_said(text: str) -> str:
    """The last exception of a text that holds tracebacks, with all lines of its message; else the text itself."""
    if "Traceback (most recent call last)" not in text:
        return text
    raised = list(_RAISED.finditer(text)) or list(_RAISED_WITHIN.finditer(text))
    return text[raised[-1].start("type") :].strip() if raised else text


def foreign(text: str) -> str:
    """What kind of error a message tells of that is not autograd's, "a shape error"; "" where it is not known."""
    flat = " ".join(last_said(text)[: 2 * _LONG_TEXT].split())
    return next((kind for kind, pattern in _FOREIGN.items() if _compiled(pattern).search(flat)), "")


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
