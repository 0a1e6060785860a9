"""Checks the sentence about parameters that losses do not reach any more."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.out, self.cache = nn.Parameter(torch.zeros(4)), nn.Linear(4, 1), None

    def weights(self):
        if self.cache is None:
            self.cache = torch.sigmoid(self.gate)  #!
        return self.cache

    def forward(self, x):
        return self.out(x * self.weights())

net = Gate()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(16, 4), torch.randn(16, 1)
"""
TRAIN = """\
for epoch in range(8):
    loss = (net(x) - y).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    net.cache = None
    with torch.no_grad():
        print((net(x) - y).square().mean())
"""
CHECK = "with torch.no_grad():\n    print(net(x).mean())\n"
ALONE = TRAIN[: TRAIN.index("    net.cache")]
FREEZE = TRAIN.replace("    loss =", "    if epoch == 3:\n        net.gate.requires_grad_(False)\n    loss =")
OFF = TRAIN.replace(
    "    loss = (net(x) - y)",
    ("    out = net(x) if epoch < 3 else net.out(x * net.gate.detach().sigmoid())\n    loss = (out - y)"),
)
WRONG = {
    "an evaluation fills the cache": NET + TRAIN,
    "a function of evaluation": NET
    + TRAIN.replace("    with torch.no_grad():\n        print((net(x) - y).square().mean())", "    evaluate()").replace(
        "for epoch", "@torch.no_grad()\ndef evaluate():\n    print(net(x).mean())\n\nfor epoch"),
    "a check before the training": NET + CHECK + ALONE,
    "a check that fills a dict": NET.replace("cache is None", "cache == {}").replace(
        "self.cache = torch.sigmoid(self.gate)  #!", "g = self.gate * 2  #!\n            self.cache['g'] = g.exp()"
    ).replace("return self.cache", "return self.cache['g']").replace("4, 1), None", "4, 1), {}") + CHECK + ALONE,
}  # fmt: skip
RIGHT = {
    "a value that is meant to be constant": NET.replace(
        "self.cache = torch", "with torch.no_grad():\n                self.cache = torch"
    )
    + "net(x)\n"
    + ALONE,
    "a cache that is dropped after the check": NET
    + CHECK
    + ALONE.replace("    loss =", "    net.cache = None\n    loss ="),
    "the cache is dropped": NET + TRAIN + "    net.cache = None\n",
    "no cache": NET.replace("if self.cache is None", "if True") + TRAIN,
    "frozen": NET.replace("if self.cache is None", "if True") + FREEZE,
    "detached later": NET.replace("if self.cache is None", "if True") + OFF,
}
WORDS = "computed while gradients were off"


@pytest.mark.parametrize("name", WRONG)
def test_a_cache_without_a_graph_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_value_with_a_graph_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
