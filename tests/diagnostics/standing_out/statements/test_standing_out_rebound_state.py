"""Checks the sentence about updates of kept averages that only set the variable of a loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

OWN = """\
net = nn.Linear(4, 1)
means = [torch.zeros_like(p) for p in net.parameters()]
for _ in range(4):
    net.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    for p, mean in zip(net.parameters(), means):
        mean = 0.9 * mean + 0.1 * p.grad  #!
        p.data -= 0.1 * mean
"""
AVERAGE = """\
import copy
net = nn.Linear(4, 1)
average = copy.deepcopy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
    for key, value in average.state_dict().items():
        value = 0.9 * value + 0.1 * net.state_dict()[key]  #!
print(average(torch.ones(1, 4)).shape, end="")
"""
WRONG = {"a momentum": OWN, "an average": AVERAGE}
IN_PLACE = OWN.replace("mean = 0.9 * mean + 0.1 * p.grad  #!", "mean.mul_(0.9).add_(0.1 * p.grad)")
RIGHT = {
    "in place": IN_PLACE,
    "stored again": OWN.replace("for p, mean in zip(net.parameters(), means)",
                                "for n, (p, mean) in enumerate(zip(net.parameters(), means))")
    .replace("  #!\n", "\n        means[n] = mean\n"),
    "stored again, with a fixed factor": OWN.replace("for p, mean in zip(net.parameters(), means)", (
        "for n, (p, mean, mask) in enumerate(zip(net.parameters(), means, masks))")).replace(
        "+ 0.1 * p.grad  #!\n", "+ 0.1 * p.grad * mask\n        means[n] = mean\n").replace(
        "for _ in", "masks = [torch.ones_like(p) for p in net.parameters()]\nfor _ in", 1),
    "copied into it": AVERAGE.replace("value = 0.9", "value.copy_(0.9").replace("[key]  #!", "[key])"),
    "between two models, and a distance": AVERAGE.replace(
        "        value = 0.9 * value + 0.1 * net.state_dict()[key]  #!\n",
        "        value = 0.5 * value + 0.5 * net.state_dict()[key]\n        between.append(value)\n"
        "    for p, q in zip(net.parameters(), average.parameters()):\n        q = q - p\n"
        "        far += q.square().sum().item()\n").replace("import copy\n", "import copy\nbetween, far = [], 0.0\n"),
    "a pull to the start": OWN.replace("torch.zeros_like(p)", "p.detach().clone()").replace(
        "0.9 * mean + 0.1 * p.grad  #!", "p.data - mean"),
    "noise on data": """
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        batches = [torch.randn(8, 4) for _ in range(3)]
        for _ in range(2):
            for x in batches:
                x = 0.9 * x + 0.1 * torch.randn(8, 4)
                opt.zero_grad()
                net(x).square().mean().backward()
                opt.step()
        """,
    "a penalty of the change": """
        net = nn.Linear(4, 1)
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        first = [p.detach().clone() for p in net.parameters()]
        for _ in range(4):
            loss = net(torch.randn(8, 4)).square().mean()
            for p, old in zip(net.parameters(), first):
                change = p - old
                loss = loss + change.square().sum()
            opt.zero_grad()
            loss.backward()
            opt.step()
        """,
}  # fmt: skip
WORDS = "the tensor that the loop gives it stays as it is"


@pytest.mark.parametrize("name", WRONG)
def test_an_update_that_sets_a_variable_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_updates_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
