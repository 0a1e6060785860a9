"""Reads PyTorch's messages: finds the code that a message belongs to, and with it the page.

The patterns come from the front matter of the pages, `diagnostics/FAMILY/CODE.md`, through the index `error_index.json`
(written by `make index`). They cover this version of PyTorch and earlier ones. A page marked `generic` has a message
that other mistakes share (`'NoneType' object has no attribute 'zero_'`): the facts of the run have to confirm it.

The patterns in `also` only lead a reader to a page; they classify nothing in a run. They match old messages whose words
PyTorch now uses for another mistake, and warnings that hint at a silent mistake.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from tensorlens.paths import PACKAGE

_VARIES = "\0"
_LONG_WORD = re.compile(r"\w{200,}")  # slow to search, and in no message of PyTorch
_LONG_TEXT = 50_000  # characters; of a longer text only this much is searched at each end
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
}  # errors that are not autograd's: kind -> pattern of the messages
INDEX = PACKAGE / "records" / "error_index.json"


@dataclass(frozen=True, slots=True)
class FindingText:
    """The text of a finding, as templates with the fields of `diagnostics.shared.rejected`.

    `when` names a condition. It confirms the finding if other mistakes share PyTorch's message. `harmless` is a
    condition under which PyTorch warns of what does no harm, and the title and the reason of the note that says so.
    """

    title: str
    why: str
    help: tuple[str, ...]
    when: str = ""
    help_at: tuple[str, ...] = ()  # for each help, the role of the line that it changes; "": none
    detail: str = ""  # node names and versions, for a reader who knows autograd
    edits: tuple[str, ...] = ()  # for each help, the name of the function that makes its edits; "": none
    harmless: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Entry:
    """The front matter of a page.

    `tier` 1 is met every day, 3 hardly ever. `raises` names the exception or warning. `see` names what else to read:
    `run detach`, `compare detach clone`, `errors anomaly-nan`.
    """

    code: str
    family: str  # the folder of the page
    kind: Literal["error", "warning", "silent"]
    tier: int
    raises: str | None
    patterns: tuple[str, ...]
    generic: bool
    roles: tuple[str, ...]  # the parts that lines play in its cause; some with a variant: "modified_here:hook"
    message: str  # PyTorch's own words, of one example; "" for a silent mistake
    also: tuple[str, ...]  # patterns that lead a reader to this page, and that classify nothing in a run
    see: tuple[str, ...]
    summary: str  # the first sentence of the page
    finder: bool  # a Python module beside the page searches for the cause
    order: int  # the place of a silent mistake among the silent ones of a report
    ranks: int  # its example is run by as many ranks of a distributed run; 0: by one process
    finding: FindingText | None  # for a cause that needs no search

    @property
    def compares_ranks(self) -> bool:
        """Returns whether the finder compares the traces of several ranks."""
        return self.family == "distributed" and self.finder

    @property
    def stem(self) -> str:
        """The name of the page's file without its suffix, and of its finder."""
        return self.code.replace("-", "_")


@cache
def entries() -> tuple[Entry, ...]:
    """Returns the entries of all codes, sorted by family and name."""
    return tuple(_entry(item) for item in json.loads(INDEX.read_text(encoding="utf-8")))


def _entry(item: dict[str, Any]) -> Entry:
    return Entry(
        item["code"],
        item["family"],
        item["kind"],
        item["tier"],
        item.get("raises"),
        tuple(item.get("patterns", ())),
        item.get("generic", False),
        tuple(item["roles"]),
        item.get("message", ""),
        tuple(item.get("also", ())),
        tuple(item.get("see", ())),
        item["summary"],
        item.get("finder", False),
        item.get("order", 0),
        item.get("ranks", 0),
        _finding_text(item) if "title" in item else None,
    )


def _finding_text(item: dict[str, Any]) -> FindingText:
    return FindingText(
        item["title"],
        item["why"],
        tuple(item["help"]),
        item.get("when", ""),
        tuple(item.get("help_at", ())),
        item.get("detail", ""),
        tuple(item.get("edits", ())),
        tuple(item.get("harmless", ())),
    )


@cache
def _by_code() -> dict[str, Entry]:
    return {item.code: item for item in entries()}


def entry(code: str) -> Entry | None:
    """Returns the entry of a code; None if there is no such code, as a trace file may contain any text."""
    return _by_code().get(code)


def classify(message: str) -> str:
    """Returns the code of a message, or "" for an unknown one. A specific entry wins over a generic one."""
    return next(iter(find(message)), "")


def find(text: str) -> list[str]:
    """Finds the codes whose messages occur in `text`, which may hold a whole traceback; the generic ones last."""
    if len(text) > 2 * _LONG_TEXT:
        text = f"{text[:_LONG_TEXT]} {text[-_LONG_TEXT:]}"
    flat = " ".join(_LONG_WORD.sub(lambda word: word[0][-100:], text).split())  # a pasted text may be wrapped
    hits = [item for item in entries() if any(_compiled(pattern).search(flat) for pattern in item.patterns)]
    return [item.code for item in sorted(hits, key=lambda item: item.generic)]


def find_for_reader(text: str) -> list[str]:
    """Finds the codes whose pages answer a pasted text, the best first. In a traceback only the last exception
    counts."""
    said = last_said(text)
    flat = " ".join(said.split())
    also = [item.code for item in entries() if any(_compiled(pattern).search(flat) for pattern in item.also)]
    return list(dict.fromkeys([*also, *(find(said) or ([] if also else find_by_piece(said)))]))


def last_said(text: str) -> str:
    """Returns the last exception in a text with tracebacks, and all lines of its message; the whole text if it has
    none."""
    if "Traceback (most recent call last)" not in text:
        return text
    raised = list(_RAISED.finditer(text)) or list(_RAISED_WITHIN.finditer(text))
    return text[raised[-1].start("type") :].strip() if raised else text


def foreign(text: str) -> str:
    """Returns the kind of an error that is not autograd's, such as "a shape error"; "" for any other text."""
    flat = " ".join(last_said(text)[: 2 * _LONG_TEXT].split())
    return next((kind for kind, pattern in _FOREIGN.items() if _compiled(pattern).search(flat)), "")


def find_by_piece(text: str) -> list[str]:
    """Finds the codes whose message contains `text`, if `text` has three words or more."""
    piece = re.sub(r"\d+", _VARIES, " ".join(text.strip("\"'`. \n").split()).lower())
    if piece.count(" ") < 2:
        return []
    return [item.code for item in entries() if any(piece in _literal(pattern) for pattern in item.patterns)]


@cache
def _literal(pattern: str) -> str:
    """Returns the fixed words of a pattern in lower case, with a mark for each part that varies."""
    marked = re.sub(r"\\[dw][+*]?|\[[^]]*\][+*]?|\.[+*]\??", _VARIES, pattern)
    return re.sub(r"\\(\W)", r"\1", marked).lower()


def argument_named(message: str) -> str:
    """Returns the parameter that a message names, such as `weight` in "with respect to argument 'weight'"; else ""."""
    found = re.search(r"argument '(\w+)'", message)
    return found[1] if found else ""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
