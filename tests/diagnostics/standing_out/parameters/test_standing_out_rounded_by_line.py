"""Checks what `--training` says about lines that round trained parameters between their steps."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WORDS = "no copy keeps the exact values"
SCRIPT = """\
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
opt = torch.optim.SGD(net.parameters(), lr=0.01)
weights = [p for p in net.parameters() if p.dim() == 2]
data, labels = torch.randn(60, 4), torch.randint(0, 2, (60,))

def rounded(w, levels=15):
    step = w.abs().max() / levels
    return (w / step).round() * step

for rows in torch.randperm(60).split(6):
{before}
    loss = nn.functional.cross_entropy(net(data[rows]), labels[rows])
    opt.zero_grad()
    loss.backward()
{after}
    opt.step()
"""
SET = "    for w in weights:\n        w.data = rounded(w.data)  #!"
COPY = "    with torch.no_grad():\n        for w in weights:\n            w.copy_(rounded(w))  #!"
IN_PLACE = "    for w in weights:\n        w.data.mul_(64).round_().div_(64)  #!"
KEEP = "    exact = [w.data.clone() for w in weights]\n" + SET.replace("  #!", "")
PUT_BACK = "    for w, each in zip(weights, exact):\n        w.data.copy_(each)"
RANDOM = "    for w in weights:\n        w.data = torch.floor(w.data * 64 + torch.rand_like(w)) / 64"
FUNCTIONAL = "    x = torch.tanh(nn.functional.linear(data[rows], rounded(net[0].weight.detach())))"
A_PART = """\
    for w in weights:
        w.data = torch.where(w.data.abs() > 0.2, (w.data * 64).round() / 64, w.data)"""
FIRST_ROWS = """\
    with torch.no_grad():
        w = weights[0]
        w[:4].copy_((w[:4] * 16).round() / 16)"""
A_ROW = """\
    with torch.no_grad():
        weights[0][0].mul_(16).round_().div_(16)"""
JOINED = """\
    for w in weights:
        w.data = torch.cat([(w.data[:1] * 64).round() / 64, w.data[1:] * 1.0])"""
NOISE = """\
    for w in weights:
        noise = torch.from_numpy(np.random.rand(*w.shape).astype(np.float32))
        w.data = torch.floor(w.data * 64 + noise) / 64"""
WHOLE = """\
    for w in weights:
        w.data.round_()
        w.grad.sign_()"""
WRONG = {
    "a value that is set": SCRIPT.format(before=SET, after=""),
    "a copy": SCRIPT.format(before=COPY, after=""),
    "in place": SCRIPT.format(before=IN_PLACE, after=""),
}
RIGHT = {
    "exact values that are put back": SCRIPT.format(before=KEEP, after=PUT_BACK),
    "rounded at random": SCRIPT.format(before=RANDOM, after=""),
    "a part of the values": SCRIPT.format(before=A_PART, after=""),
    "some rows": SCRIPT.format(before="", after="    net[0].weight.grad[:4] = 0").replace(
        "opt.step()", "opt.step()\n" + FIRST_ROWS
    ),
    "one row": SCRIPT.format(before=A_ROW, after=""),
    "some rows, put together with the others": SCRIPT.format(before=JOINED, after=""),
    "rounded by the random numbers of an array": "import numpy as np\n" + SCRIPT.format(before=NOISE, after=""),
    "whole numbers that move by whole steps": SCRIPT.replace("lr=0.01", "lr=1.0").format(before="", after=WHOLE),
    "rounded for the forward pass only": SCRIPT.format(before=FUNCTIONAL, after=""),
    "once, at the end": SCRIPT.format(before="", after="") + SET.replace("    for", "for").replace("  #!", ""),
    "clamped": SCRIPT.format(before="    for w in weights:\n        w.data = w.data.clamp(-0.2, 0.2)", after=""),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_line_that_rounds_parameters_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_values_that_are_kept_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
