"""Text in Markdown: what others wrote is shown in it, never taken as markup."""

from __future__ import annotations

import re

from tensorlens.render.safe_text import safe


def marked(text: str) -> str:
    """`text` with its own backticks kept as code, and nothing else in it taken as markup."""
    parts = safe(text).split("`")
    if len(parts) % 2 == 0:
        return escaped(text)
    return "".join(code(part) if index % 2 else escaped(part) for index, part in enumerate(parts))


def escaped(text: str) -> str:
    """`text` with every character that Markdown would obey shown as itself."""
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", safe(text))


def code(text: str) -> str:
    """A code span of a table cell, with enough backticks around it; nothing for an empty text."""
    shown = safe(text).replace("|", "\\|")
    if not shown.strip():
        return ""
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    return f"{fence} {shown} {fence}" if len(fence) > 1 else f"`{shown}`"


def fenced(lines: list[str], language: str = "text") -> list[str]:
    """A fenced block that nothing in `lines` can close."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{language}", *lines, fence]
