"""Names the folders of the files that tests read."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent.parent
ROOT = TESTS.parent
DOCS = ROOT / "docs"
PROGRAMS = TESTS / "programs"
DATA = TESTS / "data"
CORRECT = sorted((PROGRAMS / "correct").glob("[!_]*.py"))
