"""Counts the comparisons: tests report them, `make unchanged` keeps them in `counts.txt`, docs/trust.md shows them."""

from __future__ import annotations

import os
import re
from pathlib import Path

KEPT = Path(__file__).parent / "counts.txt"
_LINE = re.compile(r"(\d+) (.+), (\d+) samples, (\d+) without determined values, (\d+) differences")
Counts = tuple[int, ...]  # tried, samples, those whose values plain runs don't agree on, differences


def tell(group: str, counts: Counts, complete: bool) -> str:
    """Writes the counts as a line of the file of `make unchanged`, if everything was compared."""
    text = f"{counts[0]} {group}, {counts[1]} samples, {counts[2]} without determined values, {counts[3]} differences"
    kept = os.environ.get("UNCHANGED_COUNTS")
    if kept and complete:
        with Path(kept).open("a", encoding="utf-8") as file:
            file.write(text + "\n")
    return text


def kept(text: str) -> dict[str, Counts]:
    """Adds up the counts of each group in the text of `counts.txt`."""
    found: dict[str, Counts] = {}
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        if match:
            group = match[2]
            numbers = [int(match[part]) for part in (1, 3, 4, 5)]
            found[group] = tuple(map(sum, zip(found.get(group, (0,) * 4), numbers, strict=True)))
    return found
