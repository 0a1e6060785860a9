"""Warnings of PyTorch that a run shows to be about nothing are called harmless, and others are not."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.warm import Warm
from support.warm_runs import WarmRuns

from tensorlens.diagnostics import report_on
from tensorlens.records.report import Report

LOOP = """\
import torch
from torch import nn
from torch.nn import functional as F
net = nn.Linear(4, OUT)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.StepLR(opt, PERIOD)
x, y = torch.randn(ROWS, 4), torch.randn(SHAPE)
for _ in range(4):
    opt.zero_grad()
    loss = F.mse_loss(net(x), y)
    loss.backward()
    schedule.step()
    opt.step()
"""


def program(**values: str) -> str:
    text = LOOP
    for name, value in ({"OUT": "1", "PERIOD": "100", "ROWS": "8", "SHAPE": "8, 1"} | values).items():
        text = text.replace(name, value)
    return text


def report_of(warm: Warm, folder: Path, text: str) -> Report:
    script = folder / "script.py"
    script.write_text(text)
    return report_on(WarmRuns(warm, script, training=True).first().trace())


def said(warm: Warm, folder: Path, text: str) -> dict[str, str]:
    """Returns the harmless warnings, each with the source of its line."""
    found = [each for each in report_of(warm, folder, text).standing_out or () if "PyTorch's warning" in each.text]
    return {each.text: text.splitlines()[each.labels[0].span.line - 1].strip() for each in found}


def test_rates_that_stay_as_they_were_made_are_named(warm: Warm, tmp_path: Path) -> None:
    assert said(warm, tmp_path, program()) == {
        "PyTorch's warning about the order of `step()` is harmless in this run: each of the 4 steps uses the learning "
        "rate that `SGD` was made with, 0.1": "schedule.step()"
    }


def test_a_schedule_that_changes_rates_is_not_called_harmless(warm: Warm, tmp_path: Path) -> None:
    assert said(warm, tmp_path, program(PERIOD="2")) == {}


def test_shapes_that_combine_one_to_one_are_named(warm: Warm, tmp_path: Path) -> None:
    text = program(OUT="5", ROWS="1", SHAPE="5").replace("    schedule.step()\n", "")
    assert said(warm, tmp_path, text) == {
        "PyTorch's warning about the target size is harmless in this run: `F.mse_loss(net(x), y)` combines shapes "
        "(1, 5) and (5,) element by element": "loss = F.mse_loss(net(x), y)"
    }


def test_a_table_of_all_pairs_is_not_called_harmless(warm: Warm, tmp_path: Path) -> None:
    assert said(warm, tmp_path, program(SHAPE="8").replace("    schedule.step()\n", "")) == {}


CHECKPOINT = "from torch.utils.checkpoint import checkpoint\nlayer, x = torch.nn.Linear(2, 2), torch.ones(1, 2)\n"
COPY = "weight = torch.ones(2, requires_grad=True)\n"


@pytest.mark.parametrize(
    ("body", "severity"),
    [
        ("torch.tensor(torch.ones(2))", "note"),
        (f"{COPY}with torch.no_grad():\n    torch.tensor(weight)", "note"),
        (f"{COPY}for each in (weight.detach(), weight):\n    torch.tensor(each)", "warning"),
        (f"{CHECKPOINT}with torch.no_grad():\n    checkpoint(layer, x, use_reentrant=True)", "note"),
        (f"{CHECKPOINT}checkpoint(layer, x, use_reentrant=True)", "warning"),
    ],
)
def test_a_warning_about_nothing_is_a_note(warm: Warm, tmp_path: Path, body: str, severity: str) -> None:
    [found] = report_of(warm, tmp_path, f"import torch\n{body}\n").diagnostics
    assert found.severity == severity
    assert ("harmless" in found.title) == (severity == "note")
