"""Checks the sentence about batch norm whose momentum is the weight of what it had."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
net = nn.Sequential(
    nn.Linear(3, 8),
    nn.BatchNorm1d(8, momentum=0.99),  #!
    nn.ReLU(),
    nn.Linear(8, 1),
)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    loss = net(torch.randn(8, 3)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
net.eval()
with torch.no_grad():
    net(torch.randn(8, 3))
"""
WRONG = {
    "in a layer": NET,
    "a name": NET.replace("momentum=0.99", "momentum=KEPT").replace("net =", "KEPT = 0.99\nnet =", 1),
}
OWN = """\
class Own(nn.Module):
    def __init__(self, size, **options):
        super().__init__()
        self.options = options
        self.register_buffer("mean", torch.zeros(size))
        self.register_buffer("power", torch.ones(size))
    def forward(self, x):
        return nn.functional.batch_norm(x, self.mean, self.power, None, None, self.training, **self.options)  #!
"""
FUNCTIONAL = OWN + NET.replace("nn.BatchNorm1d(8, momentum=0.99),  #!", "Own(8, momentum=0.99),")
SET = "for layer in net.modules():\n    if isinstance(layer, nn.BatchNorm1d):\n        layer.momentum = 0.99\nopt ="
WRONG |= {
    "the function": FUNCTIONAL,
    "its position": FUNCTIONAL.replace("**self.options", "0.99"),
    "set later": NET.replace(", momentum=0.99", "").replace("opt =", SET),
    "a subclass": "class Norm(nn.BatchNorm1d):\n    def __init__(self, size):\n"
    "        super().__init__(size, 1e-3, 0.99)  #!\n"
    + NET.replace("nn.BatchNorm1d(8, momentum=0.99),  #!", "Norm(8),"),
}
RIGHT = {
    "the function, as PyTorch counts it": FUNCTIONAL.replace("momentum=0.99", "momentum=0.01"),
    "the function with the statistics of each batch": FUNCTIONAL.replace("None, self.training", "None, True"),
    "fast at the end": NET.replace(", momentum=0.99", "").replace("net.eval()", (
        "net[1].momentum = 0.99\nwith torch.no_grad():\n    [net(torch.randn(8, 3)) for _ in range(4)]\nnet.eval()")),
    "as PyTorch counts it": NET.replace("0.99", "0.01"),
    "the last batch": NET.replace("0.99", "1.0"),
    "never in eval mode": NET.replace("net.eval()\n", ""),
    "never updated": NET.replace("for _ in range(4):", "net.eval()\nfor _ in range(4):"),
    "another value of the name": NET.replace("momentum=0.99", "momentum=m").replace(
        "net =", "m = 0.99\nm = 0.1\nnet =", 1),
    "a layer without statistics": NET.replace("momentum=0.99", "momentum=0.99, track_running_stats=False").replace(
        "nn.ReLU()", "nn.BatchNorm1d(8)"),
    "a schedule of it": NET.replace("    loss =", "    net[1].momentum = 0.5 ** (_ + 1)\n    loss ="),
    "another meaning": NET.replace("net =", (
        "class KerasBatchNorm(nn.BatchNorm1d):\n    def __init__(self, size, momentum):\n"
        "        super().__init__(size, momentum=1 - momentum)\n\nnet =")).replace(
        "nn.BatchNorm1d(8,", "KerasBatchNorm(8,"),
    "another layer is evaluated": NET.replace("net.eval()", (
        "net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).eval()")),
    "a copy that adapts after training": NET.replace(", momentum=0.99", "").replace("net.eval()", (
        "import copy\nnet = copy.deepcopy(net)\nnet[1].momentum = 0.99\n"
        "for _ in range(4): net.train()(torch.randn(8, 3)); net.eval()")),
    "an optimizer": NET.replace(", momentum=0.99", "").replace("lr=0.1", "lr=0.1, momentum=0.99"),
}  # fmt: skip
WORDS = "running statistics"


@pytest.mark.parametrize("name", WRONG)
def test_a_momentum_of_the_new_batch_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "0.99 times those of the last batch, plus 0.01 times what they were" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_momenta_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []


def test_an_attribute_of_another_object_has_no_label(tmp_path: Path) -> None:
    body = "class Plan:\n    pass\nplan = Plan()\nplan.momentum = 0.99\n" + NET
    (found,) = (each for each in sentences(tmp_path, body) if WORDS in each.text)
    assert [each.text for each in found.labels] == ["the layer is made here"]
