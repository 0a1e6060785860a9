"""Reads the examples of the manual's pages, and the lines that they mark."""

from __future__ import annotations

import re
from functools import cache

from tensorlens.diagnostics import manual
from tensorlens.paths import PACKAGE


def fence(code: str, heading: str) -> str:
    """Returns the one runnable example below a heading of a page."""
    text = manual.page(code)
    below = re.findall(rf"^## {heading}\n\n```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert len(below) == 1, f"{code} has {len(below)} examples below {heading}"
    return str(below[0])


def marked(example: str) -> dict[str, set[int]]:
    """Returns role -> the lines with a trailing comment that names it."""
    lines: dict[str, set[int]] = {}
    for number, line in enumerate(example.splitlines(), 1):
        comment = line.rpartition("  # ")[2] if "  # " in line else ""
        for role in re.findall(r"\b\w+_here\b", comment):
            lines.setdefault(role, set()).add(number)
    return lines


@cache
def untested() -> dict[str, str]:
    """Returns code -> why its examples cannot run here, for the pages whose front matter says so."""
    pages = (PACKAGE / "diagnostics").rglob("*.md")
    found = ((page, re.search('^untested = "(.*)"$', page.read_text(encoding="utf-8"), re.M)) for page in pages)
    return {page.stem.replace("_", "-"): reason[1] for page, reason in found if reason is not None}
