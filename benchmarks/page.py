"""Puts measured sections into docs/benchmarks.md, and keeps what was not measured or is written by hand."""

from __future__ import annotations

import re
from collections.abc import Iterable

_HEADINGS = re.compile(r"^(?=## )", re.MULTILINE)


def with_sections(page: str, sections: Iterable[str], head: str | None = None) -> str:
    """Returns a page in which each section replaces that of its heading. A new one follows the one given before it.

    `head` replaces what precedes the first section.
    """
    before, *parts = _HEADINGS.split(page)
    place = len(parts)
    for section in sections:
        headings = [_heading(part) for part in parts]
        if _heading(section) in headings:
            place = headings.index(_heading(section))
            parts[place] = section
        else:
            parts.insert(place, section)
        place += 1
    return "\n\n".join(part.strip() for part in (head or before, *parts) if part.strip()) + "\n"


def _heading(section: str) -> str:
    return section.partition("\n")[0]
