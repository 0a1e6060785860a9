"""`explain --reference=eager`: compiled programs with wrong gradients are found, and right ones are not."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
from support.folders import DOCS, PROGRAMS
from support.pages import fence
from support.warm import Warm
from support.warm_runs import WarmRuns

from tensorlens.records.eager import EagerComparison
from tensorlens.records.invariants import validate
from tensorlens.records.report import Report
from tensorlens.records.trace_file import dumps, loads
from tensorlens.render import RenderOptions, render
from tensorlens.render.report.headline import eager as said
from tensorlens.render.report.json import to_dict
from tensorlens.trials.eager_runs import eager_report

WRONG = sorted((PROGRAMS / "compiled" / "wrong").glob("*.py"))  # named after the finding: CODE--PROGRAM.py
RIGHT = sorted((PROGRAMS / "compiled" / "right").glob("*.py"))
DAILY = ("steered_activations", "annealed_constant", "parameter_hook_after_compilation", "step_in_backward")

MOST_ROWS = 30  # of a finding at 80 columns
_ROLES = re.compile(r"# role: (.+)$")


def programs(found: list[Path]) -> list[object]:
    """Some every day, the others by `make fuzz`: each takes several runs, and each of these compiles."""
    marks: dict[bool, list[pytest.MarkDecorator]] = {True: [], False: [pytest.mark.complete]}
    return [pytest.param(each, id=each.stem, marks=marks[each.stem.rpartition("--")[2] in DAILY]) for each in found]


def report_of(warm: Warm, script: Path) -> tuple[Report, EagerComparison]:
    runs = WarmRuns(warm, script)
    report = eager_report(runs, runs.first())
    assert report.trace.eager is not None
    assert validate(report.trace) == []
    assert loads(dumps(report.trace)).eager == report.trace.eager
    jsonschema.validate(to_dict(report, RenderOptions()), json.loads((DOCS / "report.schema.json").read_text()))
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
    assert printed[begins:].index("") <= MOST_ROWS
    guards = [each for each in found[0].fixes if "skip_nnmodule_hook_guards" in each.title]
    assert len(guards) == ("hook-added" in program.stem and "all_modules" not in program.stem)


@pytest.mark.parametrize("program", programs(RIGHT))
def test_a_right_program_gets_no_finding(program: Path, warm: Warm) -> None:
    report, comparison = report_of(warm, program)
    assert report.diagnostics == ()
    assert comparison.differences == ()
    assert comparison.reason == ""
    assert len(comparison.compared) >= 1
    assert comparison.random == ("dropout" in program.stem)
    assert "agrees with a second run" in said(report.trace)


HOOK = "model[0].register_forward_hook(halve)  # hook_registered_here\n"
CALL = "compiled(data).mean().backward()  # called_here\n"
HELPS = {  # a help -> the page's example with it
    "before": lambda text: text.replace(CALL, "").replace(HOOK, HOOK + CALL),
    "reset": lambda text: text.replace(HOOK, HOOK + "import torch._dynamo\ntorch._dynamo.reset()\n"),
    "guards": lambda text: "import torch._dynamo\ntorch._dynamo.config.skip_nnmodule_hook_guards = False\n" + text,
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.complete) for name in HELPS])
def test_each_help_against_a_late_hook_cures(name: str, warm: Warm, tmp_path: Path) -> None:
    example = fence("hook-added-after-compile", "Fails")
    script = tmp_path / "program.py"
    script.write_text(HELPS[name](example))
    assert script.read_text() != example
    report, comparison = report_of(warm, script)
    assert report.diagnostics == ()
    assert (len(comparison.compared), comparison.differences, comparison.reason) == (2, (), "")


# --- what decides nothing -------------------------------------------------------------------------------------------


def test_a_program_that_does_not_repeat_itself_decides_nothing(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import os, torch\nweight = torch.ones(3, requires_grad=True)\n"
        "data = torch.tensor([float(byte) for byte in os.urandom(3)])\n"
        "fast = torch.compile(lambda x: (weight * x).sum(), backend='eager')\nfast(data).backward()\n"
    )
    report, comparison = report_of(warm, script)
    assert report.diagnostics == ()
    assert comparison == EagerComparison(
        reason="the program does not repeat itself: two eager runs have different gradients"
    )


def test_a_program_that_starts_from_other_weights_decides_nothing(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import os, torch\nweight = torch.tensor([float(byte) for byte in os.urandom(3)], requires_grad=True)\n"
        "fast = torch.compile(lambda x: (weight * weight * x).sum(), backend='eager')\nfast(torch.ones(3)).backward()\n"
    )
    report, comparison = report_of(warm, script)
    assert report.diagnostics == ()
    assert comparison == EagerComparison(reason="a leaf has other values in one of the two runs before this pass")


def test_without_compiled_code_there_is_no_second_run(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import torch\ntorch.ones(3, requires_grad=True).sum().backward()\n")
    runs = WarmRuns(warm, script)
    report = eager_report(runs, runs.first())
    assert runs.count == 1
    assert said(report.trace) == "eager: nothing was compared: nothing that `torch.compile` compiled was called"


# --- a program that raises ------------------------------------------------------------------------------------------

RAISES = """\
import torch

weight, data = torch.ones(3, requires_grad=True), torch.ones(3)


@torch.compile(backend="BACKEND", fullgraph=True)
def loss_of(x):
    BODY


loss = loss_of(data)
loss.backward()
"""
MUTATIONS = {  # backend, body -> code and line of the first label
    "leaf": ("eager", "weight.mul_(2)\n    return (weight * x).sum()", "leaf-modified-inplace", 8),
    "saved": (
        "aot_eager",
        "y = (weight * x).sigmoid()\n    z = y * 2\n    y.add_(1)\n    return z.sum()",
        "saved-tensor-modified-inplace",
        10,
    ),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_an_early_error_is_explained_by_the_eager_run(name: str, warm: Warm, tmp_path: Path) -> None:
    backend, body, code, line = MUTATIONS[name]
    script = tmp_path / "program.py"
    script.write_text(RAISES.replace("BACKEND", backend).replace("BODY", body))
    report, comparison = report_of(warm, script)
    first = report.diagnostics[0]
    assert (first.code, first.severity, first.labels[0].span.line) == (code, "error", line)
    assert first.notes[0].startswith("found in a second run that compiles nothing, which raises RuntimeError at prog")
    assert comparison.raised.startswith("it raises too, RuntimeError at program.py:")
    assert "uncaught-exception" not in {each.code for each in report.diagnostics}


def test_an_error_of_compilation_alone(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    body = "return (weight * x).sum() if x.sum() > 0 else weight.sum()"
    script.write_text(RAISES.replace("BACKEND", "eager").replace("BODY", body))
    report, comparison = report_of(warm, script)
    assert [each.code for each in report.diagnostics] == ["uncaught-exception"]
    assert comparison.raised == "it runs to its end"
