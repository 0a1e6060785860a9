"""`explain --reference=eager`: compiled programs with wrong gradients are found, and right ones are not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.folders import PROGRAMS
from support.warm import Warm
from support.warm_runs import WarmRuns

from tensorlens.records.eager import EagerComparison
from tensorlens.records.invariants import validate
from tensorlens.records.report import Report
from tensorlens.records.trace_file import dumps, loads
from tensorlens.render import RenderOptions, render
from tensorlens.render.report.headline import eager as said
from tensorlens.trials.eager_runs import eager_report

WRONG = sorted((PROGRAMS / "compiled" / "wrong").glob("*.py"))  # named after the finding: CODE--PROGRAM.py
RIGHT = sorted((PROGRAMS / "compiled" / "right").glob("*.py"))
DAILY = {"encoder_slowed_down", "reversal_strength", "parameter_hook_after_compilation", "logging_hook_after_compilation"}

_ROLES = re.compile(r"# role: (.+)$")


def programs(found: list[Path]) -> list[object]:
    """Some every day, the others by `make fuzz`: each takes several runs, and each of these compiles."""
    marks = {True: [], False: [pytest.mark.complete]}
    return [
        pytest.param(each, id=each.stem, marks=marks[each.stem.rpartition("--")[2] in DAILY])  # type: ignore[arg-type]
        for each in found
    ]


def report_of(warm: Warm, script: Path) -> tuple[Report, EagerComparison]:
    runs = WarmRuns(warm, script)
    report = eager_report(runs, runs.first())
    assert report.trace.eager is not None
    assert validate(report.trace) == []
    assert loads(dumps(report.trace)).eager == report.trace.eager
    return report, report.trace.eager


def test_there_are_ten_of_each() -> None:
    assert (len(WRONG), len(RIGHT)) == (10, 10)


@pytest.mark.parametrize("program", programs(WRONG))
def test_a_wrong_gradient_is_found(program: Path, warm: Warm) -> None:
    report, comparison = report_of(warm, program)
    found = [each for each in report.diagnostics if each.severity == "warning"]
    assert [each.code for each in found] == [program.stem.partition("--")[0]], said(report.trace)
    assert comparison.differences
    assert comparison.in_double
    marked: dict[str, set[int]] = {}
    for number, line in enumerate(program.read_text().splitlines(), start=1):
        for role in match[1].split(", ") if (match := _ROLES.search(line)) else ():
            marked.setdefault(role, set()).add(number)
    labelled: dict[str, set[int]] = {}
    for label in found[0].labels:
        labelled.setdefault(label.role, set()).add(label.span.line)
    assert {role: labelled.get(role) for role in marked} == marked
    printed = render(report, "table", RenderOptions(width=80)).splitlines()
    begins = next(number for number, line in enumerate(printed) if line.startswith("warning["))
    assert printed[begins:].index("") <= 32


@pytest.mark.parametrize("program", programs(RIGHT))
def test_a_right_program_gets_no_finding(program: Path, warm: Warm) -> None:
    report, comparison = report_of(warm, program)
    assert report.diagnostics == ()
    assert comparison.differences == ()
    assert comparison.reason == ""
    assert len(comparison.compared) >= 1
    assert comparison.random == ("dropout" in program.stem)
    assert "agrees with a second run" in said(report.trace)
