"""docs/how-it-works.md shows the data of a run, and names files that exist."""

from __future__ import annotations

import re

import pytest
from support.folders import ROOT

from tools import how_it_works_page


def test_the_data_is_that_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert how_it_works_page.FILE.read_text(encoding="utf-8") == how_it_works_page.document(), "make how"


def test_the_files_that_it_names_exist() -> None:
    text = how_it_works_page.FILE.read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)+\w+\.py)`", text)
    assert len(named) > 10
    assert [path for path in named if not (ROOT / "tensorlens" / path).is_file()] == []
