"""Checks the sentence about updates of kept tensors that only set a variable."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

STATISTICS = """\
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.out = nn.Linear(4, 1)
    def forward(self, x):
        mean = 0.9 * self.mean + 0.1 * x.mean(0)  #!
        return self.out(x - self.mean)
net = Norm()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
"""
SHADOW = """\
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
shadow = {name: value.clone() for name, value in net.state_dict().items()}
def update():
    for name, value in net.state_dict().items():
        kept = shadow[name]
        kept = 0.9 * kept + 0.1 * value  #!
for _ in range(4):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
    update()
"""
WRONG = {
    "statistics": (STATISTICS, "`mean = 0.9 * self.mean + 0.1 * x.mean(0)` only sets the variable `mean`, 4 times"),
    "an average": (SHADOW, "`kept = 0.9 * kept + 0.1 * value` only sets the variable `kept`, 8 times"),
}
REPORT = """\
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
start = net.weight.detach().clone()
def train():
    drift = None
    def report():
        print(drift.norm().item())
    for step in range(6):
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()
        drift = net.weight.detach() - start  #!
        if step % 3 == 0:
            report()
train()
"""
EPOCHS = """\
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
start = net.weight.detach().clone()
def train():
    for epoch in range(3):
        if epoch:
            print(drift.norm().item())
        for step in range(4):
            net(torch.randn(8, 4)).square().mean().backward()
            opt.step()
            drift = net.weight.detach() - start  #!
train()
"""
WRONG |= {
    "a nested function with a variable of its own": (
        REPORT.replace("report()", "report(1.0)")
        .replace("report(1.0):", "report(drift):")
        .replace("- start", "- 0.5 * start")
        .replace(".norm().item()", ""),
        "only sets the variable `drift`, 6 times",
    ),
    "set anew in each round of two loops": (
        SHADOW.replace("    for name, value", "    for decay in (0.9, 0.99):\n     for name, value"),
        "only sets the variable `kept`, 16 times",
    ),
}
RIGHT = {
    "a nested function reads it": REPORT,
    "a lambda reads it": REPORT.replace(
        "    def report():\n        print(drift.norm().item())", "    report = lambda: print(drift.norm().item())"
    ),
    "the next round of the outer loop reads it": EPOCHS,
    "statistics that are kept": STATISTICS.replace("        mean = 0.9", "        self.mean = 0.9"),
    "statistics that are used": STATISTICS.replace("(x - self.mean)", "(x - mean)"),
    "an average that is kept": SHADOW.replace("0.1 * value  #!", "0.1 * value\n        shadow[name] = kept"),
    "a variable of the next round": SHADOW.replace(
        "        kept = shadow[name]\n", "        print(kept.sum())\n"
    ).replace("    for name, value", "    kept = torch.zeros(1)\n    for name, value"),
    "a sum that is timed": "import time\n"
    + STATISTICS.replace(
        "        mean",
        (
            "        begin = time.perf_counter()\n        for _ in range(5):\n"
            "            out = 0.9 * x + 0.1 * x.mean(0)\n"
            "        self.took = time.perf_counter() - begin\n        self.mean"
        ),
    ),
    "a sum of plain values": STATISTICS.replace("mean = 0.9 * self.mean + 0.1 * x.mean(0)", "out = self.mean + x"),
    "nothing that lasts": STATISTICS.replace("0.9 * self.mean + 0.1", "1.0 + 0.1"),
}
WORDS = "only sets the variable"


@pytest.mark.parametrize("name", WRONG)
def test_updates_that_nothing_reads_are_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    assert text in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_updates_that_are_read_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
