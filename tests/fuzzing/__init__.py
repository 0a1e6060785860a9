"""Programs, files and texts made by hypothesis, and what must hold of each."""

from __future__ import annotations

PARTS = 16  # tests that `make fuzz` divides its cases among
THOROUGH = {"programs": 3_200, "trace files": 9_600, "journals": 16_000, "texts": 16_000}
_EVERYDAY = {"programs": 40, "trace files": 120}


def everyday(kind: str) -> int:
    """How many cases of a kind the everyday suite takes."""
    return _EVERYDAY.get(kind, 150)
