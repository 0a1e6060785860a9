"""The judge of advice judges rightly: repaired programs are right, repairs that only remove the error are not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from support.daily import one_in, rotating
from support.folders import ROOT
from support.warm import Warm

from advice.gradients import difference, prints_differ
from advice.judging import Judge, Judgement, Outcome, applied
from advice.programs import CASES, Program, failing_programs, marked_programs, page_examples, silent_programs
from advice.recording import Recorder
from advice.scores import score, worse
from tensorlens.records.model import Span
from tensorlens.records.report import Edit

PROGRAMS = {program.name[:2]: program for program in marked_programs(CASES)}
WRONG = [number for number, program in PROGRAMS.items() if program.kind != "correct"]

# The number of a program, and a change that removes the error or the warning but leaves wrong gradients.
HARMFUL = [
    ("02", "        opt_j.step()\n", "", "        opt_p.step()\n", "        opt_p.step()\n        opt_j.step()\n"),
    (
        "03",
        "        self.opt_vae.step()\n",
        "",
        "ratio_loss.backward()\n",
        "ratio_loss.backward()\n        self.opt_vae.step()\n",
    ),
    ("13", "        optimizer.step()\n", "", "    for inputs", "    optimizer.step()\n    for inputs"),
    ("26", "self.net(x)", "self.net(x.detach())"),
    ("27", "edge], dim=-1), self.read(nodes))", "edge], dim=-1), self.read(nodes)).detach()"),
    ("30", "index = torch.argmax(maps, dim=2)", "index = torch.amax(maps, dim=2)"),
    ("33", "    freeze(model)\n", "    freeze(model)\n    model.fc.weight.requires_grad_()\n"),
    ("39", "channel.mul_(std).add_(mean)", "channel = channel.mul(std).add(mean)"),
    ("43", "(*support)\n", "(*support)\n            self.outer = torch.optim.Adam(adapted.parameters(), lr=1e-2)\n"),
    ("45", "        gen_loss.backward()\n", "        self.opt_critic.zero_grad()\n        gen_loss.backward()\n"),
]


@pytest.fixture(scope="module")
def judge(warm: Warm, recorder: Recorder) -> Judge:
    return Judge(warm, recorder)


def test_each_wrong_program_has_a_cause_and_a_repaired_version() -> None:
    assert len(WRONG) >= 48
    for program in PROGRAMS.values():
        assert bool(program.causes) == bool(program.versions) == (program.kind != "correct"), program.name
        for file, line in program.causes | program.acceptable:
            assert program.files[file].splitlines()[line - 1].strip(), (program.name, file, line)


@pytest.mark.parametrize("number", rotating(1, WRONG))
def test_a_repaired_version_is_right_and_the_program_is_not(number: str, judge: Judge, tmp_path: Path) -> None:
    program = PROGRAMS[number]
    right = judge.right_runs(program)  # fails unless all run to their end
    wrong = judge.recorder.run(program.written(tmp_path / "program"), program.results)
    assert (wrong.status == 0) == (program.kind == "silent")
    assert all(difference(run.record, run.record) is None for run in right)
    assert all(difference(wrong.record, run.record) for run in right)


@pytest.mark.parametrize("number", rotating(1, [number for number in WRONG if int(number) <= 22 and number != "13"]))
def test_one_version_has_the_gradients_of_a_run_with_copies(number: str, judge: Judge, tmp_path: Path) -> None:
    program = PROGRAMS[number]
    copies = judge.recorder.run(program.written(tmp_path / "program"), copies=True)
    assert copies.status == 0, copies.error
    assert None in [difference(copies.record, right.record) for right in judge.right_runs(program)]


@pytest.mark.parametrize("change", rotating(1, HARMFUL), ids=lambda change: change[0])
def test_a_change_that_only_removes_the_error_is_not_right(
    change: tuple[str, ...], judge: Judge, tmp_path: Path
) -> None:
    number, *texts = change
    program = PROGRAMS[number]
    script = program.written(tmp_path / "program")
    text = script.read_text()
    for old, new in zip(texts[::2], texts[1::2], strict=True):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    script.write_text(text)
    run = judge.recorder.run(script, program.results)
    assert run.status == 0, run.error
    assert all(difference(run.record, right.record) for right in judge.right_runs(program))


@pytest.mark.parametrize("program", one_in(40, [*failing_programs(), *silent_programs()]), ids=lambda p: p.name)
def test_repaired_versions_of_the_other_programs_run(program: Program, judge: Judge) -> None:
    assert all(run.status == 0 for run in judge.right_runs(program))


@pytest.mark.parametrize("program", one_in(60, page_examples()), ids=lambda p: p.name)
def test_the_fixed_examples_run(program: Program, judge: Judge) -> None:
    assert all(run.status == 0 for run in judge.right_runs(program))


def test_the_recorder_sees_each_step_and_each_closure(recorder: Recorder, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import torch\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "sgd = torch.optim.SGD([x], lr=0.5)\n"
        "lbfgs = torch.optim.LBFGS([x], max_iter=1)\n"
        "(x * 3).sum().backward()\n"
        "sgd.step()\n"
        "def closure():\n"
        "    lbfgs.zero_grad()\n"
        "    loss = (x * x).sum()\n"
        "    loss.backward()\n"
        "    return loss\n"
        "lbfgs.step(closure)\n"
    )
    run = recorder.run(script)
    assert run.status == 0, run.error
    (first, [gradient]), (second, [of_closure]) = run.record["steps"]
    assert (first, gradient.tolist(), second, of_closure.tolist()) == (0, [3.0, 3.0], 1, [-1.0, -1.0])
    assert [[(value.tolist(), gradient.tolist()) for value, gradient in each] for each in run.record["passes"]] == [
        [([1.0, 1.0], [3.0, 3.0])],
        [([-0.5, -0.5], [-1.0, -1.0])],
    ]


def test_gradients_are_compared_as_far_as_rounding_allows() -> None:
    def record(*gradients: list[float] | None) -> dict[str, object]:
        tensors = [None if g is None else torch.tensor(g) for g in gradients]
        return {"steps": [(0, tensors)], "passes": [], "returned": {}, "left": [], "trained": []}

    right = record([1.0, 2.0], [1e-9])
    assert difference(record([1.0, 2.0001], [-1e-9]), right) is None
    assert difference(record([1.0, 2.2], [1e-9]), right) == "optimizer 1, step 1: gradients off by 8.9 %"
    assert difference(record([1.0, 2.0], None), right) == "optimizer 1, step 1: 1 of 2 gradients are None"
    assert (
        difference({"steps": [], "passes": [], "returned": {}, "left": [], "trained": []}, right)
        == "no step, not 1 steps"
    )
    assert prints_differ("loss 0.5", "loss 0.6")
    assert not prints_differ("loss tensor(0.5000)", "loss 0.5")


def test_values_left_at_the_end_count_unless_a_parameter_moves_by_rounding_only() -> None:
    def record(left: float, gradient: float) -> dict[str, object]:
        steps = [(0, [torch.tensor([1.0]), torch.tensor([gradient])])]
        end = [torch.tensor([1.0]), torch.tensor([left])]
        return {"steps": steps, "passes": [], "returned": {}, "left": end, "trained": [None, (0, 1)]}

    assert difference(record(0.5, 1e-9), record(0.6, 1e-9)) is None
    assert difference(record(0.5, 0.1), record(0.6, 0.1)) == "a parameter or buffer has another value at the end"
    assert difference(record(0.5, 0.0), record(0.6, 0.0)) == "a parameter or buffer has another value at the end"


def test_edits_of_all_files_are_applied(tmp_path: Path) -> None:
    folder = tmp_path / "program"
    folder.mkdir()
    (folder / "main.py").write_text("import helper\nx = 1\n")
    (folder / "helper.py").write_text("y = 2\n")
    edits = (Edit(Span(str(folder / "main.py"), 2, 4, 2, 5), "3"), Edit(Span("helper.py", 1, 0, 1, 1), "z"))
    made = applied(folder / "main.py", edits, tmp_path / "edited")
    assert made.read_text() == "import helper\nx = 3\n"
    assert made.with_name("helper.py").read_text() == "z = 2\n"
    with pytest.raises(ValueError, match="not the program's"):
        applied(folder / "main.py", (Edit(Span("/elsewhere/other.py", 1, 0, 1, 1), ""),), tmp_path / "again")


def test_a_worse_score_is_seen() -> None:
    program = replace(PROGRAMS["02"], acceptable=frozenset())
    found = Judgement(
        program=program,
        code="saved-tensor-modified-inplace",
        labels=(("modified_here", ("02_sine_gan.py", 51)), ("needed_here", ("02_sine_gan.py", 54))),
        first=Outcome("cured", 1),
        others=(Outcome("harmful", 1),),
        findings=1,
    )
    good = score(found)
    assert good == {"cause": True, "help": "cured", "rounds": 1, "harmful": 1}
    blamed = replace(found, labels=(*found.labels, ("modified_here", ("02_sine_gan.py", 50))))
    assert worse(good, score(blamed)) == ["the cause is no longer right"]
    assert worse(good, score(replace(found, first=Outcome("no edit"), others=()))) == [
        "the first help: cured -> no edit"
    ]
    assert worse(good, score(replace(found, first=Outcome("harmful")))) == [
        "the first help: cured -> harmful",
        "harmful helps: 1 -> 2",
    ]
    assert worse(score(replace(found, first=Outcome("no edit"), others=())), good) == ["harmful helps: 0 -> 1"]


@pytest.mark.complete
def test_the_judge_reads_what_the_command_prints(judge: Judge, tmp_path: Path) -> None:
    script = PROGRAMS["04"].written(tmp_path / "program")
    command = [sys.executable, "-m", "tensorlens", "explain", "-f", "json", script.name]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(command, cwd=script.parent, env=environment, capture_output=True, text=True, check=False)
    (finding,) = json.loads(ran.stdout)["diagnostics"]
    edits = tuple(
        Edit(Span(e["file"], e["line"], e["column"], e["end_line"], e["end_column"]), e["text"])
        for e in finding["fixes"][0]["edits"]
    )
    run = judge.recorder.run(applied(script, edits, tmp_path / "edited"))
    assert [difference(run.record, right.record) for right in judge.right_runs(PROGRAMS["04"])] == [None]


def test_programs_of_another_author_are_read(judge: Judge, tmp_path: Path) -> None:
    main = (
        "import torch\nfrom parts import squash\nx = torch.ones(3, requires_grad=True)\n"
        "y = squash(x)\ny.sum().backward()\n"
    )
    wrong = "def squash(x):\n    y = x.sigmoid()\n    y += 1\n    return y\n"
    (tmp_path / "01_gate.py").write_text(main)
    (tmp_path / "parts.py").write_text(wrong)
    (tmp_path / "01_gate.fixed").mkdir()
    (tmp_path / "01_gate.fixed" / "parts.py").write_text(wrong.replace("y += 1", "y = y + 1"))
    (tmp_path / "02_sum.py").write_text("import torch\n(torch.ones(3, requires_grad=True) * 2).sum().backward()\n")
    entries = [
        {
            "case": "01_gate",
            "topic": "gates",
            "kind": "error",
            "message": "modified by an inplace operation",
            "cause": [{"file": "parts.py", "line": 3, "why": "overwrites what sigmoid saved"}],
            "also_acceptable": ["parts.py:2", {"file": "01_gate.py", "line": [4, 5]}],
            "needs": "",
            "repair": "make a new tensor",
        },
        {"case": "02_sum.py", "topic": "", "kind": "correct", "cause": []},
    ]
    (tmp_path / "truth.json").write_text(json.dumps(entries))
    gate, plain = marked_programs(tmp_path)
    assert gate.causes == {("parts.py", 3)}
    assert gate.acceptable == {("parts.py", 2), ("01_gate.py", 4), ("01_gate.py", 5)}
    found = judge.judge(gate)
    assert (found.cause, found.first.verdict, found.harmful) == (True, "cured", 0)
    assert score(judge.judge(plain)) == {"quiet": True}
