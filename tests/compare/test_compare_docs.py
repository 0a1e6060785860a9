"""Checks that the program does what docs/compare.md says."""

from __future__ import annotations

import re

import pytest
from support.folders import DOCS
from support.probing import probe

from tensorlens.compare import list_probes

PAGE = (DOCS / "compare.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]


def test_the_groups_of_rows_are_in_order() -> None:
    groups = [each.group for each in list_probes()]
    assert list(dict.fromkeys(groups)) == ["result", "graph", "writing", "cost"]
    assert list_probes()[0].name == "runs"


def test_the_rows_that_the_page_explains_are_rows() -> None:
    labels = {each.label for each in list_probes()}
    assert {row[0] for row in ROWS if row[0].endswith(("backward", "after"))} <= labels


@pytest.mark.parametrize(
    ("operand", "call"),
    [
        pair
        for row in ROWS
        if len(row) == 3 and row[2].startswith("`")
        for pair in zip(re.findall("`([^`]+)`", row[1]), re.findall("`([^`]+)`", row[2]), strict=False)
        if not pair[0].endswith(".py:first") and pair[0].strip('"') != pair[1]
    ],
)
def test_the_operands_of_the_page_run_as_it_says(operand: str, call: str) -> None:
    ran = probe(operand.strip('"'), "clone").operands[0].call
    assert ran == call or operand.startswith('"') or call.startswith("with ")
