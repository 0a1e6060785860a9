"""Programs as people write them: the cause is found at its distance, and correct programs get no warning."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from support.folders import CORRECT, PROGRAMS
from support.releases import is_quiet
from support.warm import Warm, comparable

from tensorlens.diagnostics import diagnose
from tensorlens.records.model import Trace
from tensorlens.records.report import Diagnostic, Report
from tensorlens.render import RenderOptions, render
from tensorlens.render.report.findings import Finding
from tensorlens.render.tables import printed

FAILING = sorted((PROGRAMS / "failing").glob("[!_]*.py"))
SILENT = sorted((PROGRAMS / "silent").glob("*.py"))  # named after the mistake: CODE--PROGRAM.py

_EXPECT = re.compile(r"expect: ([a-z0-9-]+)")
_ROLES = re.compile(r"# role: (.+)$")

MISSED: dict[str, str] = {}  # program: what the lens gets wrong about it
UNEQUAL: dict[str, str] = {}  # program: how its output differs under the lens

MOST_ROWS = 30  # of a finding at 80 columns: the cause is to be seen at a glance

Marks = dict[str, set[tuple[str, int]]]


class Runs:
    """Each program run once under the lens, and its journal read once."""

    def __init__(self, warm: Warm) -> None:
        self.plain = warm.plain
        self.traced = cache(warm.traced)


@pytest.fixture(scope="module")
def runs(warm: Warm) -> Runs:
    return Runs(warm)


def _parameters(programs: list[Path], known: dict[str, str], one_in: int = 1) -> list[object]:
    """Programs to run a test with: one in so many every day, the others by `make unchanged`."""
    found: list[object] = []
    for number, program in enumerate(programs):
        marks = [pytest.mark.xfail(reason=known[program.stem], strict=True)] if program.stem in known else []
        found.append(
            pytest.param(program, id=program.stem, marks=marks + [pytest.mark.complete] * (number % one_in > 0))
        )
    return found


def marked(program: Path) -> Marks:
    """The lines that play each part, in a program and in the helper modules beside it that it imports."""
    text = program.read_text()
    helpers = [program.with_name(f"{name}.py") for name in re.findall(r"^from (_\w+) import", text, re.M)]
    found: Marks = {}
    for file in (program, *helpers):
        for number, line in enumerate(file.read_text().splitlines(), start=1):
            match = _ROLES.search(line)
            for role in match[1].split(", ") if match else ():
                found.setdefault(role, set()).add((file.name, number))
    return found


def wrong(diagnostic: Diagnostic, marks: Marks) -> dict[str, object]:
    """The roles without a label, or with a label on a line that is not marked with them."""
    labelled: Marks = {}
    for label in diagnostic.labels:
        labelled.setdefault(label.role, set()).add((Path(label.span.file).name, label.span.line))
    return {
        role: {"marked": sorted(lines), "labelled": sorted(labelled.get(role, ()))}
        for role, lines in marks.items()
        if not labelled.get(role) or not labelled[role] <= lines
    }


@pytest.mark.parametrize("program", _parameters(FAILING, MISSED))
def test_the_mistake_is_found(program: Path, runs: Runs) -> None:
    expected = _EXPECT.search(program.read_text())
    assert expected is not None
    ran, trace = runs.traced(program)
    assert ran.returncode == 1
    errors = [diagnostic for diagnostic in diagnose(trace) if diagnostic.severity == "error"]
    assert expected[1] in {diagnostic.code for diagnostic in errors}
    found = next(error for error in errors if error.code == expected[1])
    assert wrong(found, marked(program)) == {}
    assert rows_at_80(found, trace) <= MOST_ROWS


@pytest.mark.parametrize("program", _parameters(SILENT, MISSED))
def test_a_silent_mistake_is_found_and_nothing_else(program: Path, warm: Warm) -> None:
    ran, trace = warm.compared(program)
    assert is_quiet(ran, program, warm), ran.stderr
    (warning,) = (diagnostic for diagnostic in diagnose(trace) if diagnostic.severity != "note")
    assert warning.code == program.stem.partition("--")[0]
    assert wrong(warning, marked(program)) == {}
    assert rows_at_80(warning, trace) <= MOST_ROWS


@pytest.mark.parametrize("program", _parameters(CORRECT, MISSED))
def test_a_correct_program_is_left_in_peace(program: Path, runs: Runs, warm: Warm) -> None:
    ran, trace = runs.traced(program)
    assert is_quiet(ran, program, warm), ran.stderr
    assert [d for d in diagnose(trace) if d.severity in ("error", "warning")] == []
    text = render(Report(trace, diagnose(trace)), "table", RenderOptions(height=24))
    assert text.count("\n") <= 24 or diagnose(trace)
    assert ("no problem found in" in text) == (not diagnose(trace))


def rows_at_80(diagnostic: Diagnostic, trace: Trace) -> int:
    return printed([Finding(diagnostic, trace)], 80, color=False).count("\n")


@pytest.mark.parametrize("program", _parameters(FAILING + SILENT + CORRECT, UNEQUAL, one_in=4))
def test_output_and_status_are_those_of_plain_python(program: Path, runs: Runs) -> None:
    assert comparable(runs.traced(program)[0]) == comparable(runs.plain(program))


def test_there_are_enough_programs() -> None:
    assert len(FAILING) >= 45
    assert len(SILENT) >= 10
    assert len(CORRECT) >= 26
    assert all(20 <= len(program.read_text().splitlines()) <= 90 for program in FAILING + CORRECT)


def test_what_fails_at_the_same_lines_again_and_again_is_told_once(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "weight = torch.ones(3, requires_grad=True)\n"
        "for factor in range(40):\n"
        "    result = weight.exp()\n"
        "    result.add_(factor)\n"
        "    try:\n"
        "        result.sum().backward()\n"
        "    except RuntimeError:\n"
        "        if factor == 39:\n"
        "            raise\n",
        encoding="utf-8",
    )
    ends, caught = diagnose(warm.traced(script)[1])
    assert (ends.severity, caught.severity) == ("error", "note")
    assert ends.code == caught.code == "saved-tensor-modified-inplace"
    assert not any("recorded" in note for note in ends.notes)
    assert "the same was recorded 38 more times, at the same lines" in caught.detail
