"""Checks the sentence about lines that add to the items of a `state_dict()` that is no copy."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

BODY = """\
import copy
nets = [nn.Linear(4, 1) for _ in range(3)]
for net in nets:
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()
average = nets[0].state_dict()
for net in nets[1:]:
    for key, value in net.state_dict().items():
        average[key] += value  #!
print(nets[0](torch.ones(1, 4)).shape, end="")
"""
SUMS = """\
from collections import OrderedDict
nets = [nn.Linear(4, 1) for _ in range(3)]
opts = [torch.optim.SGD(net.parameters(), lr=0.1) for net in nets]
served = nn.Linear(4, 1)
for _ in range(4):
    for net, opt in zip(nets, opts):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()
    first, *rest = [net.state_dict() for net in nets]
    total = OrderedDict(first)
    for other in rest:
        for key, value in other.items():
            total[key].add_(value)  #!
    served.load_state_dict({key: value / 3 for key, value in total.items()})
    print(served(torch.ones(1, 4)).shape, end="")
"""
WRONG_SUMS = {
    "a new dict": SUMS,
    "the dict": SUMS.replace("OrderedDict(first)", "first"),
    "the values": SUMS.replace("for key, value in other.items()", "for a, b in zip(total.values(), other.values())")
    .replace("total[key].add_(value)", "a += b"),
}  # fmt: skip
LOOP = (
    SUMS.split("    for other in rest:")[0]
    + """\
    for other in rest:
        torch._foreach_add_(list(total.values()), list(other.values()))  #!
    torch._foreach_div_(list(total.values()), 3)
    for net in nets:
        for name, p in net.named_parameters():
            p.data.lerp_(total[name], 0.2)
"""
)
WRONG_SUMS |= {
    "all of them together": LOOP.split("    torch._foreach_div_")[0],
    "its mean mixed into the others": LOOP,
    "its mean mixed by factors": LOOP.replace(
        "p.data.lerp_(total[name], 0.2)", "p.data.mul_(0.8).add_(total[name], alpha=0.2)"),
    "a mix that is loaded": LOOP.split("        for name")[0]
    + "        net.load_state_dict({key: 0.8 * v + 0.2 * total[key] for key, v in net.state_dict().items()})\n",
    "the data of the items": LOOP.replace("torch._foreach_add_(list(total.values()), list(other.values()))  #!",
    "\n        for key, value in other.items():\n            total[key].data += value  #!"),
}  # fmt: skip
RIGHT = {
    "a mean of copies mixed into all": LOOP.replace("OrderedDict(first)", "{k: v.clone() for k, v in first.items()}"),
    "its mean that the others load": LOOP.replace("p.data.lerp_(total[name], 0.2)", "p.data.copy_(total[name])"),
    "sums of copies": SUMS.replace("OrderedDict(first)", "{key: value.clone() for key, value in first.items()}"),
    "all load the average": SUMS
    + "    for net in nets:\n        net.load_state_dict({key: value / 3 for key, value in total.items()})\n",
    "an average in place": SUMS + "    for value in total.values():\n        value.div_(3)\n",
    "mixed by weights": SUMS.replace("total[key].add_(value)", "total[key].mul_(0.5).add_(value, alpha=0.5)"),
    "at the end": SUMS.replace("range(4)", "range(1)"),
    "a copy": BODY.replace("nets[0].state_dict()", "copy.deepcopy(nets[0].state_dict())"),
    "new tensors": BODY.replace("nets[0].state_dict()", "{k: v.clone() for k, v in nets[0].state_dict().items()}"),
    "noise of a new model": BODY.replace("average[key] += value", "average[key] = average[key]")
    + (
        "for net in nets:\n    fresh = nn.Linear(4, 1).state_dict()\n"
        "    for value, new in zip(net.state_dict().values(), fresh.values()):\n"
        "        value.add_(new, alpha=0.05)\n"
        "    opt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "    net(torch.randn(8, 4)).square().mean().backward()\n    opt.step()\n"
    ),
    "not in place": BODY.replace("average[key] += value", "average[key] = average[key] + value"),
    "of a model that nothing trains": BODY.replace("nets[0].state_dict()", "nn.Linear(4, 1).state_dict()"),
}
ADAPTER = """\
net, low = nn.Linear(4, 1), torch.randn(1, 4)
base = {key: value.clone() for key, value in net.state_dict().items()}
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
merged = net.state_dict()
merged["weight"] += low
net.load_state_dict(merged)
print(net(torch.ones(1, 4)).shape, end="")
"""
RIGHT |= {
    "an adapter that is merged": ADAPTER,
    "an adapter that is merged in place": ADAPTER.replace("net.load_state_dict(merged)\n", ""),
}
WORDS = "is no copy"


def test_a_state_dict_that_is_added_to_is_named(tmp_path: Path) -> None:
    (found,) = (each for each in sentences(tmp_path, BODY) if WORDS in each.text)
    assert found.text.startswith("`average[key] += value` changes `net.weight` and `net.bias`: `nets[0].state_dict()`")
    assert found.labels[0].span.line == marked(BODY)


@pytest.mark.parametrize("name", WRONG_SUMS)
def test_a_sum_of_states_that_steps_go_on_training_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG_SUMS[name]) if WORDS in each.text)
    assert "`, which steps go on training: `net.state_dict()` is no copy" in found.text
    assert found.labels[0].span.line == marked(WRONG_SUMS[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_state_dicts_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
