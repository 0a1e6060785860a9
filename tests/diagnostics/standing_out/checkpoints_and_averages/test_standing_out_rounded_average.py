"""Checks the sentence about moving averages in half precision."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

AVERAGE = """\
import copy
net = nn.Linear(3, 1)
average = copy.deepcopy(net).to(torch.bfloat16).requires_grad_(False)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for i in range(30):
    opt.zero_grad()
    net(torch.randn(8, 3)).square().mean().backward()
    opt.step()
    with torch.no_grad():
        for a, p in zip(average.parameters(), net.parameters()):
            a.lerp_(p.to(a.dtype), 1 - min(0.995, (i + 1) / (i + 10)))  #!
"""
STORE = AVERAGE.replace("average = copy.deepcopy(net).to(torch.bfloat16).requires_grad_(False)",
    "store = {k: p.detach().to(torch.bfloat16, copy=True) for k, p in net.named_parameters()}").replace(
    "a, p in zip(average.parameters(), net.parameters())", "k, p in net.named_parameters()").replace(
    "a.lerp_(p.to(a.dtype)", "store[k].lerp_(p.to(store[k].dtype)")  # fmt: skip
RIGHT = {
    "tensors in float32": STORE.replace("torch.bfloat16", "torch.float32"),
    "gradients with weight decay": AVERAGE.replace("nn.Linear(3, 1)", "nn.Linear(3, 1).bfloat16()").replace(
        "randn(8, 3)", "randn(8, 3).bfloat16()").replace("opt.zero_grad()", "opt.zero_grad(set_to_none=False)").replace(
        "    opt.step()\n", "    for p in net.parameters():\n        p.grad.add_(p.detach(), alpha=0.01)\n"
        "    opt.step()\n").replace("average.parameters(), net.parameters()", "(), ()"),
    "float32": AVERAGE.replace(".to(torch.bfloat16)", ""),
    "float64": AVERAGE.replace("torch.bfloat16", "torch.float64"),
    "half of the present weights": AVERAGE.replace("1 - min(0.995, (i + 1) / (i + 10))", "0.5"),
    "few updates": AVERAGE.replace("range(30)", "range(8)"),
    "an average in float32 of bfloat16": AVERAGE.replace(".to(torch.bfloat16)", ".float()").replace(
        "nn.Linear(3, 1)", "nn.Linear(3, 1).to(torch.bfloat16)").replace("randn(8, 3)", "randn(8, 3).bfloat16()"),
    "an average in float32, by other calls": AVERAGE.replace(".to(torch.bfloat16)", ".float()").replace(
        "nn.Linear(3, 1)", "nn.Linear(3, 1).bfloat16()").replace("randn(8, 3)", "randn(8, 3).bfloat16()").replace(
        "a.lerp_(p.to(a.dtype), 1 - min(0.995, (i + 1) / (i + 10)))", "a.mul_(0.99).add_(p, alpha=0.01)"),
    "a copy of the weights": AVERAGE.replace(".to(torch.bfloat16)", "").replace(
        "opt = torch", "average.to(torch.bfloat16)\nopt = torch").replace(
        "a.lerp_(p.to(a.dtype), 1 - min(0.995, (i + 1) / (i + 10)))", "a.copy_(p)"),
}  # fmt: skip
WORDS = "keeps an average in"


@pytest.mark.parametrize(
    ("body", "apart"),
    [
        (AVERAGE, "0.39 to 0.78 %"),
        (AVERAGE.replace("bfloat16", "float16"), "0.049 to 0.098 %"),
        (STORE, "0.39 to 0.78 %"),
    ],
)
def test_an_average_in_half_precision_is_named(tmp_path: Path, body: str, apart: str) -> None:
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    assert f"differ by {apart}, and each of 30 updates loses changes" in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_other_averages_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
