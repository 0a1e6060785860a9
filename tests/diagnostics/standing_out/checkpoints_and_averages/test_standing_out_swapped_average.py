"""Checks the sentence about moving averages that take nearly all of the present weights."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
import copy
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
ema = copy.deepcopy(net).requires_grad_(False)
"""
UPDATE = """\
def update(average, model, decay=0.99):
    with torch.no_grad():
        for a, p in zip(average.parameters(), model.parameters()):
            a.lerp_(p, decay)  #!

"""
LINE = "            a.lerp_(p, decay)  #!\n"
TRAIN = """\
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    opt.zero_grad()
    (net(torch.randn(8, 4)) - 1).square().mean().backward()
    opt.step()
    update(ema, net)
"""
CLASS = """\
from dataclasses import dataclass

@dataclass
class Config:
    lr: float = 0.1
    tau: float = 0.995

class Average:
    def __init__(self, model, tau):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.tau = tau

    def step(self, model):
        for a, p in zip(self.model.parameters(), model.parameters()):
            a.data.copy_(self.tau * p.data + (1.0 - self.tau) * a.data)  #!

average = Average(net, Config().tau)
"""


def line(text: str) -> str:
    return NET + UPDATE.replace(LINE, f"            {text}\n") + TRAIN


MEAN = (
    NET + "from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn\n"
    "def averaged(model, decay):\n    return AveragedModel(model, avg_fn=lambda mean, new, count: SUM)\n\n"
    "ema = averaged(net, 0.99)\n"
    + TRAIN.replace("update(ema, net)", "ema.update_parameters(net)  #!")
)  # fmt: skip
STORE = (
    NET.replace("ema = copy.deepcopy(net).requires_grad_(False)", "")
    + "store = {k: p.detach().clone() for k, p in net.named_parameters()}\n"
    + TRAIN.replace(
        "update(ema, net)\n", "for k, p in net.named_parameters():\n        store[k].lerp_(p.data, 0.99)  #!\n"
    )
)
OF_CLASS = TRAIN.replace("update(ema, net)", "average.step(net)")
WRONG = {
    "the function of an AveragedModel": MEAN.replace("SUM", "mean * (1 - decay) + new * decay"),
    "the same by lerp": MEAN.replace("SUM", "torch.lerp(mean, new, decay)"),
    "the same by a difference": MEAN.replace("SUM", "mean + decay * (new - mean)"),
    "tensors in a dict": STORE,
    "all at once": NET + TRAIN.replace("update(ema, net)", "with torch.no_grad():\n"
    "        torch._foreach_lerp_(list(ema.parameters()), list(net.parameters()), 0.99)  #!"),
    "a loaded blend": NET + TRAIN.replace("update(ema, net)", "new = net.state_dict()\n"
    "    ema.load_state_dict({k: 0.01 * v + 0.99 * new[k] for k, v in ema.state_dict().items()})  #!"),
    "lerp": NET + UPDATE + TRAIN,
    "mul and add": line("a.mul_(1 - decay).add_(p, alpha=decay)  #!"),
    "mul and add of a product": line("a.mul_(1 - decay).add_(decay * p)  #!"),
    "a sum": line("a.data = decay * p.data + (1 - decay) * a.data  #!"),
    "a small tau with the wrong weights": line("a.copy_(0.005 * a + 0.995 * p)  #!"),
    "a copy of a lerp": line("a.copy_(a.lerp(p, decay))  #!"),
    "lerp as a function": line("a.data = torch.lerp(a, p, weight=decay)  #!"),
    "lerp from the other end": line("a.copy_(p.lerp(a, 1 - decay))  #!"),
    "an argument of the call": NET + UPDATE.replace("=0.99", "") + TRAIN.replace("(ema, net)", "(ema, net, 0.999)"),
    "a class with a configuration": NET + CLASS + OF_CLASS,
    "an option": "import argparse\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--ema-decay', type=float, default=0.95)\nargs = parser.parse_args([])\n"
    + NET + UPDATE + TRAIN.replace("(ema, net)", "(ema, net, args.ema_decay)"),
}  # fmt: skip
RIGHT = {
    "the function of an AveragedModel": MEAN.replace("SUM", "mean * decay + new * (1 - decay)").replace("  #!", ""),
    "a function of the count": MEAN.replace("SUM", "mean + (new - mean) / (count + 1)").replace("  #!", ""),
    "a decay of the lambda": MEAN.replace("SUM", "mean * (1 - decay) + new * decay").replace("  #!", "").replace(
        "new, count", "new, count, decay=0.01"),
    "an AveragedModel": MEAN.replace("  #!", "").replace("averaged(net, 0.99)", "AveragedModel(net)"),
    "an average of PyTorch": MEAN.replace("  #!", "").replace(
        "averaged(net, 0.99)", "AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.99))"),
    "tensors in a dict": STORE.replace("0.99)  #!", "0.01)"),
    "lerp": NET + UPDATE.replace("decay)  #!", "1 - decay)") + TRAIN,
    "a copy of a lerp": line("a.copy_(a.lerp(p, 1 - decay))"),
    "lerp from the other end": line("a.copy_(p.lerp(a, decay))"),
    "lerp as a function, from the other end": line("a.copy_(torch.lerp(p, end=a, weight=decay))"),
    "mul and add": line("a.mul_(decay).add_(p, alpha=1 - decay)"),
    "a sum": line("a.data = decay * a.data + (1 - decay) * p.data"),
    "a small tau": line("a.copy_(0.995 * a + 0.005 * p)"),
    "lookahead": NET + UPDATE.replace("0.99", "0.8").replace("  #!", "") + TRAIN,
    "a hard copy": line("a.copy_(p)"),
    "a weight that grows": line("a.lerp_(p, 1 / (1 + step))"),
    "two decays": NET + UPDATE.replace("  #!", "") + TRAIN + "    update(copy.deepcopy(ema), net, 0.5)\n",
    "a hard copy, written as a sum": line("a.copy_(0.0 * a + 1.0 * p)"),
    "several statements in a line": line("x = a; a.lerp_(p, 0.01); x.clone().lerp_(p, 0.95)"),
    "set by name": NET + CLASS.replace("  #!", "").replace("Config().tau", "config.tau").replace(
        "average = ", 'config = Config()\nsetattr(config, "tau", 0.01)\naverage = ') + OF_CLASS,
    "an option that is given": "import argparse\nparser = argparse.ArgumentParser()\n"
    "parser.add_argument('--ema-decay', type=float, default=0.95)\n"
    "args = parser.parse_args(['--ema-decay', '0.01'])\n"
    + NET + UPDATE.replace("  #!", "") + TRAIN.replace("(ema, net)", "(ema, net, args.ema_decay)"),
    "now and then": NET + UPDATE.replace("  #!", "")
    + TRAIN.replace("    update", "    if step % 3 == 2:\n        update"),
}  # fmt: skip
RIGHT["tasks that begin with it"] = NET + UPDATE.replace("  #!", "").replace("0.99", "0.9") + TRAIN.replace(
    "    opt.zero_grad()", "    net.load_state_dict(ema.state_dict())\n    opt.zero_grad()")  # fmt: skip
WORDS = "does the opposite"


@pytest.mark.parametrize("name", WRONG)
def test_an_average_of_the_present_weights_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_an_average_over_many_steps_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
