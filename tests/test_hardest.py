"""docs/hardest.md says what the runs say."""

from __future__ import annotations

from pathlib import Path

import pytest
from hardest import DOCUMENT, PROGRAMS, compared
from warm import Warm


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_codes_and_lines_are_up_to_date(program: Path, warm: Warm) -> None:
    assert "\n".join(compared(program, warm).facts()) in DOCUMENT.read_text()


def test_there_are_ten() -> None:
    assert DOCUMENT.read_text().count("\n## ") == len(set(PROGRAMS)) == 10
