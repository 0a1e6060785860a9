"""Checks the sentence about initial values that a constructor sets, and then overwrites."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

HEADS = """\
def init(module):
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(3, 4), nn.Linear(4, 1)
        nn.init.constant_(self.head.bias, -4.6)
        self.apply(init)  #!

    def forward(self, x):
        return self.head(self.body(x).relu())

net = Net()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.randn(8, 3)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
SET = "        nn.init.constant_(self.head.bias, -4.6)\n"
OWN = """\
class Own(nn.Linear):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        nn.init.constant_(self.bias, -4.6)

"""
WRONG = {
    "a constant": HEADS,
    "a function makes the head": HEADS.replace(SET, "        self.set_bias()\n").replace(
        "    def forward",
        "    def set_bias(self):\n        nn.init.constant_(self.head.bias, -4.6)\n\n    def forward"),
    "a loop over all": HEADS.replace(
        "self.apply(init)  #!", "for each in self.modules():\n            init(each)  #!"),
}  # fmt: skip
RIGHT = {
    "afterwards": HEADS.replace(SET, "").replace("self.apply(init)  #!\n", "self.apply(init)\n" + SET),
    "a layer of its own": OWN + HEADS.replace(SET, "").replace("nn.Linear(4, 1)", "Own(4, 1)"),
    "read before": HEADS.replace(SET, SET + "        self.start = self.head.bias.detach().clone()\n"),
    "all, and then some": HEADS.replace(SET, "        self.apply(init)\n").replace(
        "self.apply(init)  #!", "nn.init.constant_(self.head.bias, -4.6)"),
    "defaults of the library": HEADS.replace(SET, ""),
    "one for one": HEADS.replace("self.apply(init)  #!", "nn.init.zeros_(self.head.bias)"),
    "the same again": HEADS.replace("constant_(self.head.bias, -4.6)", "zeros_(self.head.bias)"),
    "an embedding": HEADS.replace("self.head.bias, -4.6", "self.body.weight, 0.1").replace(
        "        nn.init.xavier_uniform_(module.weight)\n", ""),
}  # fmt: skip
WORDS = "no recorded call in between reads it"


@pytest.mark.parametrize("name", WRONG)
def test_a_start_that_is_overwritten_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "sets `net.head.bias`, and `nn.init.zeros_(module.bias)`, which sets 2 parameters" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_starts_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
