"""Programs, files and texts made by hypothesis, and what must hold of each."""

from __future__ import annotations

PARTS = 16  # tests that `make fuzz` divides its cases among
THOROUGH = {"programs": 3_200, "trace files": 9_600, "journals": 6_400, "command lines": 6_400, "sources": 6_400}
EVERYDAY = {"programs": 40, "trace files": 120, "journals": 60, "command lines": 150, "sources": 60}
