"""The manual that `tensorlens errors` prints: the module docstring of each finding, read as text."""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tensorlens import messages
from tensorlens.errors import UsageError
from tensorlens.messages import Entry

_FOLDER = Path(__file__).parent
_TIERS = {1: "Met every day", 2: "Met now and then", 3: "Hardly ever met"}
_KINDS = {"error": "error", "warning": "warning", "silent": "silent mistake"}
_WIDTH = 80
_INDENT = " " * 11


def page(code: str) -> str | None:
    """The page of a code, without its header line; None where none is written yet."""
    path = _FOLDER / f"{code.replace('-', '_')}.py"
    if messages.entry(code) is None or not path.is_file():
        return None
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))


@cache
def codes_with_page() -> tuple[str, ...]:
    return tuple(entry.code for entry in messages.entries() if page(entry.code))


def first_sentence(text: str) -> str:
    """What happened, in one line: the first sentence of a page."""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.!?])\s+(?=[A-Z`])", paragraph)[0]


def summary(code: str) -> str:
    """The first sentence of a page, or "" where none is written."""
    text = page(code)
    return first_sentence(text) if text else ""


def index(width: int = _WIDTH) -> str:
    """Every code, how often it is met and what it means where a page tells it."""
    lines: list[str] = []
    for tier, heading in _TIERS.items():
        entries = sorted((e for e in messages.entries() if e.tier == tier), key=lambda e: e.code)
        lines += [heading, ""]
        for entry in entries:
            lines.append(f"  {entry.kind:<8} {entry.code}")
            lines += textwrap.wrap(
                summary(entry.code), width, initial_indent=_INDENT, subsequent_indent=_INDENT, break_long_words=False
            )
        lines.append("")
    lines.append(_filled("tensorlens errors CODE shows a page; a pasted message or traceback finds its own.", width))
    return "\n".join(lines) + "\n"


def look_up(wanted: str) -> list[Entry]:
    """What a code or a pasted message means, the best first.

    Raises:
        UsageError: it is neither a code nor a message that is known.
    """
    code = wanted.strip().removeprefix("error[").removeprefix("warning[").rstrip("]:").replace("_", "-").lower()
    entry = messages.entry(code)
    if entry is not None:
        return [entry]
    found = [
        entry
        for code in messages.find(wanted) or messages.find_by_piece(wanted)
        if (entry := messages.entry(code)) is not None
    ]
    if not found:
        raise UsageError(_unknown(wanted))
    return [entry for entry in found if not entry.generic] or found


def page_for(wanted: str, width: int = _WIDTH) -> str:
    """The page of a code, or the pages that a pasted message leads to, the best first."""
    return shown(look_up(wanted), width)


def shown(entries: Sequence[Entry], width: int = _WIDTH) -> str:
    """Pages as plain text, one after the other."""
    return "\n".join(_titled(entry, width) for entry in entries)


def body(entry: Entry) -> str:
    """The page of an entry, or what is known where nobody has written one."""
    return page(entry.code) or _without_page(entry)


def _unknown(wanted: str) -> str:
    text = " ".join(wanted.split())
    if " " in text:
        message = textwrap.shorten(text, 60, placeholder=" ...")
        return f"no page for this message: {message} (tensorlens errors lists all that there are)"
    codes = [entry.code for entry in messages.entries()]
    near = difflib.get_close_matches(text.lower(), codes, n=3, cutoff=0.5)
    near += [code for code in codes if text.lower() in code and code not in near][: 3 - len(near)]
    either = " or ".join(filter(None, (", ".join(near[:-1]), *near[-1:])))
    hint = f"did you mean {either}?" if near else "tensorlens errors lists the codes"
    return f"no such code: {text} ({hint})"


def _titled(entry: Entry, width: int) -> str:
    raises = f", {entry.raises}" if entry.raises else ""
    header = f"{entry.code} ({_KINDS[entry.kind]}{raises})"
    return f"{header}\n{'-' * len(header)}\n\n{_wrapped(body(entry), width)}\n"


def _wrapped(text: str, width: int) -> str:
    """A page with its prose broken to the width of a terminal; the examples stay as they are."""
    parts = re.split(r"(^```python\n.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(
        part if part.startswith("```") else "\n\n".join(_filled(paragraph, width) for paragraph in part.split("\n\n"))
        for part in parts
    )


def _filled(paragraph: str, width: int) -> str:
    if paragraph.startswith("    "):
        return paragraph
    return textwrap.fill(" ".join(paragraph.split()), width, break_long_words=False, break_on_hyphens=False)


def _without_page(entry: Entry) -> str:
    """What is known where nobody has written a page."""
    if entry.kind == "silent":
        return (
            "No page is written for this mistake yet. PyTorch does not report it: a program runs on with wrong numbers."
        )
    lines = [f"No page is written for this {entry.kind} yet. It is told by PyTorch's message, which matches:", ""]
    lines += [f"    {pattern}" for pattern in entry.patterns] or ["    (no message is known)"]
    if entry.generic:
        lines += ["", "Other mistakes have the same message: only the facts of a run can tell them apart."]
    return "\n".join(lines)
