"""Each fix is tried in a real run of a real program, and gets the verdict that its gradients deserve."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from support.warm import Warm
from support.warm_runs import WarmRuns

from tensorlens.diagnostics import report_on
from tensorlens.records.edits import edited
from tensorlens.records.model import Span
from tensorlens.records.report import Edit, Fix, Report
from tensorlens.render import RenderOptions, render
from tensorlens.runner.printed_output import Printed
from tensorlens.trials.fixes import MAX_CANDIDATES, with_tried_fixes
from tensorlens.trials.judgement import _printed_otherwise
from tensorlens.trials.observed_run import ObservedRun

Try = Callable[..., Report]

TRAINING = """
import torch
torch.manual_seed(0)
net = torch.nn.Linear(3, 3)
opt = torch.optim.SGD(net.parameters(), 0.1)
x = torch.randn(4, 3)
for step in range(3):
    opt.zero_grad()
    h = net(x).exp()
    h += 1
    h.sum().backward()
    opt.step()
    print(step, float(h.sum()))
"""

GAN = """
import torch
torch.manual_seed(0)
g, d = torch.nn.Linear(2, 3), torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
opt_g = torch.optim.Adam(g.parameters(), 0.1)
opt_d = torch.optim.Adam(d.parameters(), 0.1)
for step in range(2):
    fake = g(torch.randn(5, 2))
    opt_d.zero_grad()
    opt_g.zero_grad()
    out = d(fake)
    loss_d = d(torch.randn(5, 3)).mean() - d(fake.detach()).mean()
    loss_g = out.mean()
    loss_d.backward()
    opt_d.step()
    loss_g.backward()
    opt_g.step()
"""


@pytest.fixture
def trial(warm: Warm, tmp_path: Path) -> Try:
    """Tries the fixes of a program: those of its finding, or other edits (line, old text, new text) in their place."""

    def run(text: str, *fixes: list[tuple[int, str, str]], stop_at: int | None = None, **files: str) -> Report:
        script = tmp_path / "program.py"
        script.write_text(textwrap.dedent(text).lstrip("\n"))
        for name, other in files.items():
            (tmp_path / f"{name}.py").write_text(textwrap.dedent(other).lstrip("\n"))
        runs = WarmRuns(warm, script, stop_at)
        if not fixes:
            return runs.tried()
        first = runs.first()
        report = report_on(first.trace())
        lines = script.read_text().split("\n")
        made = []
        for number, changes in enumerate(fixes, 1):
            edits = []
            for line, old, new in changes:
                column = lines[line - 1].index(old)
                edits.append(Edit(Span(str(script), line, column, line, column + len(old)), new))
            made.append(Fix(f"way {number}", tuple(edits)))
        main, *others = report.diagnostics
        report = replace(report, diagnostics=(replace(main, fixes=tuple(made)), *others))
        return with_tried_fixes(runs, first, report, lambda done, needed: None)

    return run


def verdicts(report: Report) -> list[tuple[str, str]]:
    return [(fix.title, fix.verdict) for fix in report.diagnostics[0].fixes]


def test_an_overwritten_tensor_is_repaired_with_the_gradients_of_the_forward_pass(trial: Try) -> None:
    report = trial(TRAINING)
    best = report.diagnostics[0].fixes[0]
    assert (best.verdict, best.differs) == ("verified", "")
    assert [edit.text for edit in best.edits] == ["h = h + 1"]
    text = render(report)
    assert "tried: verified, the gradients are right" in text
    assert "--- program.py\n+++ program.py\n" in text
    assert "-    h += 1\n+    h = h + 1\n" in text


def test_an_edit_that_cuts_the_gradient_is_not_offered(trial: Try) -> None:
    report = trial(
        TRAINING, [(9, "h += 1", "h = (h + 1).detach().requires_grad_()")], [(8, ".exp()", ".exp().clone()")]
    )
    assert verdicts(report) == [("way 2", "verified")]
    assert report.tried is not None
    assert (report.tried.tried, report.tried.failed) == (2, 1)


def test_a_fix_that_fails_goes_to_the_end(trial: Try) -> None:
    report = trial(TRAINING, [(9, "h += 1", "h *= 2")], [(9, "h += 1", "h = h + 1")])
    assert verdicts(report) == [("way 2", "verified"), ("way 1", "untried")]


def test_other_gradients_are_said_in_numbers(trial: Try) -> None:
    report = trial(TRAINING, [(9, "h += 1", "h = h * 1.01")])
    fix = report.diagnostics[0].fixes[0]
    assert fix.verdict == "runs"
    assert ": step 1: the gradient of `net." in fix.differs
    assert fix.differs.endswith(" %)")


def test_other_output_is_not_verified(trial: Try) -> None:
    report = trial(TRAINING, [(9, "h += 1", "h = h + 1"), (12, "print(step,", "print(step + 1,")])
    fix = report.diagnostics[0].fixes[0]
    assert (fix.verdict, fix.differs) == ("runs", "all gradients are the same, and line 1 of the output is not")


def test_output_that_never_repeats_is_not_compared(trial: Try) -> None:
    text = TRAINING.replace("print(step,", "import time; print(time.time_ns(),")
    assert verdicts(trial(text, [(9, "h += 1", "h = h + 1")])) == [("way 1", "verified")]


def test_a_step_that_would_use_the_gradients_of_two_losses_is_never_offered(trial: Try) -> None:
    moved = [(14, "    opt_d.step()", "    pass"), (15, "loss_g.backward()", "loss_g.backward(); opt_d.step()")]
    again = [(15, "loss_g.backward()", "loss_g = d(fake).mean(); loss_g.backward()")]
    limited = [
        (14, "    opt_d.step()", "    pass"),
        (15, "loss_g.backward()", "loss_g.backward(inputs=list(g.parameters())); opt_d.step()"),
    ]
    report = trial(GAN, moved, again, limited)
    assert verdicts(report) == [("way 3", "verified"), ("way 2", "runs")]
    assert report.tried is not None
    assert report.tried.failed == 1
    assert ": step 2: the gradient of `g." in report.diagnostics[0].fixes[1].differs


def test_a_graph_that_was_freed_is_kept(trial: Try) -> None:
    text = """
        import torch
        x = torch.ones(3, requires_grad=True)
        y = x.exp()
        y.sum().backward()
        y.mean().backward()
        print(x.grad)
    """
    kept, cut = [(4, "backward()", "backward(retain_graph=True)")], [(5, "y.mean()", "y.detach().mean()")]
    report = trial(text, cut, kept)
    assert verdicts(report) == [("way 2", "verified"), ("way 1", "untried")]


def test_a_cut_graph_is_compared_with_one_that_is_not_cut(trial: Try) -> None:
    text = """
        import torch
        net = torch.nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), 0.1)
        loss = net(torch.ones(3)).detach().sum()
        loss.backward()
        opt.step()
    """
    report = trial(text, [(4, ".detach()", ".mul(2)")], [(4, ".detach()", "")])
    assert verdicts(report) == [("way 2", "verified"), ("way 1", "runs")]


def test_values_that_left_torch_have_no_right_gradients_to_compare_with(trial: Try) -> None:
    text = """
        import torch
        net = torch.nn.Linear(3, 1)
        opt = torch.optim.SGD(net.parameters(), 0.1)
        loss = torch.tensor(net(torch.ones(3)).tolist()).sum()
        loss.backward()
        opt.step()
    """
    partly, whole = "(net.weight * 2)", "net(torch.ones(3))"
    cut = "torch.tensor(net(torch.ones(3)).tolist())"
    report = trial(text, [(4, cut, partly)], [(4, cut, whole)])
    assert verdicts(report) == [("way 2", "runs"), ("way 1", "runs")]
    last = report.diagnostics[0].fixes[1].differs
    assert last == "no run of the program has right gradients to compare with; `net.bias` never has a gradient"


def test_the_next_error_is_repaired_on_top(trial: Try) -> None:
    text = """
        import torch
        x = torch.ones(3, requires_grad=True)
        a = x.exp()
        a += 1
        a.sum().backward()
        b = x.sigmoid()
        b *= 2
        b.sum().backward()
        print(x.grad)
    """
    report = trial(text)
    best = report.diagnostics[0].fixes[0]
    assert best.verdict == "verified"
    assert "; then " in best.title
    repaired = edited(report.trace.sources[best.edits[0].span.file], best.edits)
    assert "a = a + 1\n" in repaired
    assert "b = b * 2\n" in repaired
    assert report.tried is not None
    assert report.tried.tried == 2


def test_two_files_are_edited_together(trial: Try, tmp_path: Path) -> None:
    report = trial(
        """
        import torch
        from layers import layer
        x = torch.ones(3, requires_grad=True)
        layer(x).sum().backward()
        print(x.grad)
        """,
        layers="""
        def layer(x):
            h = x.exp()
            h += 1
            return h
        """,
    )
    best = report.diagnostics[0].fixes[0]
    assert best.verdict == "verified"
    assert "--- layers.py\n+++ layers.py\n" in render(report, "markdown", RenderOptions())
    assert (tmp_path / "layers.py").read_text().count("h += 1") == 1


def test_a_program_that_does_not_repeat_itself_has_nothing_verified(trial: Try) -> None:
    text = TRAINING.replace(
        "torch.manual_seed(0)", "import os; torch.manual_seed(int.from_bytes(os.urandom(4), 'big'))"
    )
    report = trial(text, [(9, "h += 1", "h = h + 1")])
    assert verdicts(report) == [("way 1", "runs")]
    assert report.tried is not None
    assert report.tried.note.startswith("the program does not repeat itself")


def test_the_encoding_of_the_program_stays(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    text = "# -*- coding: latin-1 -*-\n" + TRAINING.lstrip("\n") + "print('\xe9' == chr(233), len('\xe9'))\n"
    script.write_bytes(text.replace("\n", "\r\n").encode("latin-1"))
    runs = WarmRuns(warm, script)
    report = runs.tried()
    assert report.diagnostics[0].fixes[0].verdict == "verified"
    assert b"True 1\n" in runs.again(sources=dict(report.trace.sources), copy_saved_tensors=True).printed.head


def test_ctrl_c_leaves_the_report(trial: Try) -> None:
    report = trial(TRAINING, stop_at=3)
    assert report.tried is not None
    assert report.tried.interrupted
    assert [fix.verdict for fix in report.diagnostics[0].fixes] == ["untried"] * len(report.diagnostics[0].fixes)
    assert "interrupted: not every help was tried" in render(report)


def test_too_many_candidates_are_counted(trial: Try) -> None:
    ways = [[(9, "h += 1", f"h = h + 1.{'0' * n}")] for n in range(MAX_CANDIDATES + 2)]
    report = trial(TRAINING, *ways)
    assert report.tried is not None
    assert (report.tried.tried, report.tried.left_out) == (MAX_CANDIDATES, 2)
    assert "2 not tried, as there are too many" in render(report)


def test_a_program_without_findings_is_not_run_again_and_again(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import torch\nx = torch.ones(2, requires_grad=True)\nx.sum().backward()\n")
    runs = WarmRuns(warm, script)
    report = runs.tried()
    assert report.diagnostics == ()
    assert report.tried is not None
    assert runs.count == 2  # the second is the one of `--reference`


def test_a_silent_overwrite_is_verified_with_copies(trial: Try) -> None:
    report = trial(
        """
        import torch
        x = torch.ones(3, requires_grad=True)
        w = torch.full((3,), 2.0)
        y = (x * w).sum()
        w.data.mul_(3)
        y.backward()
        print(x.grad)
        """,
        [(4, "x * w", "x * w.clone()")],
        [(5, "w.data.mul_(3)", "w = w * 3")],
    )
    assert verdicts(report)[:1] == [("way 1", "verified")]


def test_a_silent_mistake_is_compared_with_the_program_as_it_is(trial: Try) -> None:
    report = trial(
        """
        import torch
        torch.manual_seed(0)
        net = torch.nn.Linear(2, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        x = torch.randn(8, 2)
        for part in range(4):
            opt.zero_grad()
            net(x[2 * part : 2 * part + 2]).square().mean().backward()
            if part % 2:
                opt.step()
        """,
        [(7, "opt.zero_grad()", "pass"), (10, "opt.step()", "opt.step(); opt.zero_grad()")],
        [(7, "opt.zero_grad()", "pass"), (10, "opt.step()", "opt.zero_grad()")],
    )
    first, last = report.diagnostics[0].fixes
    assert (first.title, first.verdict) == ("way 1", "runs")
    assert first.differs.startswith("compared with the program as it is: step 1: the gradient of `net.")
    assert (last.title, last.verdict) == ("way 2", "untried")


@pytest.mark.parametrize(
    ("mine", "other", "again", "text"),
    [
        (Printed(b"a", b"1"), Printed(b"a", b"1"), Printed(b"a", b"1"), ""),
        (Printed(b"a\nb", b"1"), Printed(b"a\nc", b"1"), Printed(b"a\nc", b"1"), "line 2 of the output is not"),
        (Printed(b"a\nb", b"1"), Printed(b"a\nc", b"1"), Printed(b"a\nd", b"1"), ""),
        (Printed(b"a\nb", b"1"), Printed(b"a\nb", b"2"), Printed(b"a\nb", b"2"), "too long to compare it after line 2"),
        (Printed(b"a"), Printed(b"b\nc"), Printed(b"d\ne\nf"), ""),
        (Printed(b"a"), Printed(b"a\nc"), Printed(b"a\nd"), "line 2 of the output is not"),
        (Printed(b"a"), Printed(b"a\nb", b"2"), Printed(b"a\nb", b"2"), "too long to compare it after line 1"),
    ],
)
def test_long_output_is_compared_as_far_as_it_is_kept(mine: Printed, other: Printed, again: Printed, text: str) -> None:
    one, right, repeated = (cast(ObservedRun, SimpleNamespace(printed=each)) for each in (mine, other, again))
    found = _printed_otherwise(one, right, lambda: repeated)
    assert found.endswith(text)
    assert bool(found) == bool(text)


def test_a_program_that_reads_other_input_when_it_runs_again_has_nothing_verified(trial: Try, tmp_path: Path) -> None:
    """Standard input from a pipe is empty in a further run; here a file is there only for the first run."""
    given = tmp_path / "given"
    given.write_text("7")
    reads = f"import os; factor = 7 if os.path.exists({str(given)!r}) else 5; factor == 7 and os.remove({str(given)!r})"
    text = TRAINING.replace("x = torch.randn(4, 3)", f"{reads}\nx = factor * torch.randn(4, 3)")
    report = trial(text, [(10, "h += 1", "h = h + 1")])
    assert verdicts(report) == [("way 1", "runs")]


def test_a_program_that_removes_itself_is_named(warm: Warm, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text("import os; os.remove(__file__)\n" + TRAINING.lstrip())
    report = WarmRuns(warm, script).tried()
    assert report.tried is not None
    assert report.tried.note == "nothing was tried: program.py is gone"
