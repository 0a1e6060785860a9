"""Runs programs with mistakes that show only in several ranks, and correct ones, which get no finding.

A program is named after the code of its finding; comments mark the lines of its labels. Two processes run it, which are
forks: `tests/cli/test_rank_reports.py` starts some with `torchrun`.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.folders import PROGRAMS as ALL_PROGRAMS
from support.pages import marked
from support.ranks import run_in_ranks
from support.warm import Warm

PROGRAMS = sorted((ALL_PROGRAMS / "ranks").glob("*.py"))
FAILING = [path for path in PROGRAMS if not path.name.startswith("correct") and not path.name.endswith(".fixed.py")]
CORRECT = [path for path in PROGRAMS if path not in FAILING]
WITH_NOTES = {"collective-without-gradient--gather"}  # another finding says less about the same line
ON_FOUR = ("ddp-forward-by-module--old-name", "ddp-replicas-drift--loaded-on-one-rank", "correct--several-groups")


@pytest.mark.parametrize("path", FAILING, ids=lambda path: path.stem)
def test_the_mistake_is_named_on_its_lines(path: Path, warm: Warm) -> None:
    _, report = run_in_ranks(warm, path, 2)
    found = [each for each in report.findings if each.diagnostic.severity != "note"]
    assert [each.diagnostic.code for each in found] == [path.stem.partition("--")[0]]
    lines: dict[str, set[int]] = {}
    for label in found[0].diagnostic.labels:
        lines.setdefault(label.role, set()).add(label.span.line)
    assert lines == marked(path.read_text(encoding="utf-8"))
    assert len(report.findings) == 1 or path.stem in WITH_NOTES


@pytest.mark.parametrize("path", CORRECT, ids=lambda path: path.stem)
def test_a_correct_program_has_no_finding(path: Path, warm: Warm) -> None:
    ran, report = run_in_ranks(warm, path, 2)
    assert [each.returncode for each in ran] == [0, 0], [each.stderr for each in ran]
    assert report.findings == ()
    assert [each for each in report.differences if each.kind in ("gradient", "parameters")] == []


@pytest.mark.skipif("TENSORLENS_FOUR_RANKS" not in os.environ, reason="takes twice the processes: by hand")
@pytest.mark.parametrize("name", ON_FOUR)
def test_four_ranks(name: str, warm: Warm) -> None:
    path = next(path for path in PROGRAMS if path.stem == name)
    _, report = run_in_ranks(warm, path, 4)
    codes = [each.diagnostic.code for each in report.findings]
    assert codes == ([] if path in CORRECT else [name.partition("--")[0]])
