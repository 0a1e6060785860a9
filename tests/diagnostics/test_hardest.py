"""docs/hardest.md says what the runs say."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.warm import Warm

from tools.hardest_page import COMPARED, DOCUMENT, compared


@pytest.mark.parametrize("program", COMPARED, ids=lambda program: program.stem)
def test_codes_and_lines_are_up_to_date(program: Path, warm: Warm) -> None:
    assert "\n".join(compared(program, warm).facts()) in DOCUMENT.read_text()


def test_there_are_ten() -> None:
    assert DOCUMENT.read_text().count("\n## ") == len(set(COMPARED)) == 10
