"""Runs programs whose mistake shows in how the ranks end and where their lines part, and their repaired versions.

Comments mark the lines that the report has to name.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.folders import PROGRAMS
from support.pages import marked
from support.ranks import run_in_ranks
from support.torchrun import launch
from support.warm import Warm

FOLDER = PROGRAMS / "ranks" / "statements"
FIXED = sorted(FOLDER.glob("*.fixed.py"))


def test_a_rank_that_waits_in_vain_did_not_fail_first(tmp_path: Path) -> None:
    script = (FOLDER / "hang--extra-collective.py").read_text(encoding="utf-8")
    lines = {role: line for role, (line,) in marked(script).items()}
    data = json.loads(launch(tmp_path, script, "--format", "json").stdout)
    waiting, other = data["ranks"]
    assert (waiting["ending"], waiting["last_span"]["line"]) == ("timed out", lines["waits_here"])
    assert (other["failed_first"], other["last_span"]["line"]) == (None, lines["leaves_here"])
    (said,) = data["rank_differences"]
    collective = f"`all_reduce` of [1] float32 at line {lines['waits_here']}"
    before = f"that of rank 1 ends before it, at line {lines['leaves_here']}"
    assert said["text"] == f"the record of rank 0 ends inside {collective}; {before}"
    (found,) = data["diagnostics"]
    assert (found["code"], found["ranks"]) == ("collective-timed-out", [0])


def test_the_rank_that_was_killed_failed_first_and_its_record_is_there(tmp_path: Path) -> None:
    script = (FOLDER / "victim--killed-rank.py").read_text(encoding="utf-8")
    lines = {role: line for role, (line,) in marked(script).items()}
    data = json.loads(launch(tmp_path, script, "--format", "json").stdout)
    waiting, killed = data["ranks"]
    assert (killed["ending"], killed["outcome"]) == ("failed first", "killed")
    assert killed["last_span"]["line"] == lines["waits_here"]  # of its last collective
    assert (waiting["ending"], waiting["last_span"]["line"]) == ("waited", lines["waits_here"])
    assert (data["diagnostics"], data["rank_differences"]) == ([], [])


@pytest.mark.parametrize("path", FIXED, ids=lambda path: path.stem)
def test_nothing_is_said_of_the_repaired_program(path: Path, warm: Warm) -> None:
    ran, report = run_in_ranks(warm, path, 2)
    assert [each.returncode for each in ran] == [0, 0], [each.stderr for each in ran]
    assert (report.findings, report.differences) == ((), ())
