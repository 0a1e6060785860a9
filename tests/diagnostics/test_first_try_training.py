"""Programs by authors who had not seen the lens: each with a silent mistake in its training, or correct.

The folders `training`, `training_second` and so on of `tests/programs` have them, the authors' marks, and a proof of
each mistake. Those in `training_forms`, `training_forms_second` and so on have mistakes of the kinds that
docs/training.md lists, each in another form.
`first_try.json` has what the lens said when it saw them first; that never changes. `said.json` has the programs whose
mistake is named now: none may be lost, but for sentences that were not true, and no correct program may get a warning.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.folders import PROGRAMS
from support.warm import Warm
from support.warm_runs import WarmRuns

from tensorlens.diagnostics import report_on
from tensorlens.records.report import Report

SETS = (
    "training",
    "training_second",
    "training_third",
    "training_fourth",
    "training_fifth",
    "training_sixth",
    "training_seventh",
    "training_eighth",
    "training_ninth",
    "training_tenth",
    "training_eleventh",
    "training_twelfth",
    "training_thirteenth",
    "training_fourteenth",
    "training_fifteenth",
    "training_sixteenth",
    "training_seventeenth",
    "training_eighteenth",
    "training_nineteenth",
    "training_twentieth",
    "training_twenty_first",
    "training_twenty_second",
    "training_twenty_third",
    "training_twenty_fourth",
    "training_twenty_fifth",
    "training_twenty_sixth",
    "training_twenty_seventh",
    "training_twenty_eighth",
    "training_twenty_ninth",
    "training_thirtieth",
    "training_thirty_first",
    "training_forms",
    "training_forms_second",
    "training_forms_third",
    "training_forms_fourth",
)
SECOND_RUN = (  # found by what a second run measures
    *("spiral_flow", "enzyme_orbit", "critic_ring", "membrane_load", "cell_masks"),
    *("beat_filters", "branch_rounds", "plume_source", "plume_sources"),
    *("snake_vocoder", "swish_regressor", "yacht_drag", "winch_pilot", "brine_inversion", "kite_hover"),
)
# Named at first by sentences that were wrong about correct programs, and are gone: a mask of weights is no line that
# moves them, and numbers on `self` that are only looked at are no forgotten terms of a loss.
NOT_TRUE = {"training_eleventh": {"glyph_pruning"}, "training_forms_third": {"marble_otter"}}
# Marked as correct by its author; the warning is true: a step adds gradients that the phase before has left.
NOT_RIGHT = {"training_twenty_ninth": {"meter_stream"}}
DAILY = 8  # one in so many programs is run each time


def read(name: str, file: str) -> Any:
    return json.loads((PROGRAMS / name / file).read_text())


MARKS = {name: read(name, "marks.json") for name in SETS}
NAMED = {name: read(name, "said.json") for name in SETS}


def programs(kind: str) -> list[object]:
    """Returns (set, name) of the programs that are wrong or right."""
    found = [(each, name) for each in SETS for name in sorted(set(MARKS[each][kind]) - NOT_RIGHT.get(each, set()))]
    marks = [() if place % DAILY == 0 else pytest.mark.complete for place in range(len(found))]
    return [pytest.param(*pair, marks=mark) for pair, mark in zip(found, marks, strict=True)]


def report_of(warm: Warm, program: Path) -> Report:
    return report_on(WarmRuns(warm, program, training=True).first().trace())


def lines_of(report: Report, name: str) -> set[int]:
    labels = [label for each in report.standing_out or () for label in each.labels]
    labels += [label for each in report.diagnostics for label in each.labels]
    return {label.span.line for label in labels if Path(label.span.file).stem == name}


def lines_of_command(program: Path) -> set[int]:
    """Returns the lines that `explain --training` names, which may make a second run."""
    command = [sys.executable, "-m", "tensorlens", "explain", "--training", "--format", "json", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = json.loads(done.stdout[done.stdout.index("{\n") :])
    found = [*report["diagnostics"], *report["training"]["standing_out"]]
    return {label["line"] for each in found for label in each["labels"]}


@pytest.mark.parametrize(("folder", "name"), programs("wrong"))
def test_a_mistake_that_was_named_is_named(warm: Warm, folder: str, name: str) -> None:
    program = PROGRAMS / folder / "wrong" / f"{name}.py"
    lines = lines_of_command(program) if name in SECOND_RUN else lines_of(report_of(warm, program), name)
    assert not lines.isdisjoint(MARKS[folder]["wrong"][name]["lines"]) or name not in NAMED[folder]


@pytest.mark.parametrize(("folder", "name"), programs("right"))
def test_a_correct_program_gets_no_warning(warm: Warm, folder: str, name: str) -> None:
    report = report_of(warm, PROGRAMS / folder / "right" / f"{name}.py")
    assert report.standing_out == ()
    assert [(each.code, each.severity) for each in report.diagnostics if each.severity != "note"] == []


@pytest.mark.parametrize("folder", SETS)
def test_what_was_named_at_first_is_named_now(folder: str) -> None:
    at_first = set(read(folder, "first_try.json")["named"]) - NOT_TRUE.get(folder, set())
    assert at_first <= set(NAMED[folder]) <= set(MARKS[folder]["wrong"])


@pytest.mark.complete
@pytest.mark.parametrize(("folder", "name"), [(each, name) for each in SETS for name in sorted(MARKS[each]["wrong"])])
def test_a_mistake_is_one(folder: str, name: str) -> None:
    proof = [sys.executable, str(PROGRAMS / folder / "proofs" / f"{name}.py")]
    assert subprocess.run(proof, capture_output=True, check=False).returncode == 0
