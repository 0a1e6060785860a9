"""Checks that docs/silent.md lists every silent mistake, and agrees with the finders."""

from __future__ import annotations

import re

import pytest
from support.folders import DOCS

from tensorlens.records import error_messages

_ROW = re.compile(r"^\| `([a-z0-9-]+)` \| (warning|note|fact) \| .+ \|$", re.M)
ROWS = _ROW.findall((DOCS / "silent.md").read_text())


def test_every_silent_mistake_is_listed_once() -> None:
    assert [code for code, _ in ROWS] == sorted(e.code for e in error_messages.entries() if e.kind == "silent")


@pytest.mark.parametrize(("code", "told"), ROWS)
def test_what_is_found_has_a_finder(code: str, told: str) -> None:
    entry = error_messages.entry(code)
    assert entry is not None
    assert entry.finder == (told != "fact")
