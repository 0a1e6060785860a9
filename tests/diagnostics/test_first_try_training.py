"""Programs by an author who had not seen the lens: 40 with a silent mistake in their training, 40 correct ones.

`tests/programs/training` has them, the author's marks, and a proof of each mistake. `first_try.json` has what the lens
said when it saw them first; that never changes. `said.json` has the programs whose mistake is named now: none may be
lost, and no correct program may get a warning.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.folders import TESTS
from support.warm import Warm
from support.warm_runs import WarmRuns

from tensorlens.diagnostics import report_on
from tensorlens.records.report import Report

FOLDER = TESTS / "programs" / "training"
MARKS = json.loads((FOLDER / "marks.json").read_text())
NAMED = json.loads((FOLDER / "said.json").read_text())
DAILY = 8  # one in so many programs is run each time


def programs(kind: str) -> list[object]:
    names = sorted(MARKS[kind])
    marks = [() if place % DAILY == 0 else pytest.mark.complete for place in range(len(names))]
    return [pytest.param(name, marks=mark) for name, mark in zip(names, marks, strict=True)]


def report_of(warm: Warm, kind: str, name: str) -> Report:
    runs = WarmRuns(warm, FOLDER / kind / f"{name}.py", training=True)
    return report_on(runs.first().trace())


@pytest.mark.parametrize("name", programs("wrong"))
def test_a_mistake_that_was_named_is_named(warm: Warm, name: str) -> None:
    report = report_of(warm, "wrong", name)
    labels = [label for each in report.standing_out or () for label in each.labels]
    labels += [label for each in report.diagnostics for label in each.labels]
    lines = {label.span.line for label in labels if Path(label.span.file).stem == name}
    assert not lines.isdisjoint(MARKS["wrong"][name]["lines"]) or name not in NAMED


@pytest.mark.parametrize("name", programs("right"))
def test_a_correct_program_gets_no_warning(warm: Warm, name: str) -> None:
    report = report_of(warm, "right", name)
    assert [(each.code, each.severity) for each in report.diagnostics if each.severity != "note"] == []


@pytest.mark.complete
@pytest.mark.parametrize("name", sorted(MARKS["wrong"]))
def test_a_mistake_is_one(name: str) -> None:
    proof = [sys.executable, str(FOLDER / "proofs" / f"{name}.py")]
    assert subprocess.run(proof, capture_output=True, check=False).returncode == 0
