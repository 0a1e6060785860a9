"""Checks the sentence about batch norm of an `AveragedModel` without `update_bn()`."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn
net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 1))
swa = AveragedModel(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.randn(32, 4)
for epoch in range(4):
    for part in x.split(8):
        opt.zero_grad()
        (net(part) - part.sum(1, keepdim=True)).square().mean().backward()
        opt.step()
    swa.update_parameters(net)
swa.eval()
with torch.no_grad():
    print(swa(x).mean())  #!
"""
CLASS = NET.replace("swa = AveragedModel(net)", (
    "class Run:\n    def __init__(self):\n        self.average = AveragedModel(net, device=None)\n"
    "        self.average.eval()\nrun = Run()")).replace("swa.eval()\n", "").replace(
    "swa.up", "run.average.up").replace("swa(x)", "run.average(x)")  # fmt: skip
WRONG = {"a name": NET, "an attribute": CLASS}
RIGHT = {
    "update_bn": NET.replace("swa.eval()", "update_bn(x.split(8), swa)\nswa.eval()"),
    "after each update": NET.replace("(net)\nswa.eval()", "(net)\n    update_bn(x.split(8), swa)\nswa.eval()"),
    "shown before the statistics": NET.replace("  #!", "\nupdate_bn(x.split(8), swa)\nprint(swa.eval()(x).mean())"),
    "a moving average": NET.replace("AveragedModel(net)", (
        "AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9))")),
    "frozen statistics": NET.replace("range(4):", "range(4):\n    net.train(); net[1].eval()"),
    "statistics frozen before": NET.replace("range(4):", "range(6):").replace(
        "    swa.up", "    net[1].eval()\n    if epoch > 1: swa.up"),
    "averaged buffers": NET.replace("AveragedModel(net)", "AveragedModel(net, use_buffers=True)"),
    "one update": NET.replace("    swa.up", "    if epoch == 3: swa.up"),
    "other norm": NET.replace("nn.BatchNorm1d(8)", "nn.LayerNorm(8)"),
    "the model itself": NET.replace("swa.eval()", "net.eval()").replace("swa(x)", "net(x)"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_statistics_of_the_last_model_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if "`update_bn()`" in each.text)
    assert "at the last of 4 updates" in found.text
    assert any(each.span.line in (marked(WRONG[name]), 5) for each in found.labels)


@pytest.mark.parametrize("name", RIGHT)
def test_other_statistics_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if "`update_bn()`" in each.text] == []
