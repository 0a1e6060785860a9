"""Reads the manual's pages, and finds the page that a code or a pasted message means."""

from __future__ import annotations

import difflib
import re
import textwrap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tensorlens.errors import UsageError
from tensorlens.records import error_messages
from tensorlens.records.error_messages import Entry

_FOLDER = Path(__file__).parent
MOST_OFTEN = tuple(
    """
    saved-tensor-modified-inplace element-does-not-require-grad backward-through-freed-graph leaf-modified-inplace
    numpy-on-requires-grad non-scalar-implicit-grad none-grad-attribute nonleaf-grad-access copy-construct-from-tensor
    gradient-accumulates-without-zero-grad detach-shares-memory view-shares-memory running-total-keeps-graph-alive
    optimizer-empty-parameter-list optimize-nonleaf parameter-not-registered view-of-leaf-modified-inplace
    unused-input-in-grad input-does-not-require-grad branch-detached frozen-parameter-still-updated
    eval-mode-still-records broadcast-in-loss scalar-conversion-of-requires-grad integer-requires-grad
    set-requires-grad-on-nonleaf assign-tensor-to-parameter deepcopy-nonleaf none-grad-arithmetic
    leaf-rebound-to-nonleaf no-grad-write-not-in-gradient optimizer-holds-replaced-parameter indexing-makes-a-copy
    state-dict-aliases-parameters update-rebinds-loop-variable backward-on-non-tensor zero-grad-after-backward
    backward-not-called optimizer-step-not-called anomaly-nan anomaly-forward-traceback
    nan-gradient-from-unselected-branch infinite-or-nan-gradient-at-boundary detached-loss-made-to-require-grad
    zero-gradient-operation inference-tensor-saved inference-tensor-inplace multi-output-view-modified-inplace
    no-grad-view-modified-inplace unversioned-write-to-saved-tensor write-to-overlapping-memory
    retain-grad-without-requires-grad hook-on-tensor-without-grad checkpoint-use-reentrant-missing
    checkpoint-no-input-requires-grad custom-function-view-modified-inplace invalid-gradient-shape
    module-backward-hook-no-input-grad loss-term-is-constant requires-grad-set-on-module
    """.split()
)
"""The codes of tier 1, the most frequent first. The order is an estimate, not a count."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The pages for a code or a pasted message; `remark` is shown before them."""

    entries: tuple[Entry, ...]
    remark: str = ""


def most_often_first(entry: Entry) -> tuple[int, int, str]:
    """Returns a sort key that puts the codes that users meet most often first."""
    rank = MOST_OFTEN.index(entry.code) if entry.code in MOST_OFTEN else len(MOST_OFTEN)
    return entry.tier, rank, entry.code


def families() -> list[str]:
    return sorted({entry.family for entry in error_messages.entries()})


@cache
def page(code: str) -> str:
    """Returns the sections of a page as Markdown, without its front matter, title and message."""
    known = error_messages.entry(code)
    assert known is not None, code
    text = (_FOLDER / known.family / f"{known.stem}.md").read_text(encoding="utf-8")
    return text[text.index("\n## ") + 1 :].rstrip()


def sections(text: str) -> dict[str, str]:
    """Splits a page at its headings into a dict: heading -> the text below it."""
    headings = list(re.finditer(r"^## (.*)\n+", text, re.MULTILINE))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    return {heading[1]: text[heading.end() : end].rstrip() for heading, end in zip(headings, ends, strict=True)}


def first_sentence(text: str) -> str:
    """Returns the first sentence of a text, on one line."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", paragraph)[0]


def look_up(wanted: str) -> Answer:
    """Finds the pages of a code or a pasted message, the best first.

    Raises:
        UsageError: neither a code nor a known message.
    """
    code = wanted.strip().removeprefix("error[").removeprefix("warning[").rstrip("]:").replace("_", "-").lower()
    entry = error_messages.entry(code)
    if entry is not None:
        return Answer((entry,))
    codes = error_messages.find_for_reader(wanted)
    matching = [entry for code in codes if (entry := error_messages.entry(code)) is not None]
    specific = tuple(entry for entry in matching if not entry.generic)
    foreign = error_messages.foreign(wanted)
    if foreign and not specific:
        return Answer((), _not_autograd(foreign, wanted, matching))
    if not matching:
        raise UsageError(_unknown(wanted))
    return Answer(specific or tuple(matching), "" if specific else _GENERIC)


_GENERIC = (
    "Other mistakes have the same message. To see whether this page is about yours, run "
    "`tensorlens explain your_script.py`."
)


def _not_autograd(kind: str, wanted: str, matching: list[Entry]) -> str:
    """Writes the answer to a message that is not autograd's. `matching` are autograd errors that can have the same
    message."""
    text = (
        f"This is not an autograd error: it is {kind}.\n\n    {_quoted(error_messages.last_said(wanted), 76)}\n\n"
        "The manual is about gradients, graphs and shared memory only. `tensorlens explain your_script.py` names the "
        "failing line and shows where the tensors in it were made, with their shapes and dtypes."
    )
    if matching:
        pages = " or ".join(f"`tensorlens errors {entry.code}`" for entry in matching)
        text += f"\n\nIf `backward` raised it, see {pages}."
    return text


def _quoted(text: str, limit: int) -> str:
    return textwrap.shorten(" ".join(text.split()), limit, placeholder=" ...")


def _unknown(wanted: str) -> str:
    text = " ".join(wanted.split())
    if " " in text:
        said = _quoted(error_messages.last_said(wanted), 70)
        return f"no page for this message: {said} (tensorlens errors --all lists the codes)"
    codes = [entry.code for entry in error_messages.entries()]
    near = difflib.get_close_matches(text.lower(), codes, n=3, cutoff=0.5)
    near += [code for code in codes if text.lower() in code and code not in near][: 3 - len(near)]
    either = " or ".join(filter(None, (", ".join(near[:-1]), *near[-1:])))
    hint = f"did you mean {either}?" if near else "tensorlens errors lists the codes"
    return f"no such code: {text} ({hint})"
