"""Names the page of a failing test."""

from __future__ import annotations

import hashlib
import re

_LONGEST = 120


def page_name(nodeid: str) -> str:
    """Returns a file name for a test: its id in plain characters and, so that no two are the same, a short hash."""
    plain = re.sub(r"[^\w.\-]+", "-", nodeid, flags=re.ASCII).strip("-.")[-_LONGEST:]
    return f"{plain}-{hashlib.sha256(nodeid.encode()).hexdigest()[:8]}.html"
