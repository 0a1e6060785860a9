"""The manual that `tensorlens errors` prints: the module docstring of each finding, read as text."""

from __future__ import annotations

import ast
import difflib
import re
import textwrap
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


def index() -> str:
    """Every code, how often it is met and what it means where a page tells it."""
    lines: list[str] = []
    for tier, heading in _TIERS.items():
        entries = sorted((e for e in messages.entries() if e.tier == tier), key=lambda e: e.code)
        lines += [heading, ""]
        for entry in entries:
            lines.append(f"  {entry.kind:<8} {entry.code}")
            text = page(entry.code)
            if text:
                lines += textwrap.wrap(
                    first_sentence(text),
                    _WIDTH,
                    initial_indent=_INDENT,
                    subsequent_indent=_INDENT,
                    break_long_words=False,
                )
        lines.append("")
    lines.append("tensorlens errors CODE shows a page; a pasted message or traceback finds its own.")
    return "\n".join(lines) + "\n"


def page_for(wanted: str) -> str:
    """The page of a code, or the pages that a pasted message leads to, the best first.

    Raises:
        UsageError: it is neither a code nor a message that is known.
    """
    code = wanted.strip().removeprefix("error[").removeprefix("warning[").rstrip("]:").replace("_", "-").lower()
    entry = messages.entry(code)
    if entry is not None:
        return _shown(entry)
    found = [entry for code in messages.find(wanted) if (entry := messages.entry(code)) is not None]
    if not found:
        raise UsageError(_unknown(wanted))
    specific = [entry for entry in found if not entry.generic]
    shown = specific or found
    return "\n\n".join(_shown(entry).rstrip("\n") for entry in shown) + "\n"


def _unknown(wanted: str) -> str:
    text = " ".join(wanted.split())
    if " " in text:
        return f"no page for this message: {textwrap.shorten(text, 60, placeholder=' ...')}"
    codes = [entry.code for entry in messages.entries()]
    near = difflib.get_close_matches(text.lower(), codes, n=3, cutoff=0.5)
    near += [code for code in codes if text.lower() in code and code not in near][: 3 - len(near)]
    hint = f"did you mean {' or '.join(near)}?" if near else "tensorlens errors lists the codes"
    return f"no such code: {text} ({hint})"


def _shown(entry: Entry) -> str:
    raises = f", {entry.raises}" if entry.raises else ""
    header = f"{entry.code} ({_KINDS[entry.kind]}{raises})"
    text = page(entry.code)
    body = _without_page(entry) if text is None else _wrapped(text)
    return f"{header}\n{'-' * len(header)}\n\n{body}\n"


def _wrapped(text: str) -> str:
    """A page with its prose broken to the width of a terminal; the examples stay as they are."""
    parts = re.split(r"(^```python\n.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else "\n\n".join(map(_filled, part.split("\n\n"))) for part in parts)


def _filled(paragraph: str) -> str:
    return textwrap.fill(" ".join(paragraph.split()), _WIDTH, break_long_words=False, break_on_hyphens=False)


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
