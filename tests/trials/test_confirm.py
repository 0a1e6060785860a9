"""`explain --try`: a further run confirms the cause of a finding, corrects it, or withdraws it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.warm_runs import Runs, WarmRuns

from tensorlens.records.report import Label, Report

OVERWRITTEN = """
    import torch
    x = torch.ones(2, requires_grad=True)
    z = torch.tanh(x)
    y = torch.sigmoid(x)
    y.mul_(3)
    (y + z).sum().backward()
"""


def test_a_copy_of_what_the_line_saved(runs: Runs) -> None:
    found = runs(OVERWRITTEN).confirmed()
    assert found.confirmed is True
    assert found.confirmation == "with a copy of what line 4 saved, the run ends normally"
    assert found.fixes


def test_copies_of_all_that_the_pass_needs(runs: Runs) -> None:
    program = runs("""
        import torch
        x = torch.ones(2, requires_grad=True)
        y = torch.sigmoid(x)
        z = torch.tanh(x)
        y.mul_(3)
        z.mul_(3)
        (y + z).sum().backward()
    """)
    found = program.confirmed()
    assert found.confirmed is True
    assert found.confirmation == "with copies of what lines 3 and 4 saved, the run ends normally"
    assert program.made == [("keep_copies",), ("keep_copies", "keep_copies")]


def test_a_graph_that_is_kept(runs: Runs) -> None:
    found = runs("""
        import torch
        x = torch.ones(2, requires_grad=True)
        loss = (x * x).sum()
        loss.backward()
        loss.backward()
    """).confirmed()
    assert found.confirmed is True
    assert found.confirmation == "with the graph kept by the backward of line 4, the run ends normally"


def test_the_next_error_is_named(runs: Runs) -> None:
    found = runs("""
        import torch
        layer = torch.nn.Linear(2, 2)
        deep = torch.nn.Linear(2, 2)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        state = torch.ones(1, 2)
        for _ in range(3):
            state = layer(deep(state))
            state.sum().backward()
            optimizer.step()
    """).confirmed()
    assert found.confirmed is True
    assert found.confirmation == (
        "with the graph kept by the backward of line 8, line 8 gets past it; "
        "the next error is `saved-tensor-modified-inplace`, in the same pass"
    )


def test_the_error_of_a_later_line_is_named(runs: Runs) -> None:
    found = runs("""
        import torch
        x = torch.ones(2, requires_grad=True)
        y = torch.sigmoid(x)
        y.mul_(3)
        y.sum().backward()
        (x.detach() * 2).sum().backward()
    """).confirmed()
    assert found.confirmed is True
    assert found.confirmation == (
        "with a copy of what line 3 saved, line 5 runs; the next error is `element-does-not-require-grad`, at line 6"
    )


@pytest.mark.parametrize("cut", ["y = (x * 2).detach()", "with torch.no_grad():\n    y = x * 2"])
def test_gradients_recorded_at_a_cut(runs: Runs, cut: str) -> None:
    found = runs(f"import torch\nx = torch.ones(2, requires_grad=True)\n{cut}\ny.sum().backward()\n").confirmed()
    assert found.confirmed is True
    assert found.confirmation == "with gradients recorded at line 3, the run ends normally"


def test_values_outside_torch_cannot_be_recorded(runs: Runs) -> None:
    program = runs("""
        import torch
        x = torch.ones(2, requires_grad=True)
        total = (x * 2).sum().item()
        loss = torch.tensor(total)
        loss.backward()
    """)
    found = program.confirmed()
    assert found.confirmed is None
    assert found.confirmation.startswith("not tried: `item()` gives values outside torch")
    assert program.made == []


def at_call(program: WarmRuns, role: str, code: str) -> Report:
    """Returns the report with a cause that is wrong: the label of a role is at another recorded call."""
    report = program.report()
    first = report.diagnostics[0]
    wrong = Label(role, program.span(code), "forged")
    labels = tuple(wrong if label.role == role else label for label in first.labels)
    assert labels != first.labels
    return replace(report, diagnostics=(replace(first, labels=labels), *report.diagnostics[1:]))


def test_a_wrong_save_is_corrected(runs: Runs) -> None:
    program = runs(OVERWRITTEN)
    found = program.confirmed(at_call(program, "saved_here", "torch.tanh(x)"))
    assert found.confirmed is True
    assert found.confirmation == (
        "with a copy of what line 4 saved, the run ends normally; line 3, suspected first, is not it"
    )
    assert [(label.role, label.span.line) for label in found.labels] == [("needed_here", 6), ("saved_here", 4)]
    assert found.fixes == ()
    assert found.explanation == ""


def test_a_wrong_backward_is_corrected(runs: Runs) -> None:
    program = runs("""
        import torch
        x = torch.ones(2, requires_grad=True)
        loss = (x * x).sum()
        loss.backward()
        (x * 3).sum().backward()
        loss.backward()
    """)
    found = program.confirmed(at_call(program, "freed_here", "(x * 3).sum().backward()"))
    assert found.confirmed is True
    assert "the graph kept by the backward of line 4, the run ends normally" in found.confirmation
    assert [(label.role, label.span.line) for label in found.labels] == [("needed_here", 6), ("freed_here", 4)]


def test_a_place_where_nothing_can_be_recorded(runs: Runs) -> None:
    program = runs("""
        import torch
        x = torch.ones(2, requires_grad=True)
        z = torch.tanh(x)
        (torch.ones(2) * 3).sum().backward()
    """)
    report = program.report()
    span = program.span("torch.tanh(x)")
    needed = [label for label in report.diagnostics[0].labels if label.role == "needed_here"]
    forged = (Label("graph_cut_here", span, "forged"), *needed)
    cause = replace(report.diagnostics[0], labels=forged)
    found = program.confirmed(replace(report, diagnostics=(cause,)))
    assert found.confirmed is None
    assert found.confirmation == "not tried: no run can record a gradient at line 3"


def test_a_withdrawn_cause_leaves_the_error_alone(runs: Runs) -> None:
    program = runs("""
        import torch
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        with torch.no_grad():
            y += 1
        w = torch.ones(2)
        w.sum().backward()
        print(y)
    """)
    report = program.report()
    cut = program.span("with torch.no_grad():\n    y += 1")
    labels = (*report.diagnostics[0].labels, Label("grad_mode_off_here", cut, "forged"))
    found = program.confirmed(replace(report, diagnostics=(replace(report.diagnostics[0], labels=labels),)))
    assert found.confirmed is False
    assert found.confirmation == (
        "the cause that was suspected, line 4, is not it: with gradients recorded at line 4, the run still fails"
    )
    assert found.fixes == ()
    assert [label.role for label in found.labels] == ["needed_here"]
    assert found.title.startswith("RuntimeError: element 0 of tensors does not require grad")


@pytest.mark.parametrize(
    "change",
    [
        "x.data.mul_(open('ran', 'a').tell() + 1)",  # other values
        "[x.exp().sum().backward() for _ in range(open('ran', 'a').tell())]",  # another number of passes
    ],
)
def test_a_program_that_does_not_repeat_itself(runs: Runs, change: str) -> None:
    program = runs(f"""
        import torch
        x = torch.ones(2, requires_grad=True)
        {change}
        open("ran", "a").write("again")
        y = torch.sigmoid(x)
        y.mul_(3)
        y.sum().backward()
    """)
    found = program.confirmed()
    assert found.confirmed is None
    assert found.confirmation.startswith("not decided: the program does not repeat itself")
    assert found.fixes


def test_a_run_that_ends_too_early_decides_nothing(runs: Runs) -> None:
    program = runs("""
        import os
        import torch
        x = torch.ones(2, requires_grad=True)
        if os.path.exists("ran"):
            raise SystemExit(3)
        open("ran", "w").close()
        y = torch.sigmoid(x)
        y.mul_(3)
        y.sum().backward()
    """)
    found = program.confirmed()
    assert found.confirmed is None
    assert found.confirmation.startswith("not ")


SILENT = """
    import numpy as np
    import torch
    w = torch.ones(3, requires_grad=True)
    array = np.ones(3, dtype=np.float32)
    x = torch.from_numpy(array)
    y = w * x
    z = torch.sin(w)
    size = array.size
    array[0] = 5
    (y + z).sum().backward()
"""


def test_a_silent_cause_is_confirmed_by_gradients(runs: Runs) -> None:
    report = runs(SILENT).silently_confirmed()
    (found,) = report.diagnostics
    assert found.confirmed is True
    assert found.confirmation == (
        "with a copy of what line 6 saved, the gradients are those of the run that copies everything"
    )
    assert [label.span.line for label in found.labels if label.role == "modified_here"] == [9]


def test_a_wrong_silent_cause_is_withdrawn(runs: Runs) -> None:
    from tensorlens.trials.confirm import confirm

    program = runs(SILENT)
    copies = program.copies()
    found = confirm(program, program.first(), at_call(program, "saved_here", "torch.sin(w)"), copies).diagnostics[0]
    assert found.confirmed is False
    assert found.code == "gradient-differs-from-reference"
    assert found.confirmation == (
        "the cause that was suspected, line 7, is not it: with a copy of what line 7 saved, the gradients are as before"
    )
    assert found.fixes == ()


def test_a_cut_without_an_error_is_confirmed_by_the_gradients_behind_it(runs: Runs) -> None:
    program = runs("""
        import torch
        encoder, head = torch.nn.Linear(3, 3), torch.nn.Linear(3, 1)
        optimizer = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            hidden = encoder(torch.ones(2, 3)).detach()
            loss = head(hidden).square().mean()
            loss.backward()
            optimizer.step()
    """)
    found = program.confirmed()
    assert found.severity == "warning"
    assert found.confirmed is True
    assert found.confirmation == "with gradients recorded at line 6, 2 more tensors have a gradient"


def test_a_finding_that_no_run_can_confirm_stays_as_it_is(runs: Runs) -> None:
    program = runs("import torch\nx = torch.ones(2, requires_grad=True)\nx.add_(1)\n")
    report = program.report()
    assert report.diagnostics[0].severity == "error"
    assert program.confirmed() == report.diagnostics[0]
    assert program.made == []
