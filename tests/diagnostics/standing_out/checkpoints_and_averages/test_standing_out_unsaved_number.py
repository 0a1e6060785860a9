"""Checks the sentences about flags of modules and counts of optimizers that are plain attributes."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NORM = """\
import copy, io
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(3))
        self.ready = False  #!
    @torch.no_grad()
    def start(self, x):
        self.shift.copy_(-x.mean(0))
        self.ready = True
    def forward(self, x):
        if not self.ready:
            self.start(x)
        return x + self.shift
def make():
    return nn.Sequential(Norm(), nn.Linear(3, 1))
net = make()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
first = copy.deepcopy(net.state_dict())
for _ in range(5):
    loss = net(torch.randn(8, 3) + 4).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
file = io.BytesIO()
torch.save(net.state_dict(), file)
file.seek(0)
other = make()
other.load_state_dict(torch.load(file))
other.eval()
with torch.no_grad():
    other(torch.randn(8, 3) + 4)
"""
BUFFER = NORM.replace("self.ready = False", 'self.register_buffer("ready", torch.tensor(False))').replace(
    "self.ready = True", "self.ready.fill_(True)"
)
FLAGS = {
    "a file": NORM,
    "a file of copies": NORM.replace(
        "save(net.state_dict()", "save({k: v.clone() for k, v in net.state_dict().items()}"
    ),
    "the state dict itself": NORM.replace("torch.load(file)", "net.state_dict()"),
    "a copy": NORM.replace("torch.load(file)", "copy.deepcopy(net.state_dict())"),
    "data": NORM.replace("self.shift.copy_(-x.mean(0))", "self.shift.data = -x.mean(0)"),
    "a return": NORM.replace("if not self.ready:\n            self.start(x)", "self.start(x)").replace(
        "        self.shift.copy_", "        if self.ready:\n            return\n        self.shift.copy_"
    ),
    "a buffer": NORM.replace("nn.Parameter(torch.zeros(3))", "nn.Parameter(torch.zeros(3))#").replace(
        "        self.ready = False",
        '        self.register_buffer("mean", torch.zeros(3))\n        self.ready = False',
    ).replace(
        "self.shift.copy_(-x.mean(0))", "self.mean.copy_(x.mean(0))").replace(
        "+ self.shift", "+ self.shift - self.mean"),
    "a count": NORM.replace("self.ready = False", "self.ready = 0").replace(
        "self.ready = True", "self.ready += 1").replace("if not self.ready", "if self.ready == 0"),
    "an attribute of the class": NORM.replace("        self.ready = False  #!\n", "").replace(
        "class Norm(nn.Module):\n", "class Norm(nn.Module):\n    ready = False  #!\n"
    ),
}  # fmt: skip
NO_FLAGS = {
    "a flag that is a buffer": BUFFER,
    "a method takes the flag back": NORM.replace("    def forward", (
        "    def anew(self):\n        self.ready = False\n    def forward")).replace(
        "other.eval()", "other[0].anew()\nother.eval()"),
    "the flag is set": NORM.replace("other.eval()", "other[0].ready = True\nother.eval()"),
    "initialized before the load": NORM.replace(
        "other.load", "other(torch.randn(8, 3))\nother.load"),
    "the first state": NORM.replace("torch.load(file)", "first"),
    "a second training": NORM.replace(
        "other.load_state_dict(torch.load(file))", "third = make(); other.load_state_dict(third.state_dict())"),
    "other values": NORM.replace("other.load_state_dict(torch.load(file))\n", ""),
    "the same module": NORM.replace("other = make()", "other = net"),
}  # fmt: skip
FLAG = "overwrites what is loaded: `self.ready` is"


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_that_is_not_saved_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, FLAGS[name]) if FLAG in each.text)
    assert found.labels[0].span.line == marked(FLAGS[name])


@pytest.mark.parametrize("name", NO_FLAGS)
def test_other_flags_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, NO_FLAGS[name]) if "`self.ready`" in each.text] == []


ADAM = """\
class Mine(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, beta=0.9):
        super().__init__(params, dict(lr=lr, beta=beta))
        self.t = 0  #!
    @torch.no_grad()
    def step(self):
        self.t += 1
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["m"] = torch.zeros_like(p)
                state["m"].lerp_(p.grad, 1 - group["beta"])
                p.sub_(state["m"] / (1 - group["beta"] ** self.t), alpha=group["lr"])
def session(saved=None):
    net = nn.Linear(3, 1)
    opt = Mine(net.parameters())
    if saved is not None:
        net.load_state_dict(saved[0])
        opt.load_state_dict(saved[1])
    for _ in range(5):
        opt.zero_grad()
        net(torch.randn(8, 3)).square().mean().backward()
        opt.step()
    return net.state_dict(), opt.state_dict()
session(session())
"""
POWER = 'group["beta"] ** self.t'
COUNTS = {
    "an attribute": ADAM,
    "a variable": ADAM.replace("self.t += 1", "self.t = t = self.t + 1").replace("** self.t", "** t"),
    "a function": ADAM.replace("(1 - group[\"beta\"] ** self.t)", "rest(group[\"beta\"], self.t)").replace(
        "class Mine", "def rest(beta, count):\n    return 1 - beta ** count\nclass Mine"),
    "a method": ADAM.replace(POWER, "self.power(group[\"beta\"])").replace(
        "    @torch.no", "    def power(self, beta):\n        return math.pow(beta, self.t)\n    @torch.no", 1).replace(
        "class Mine", "import math\nclass Mine"),
    "a dict": ADAM.replace("self.t = 0", "self.t = {}").replace("        self.t += 1\n", "").replace(
        "                state = ",
        "                self.t[p] = self.t.get(p, 0) + 1\n                state = ").replace(
        "** self.t", "** self.t[p]"),
    "a default": ADAM.replace("self.t = 0", "self.t = defaultdict(int)").replace("        self.t += 1\n", "").replace(
        "                state = ", "                self.t[p] += 1\n                state = ").replace(
        "** self.t", "** self.t[p]").replace("class Mine", "from collections import defaultdict\nclass Mine"),
    "a tensor": ADAM.replace("self.t = 0", "self.t = torch.zeros(())").replace("self.t += 1", "self.t.add_(1)"),
}  # fmt: skip
NO_COUNTS = {
    "in the group": ADAM.replace("        self.t = 0", '        self.param_groups[0]["t"] = 0').replace(
        "        self.t += 1\n", "").replace(
        "            for p in", '            group["t"] += 1\n            for p in').replace("self.t", 'group["t"]'),
    "saved as well": ADAM.replace("opt.state_dict()\n", "opt.state_dict(), opt.t\n").replace(
        "opt.load_state_dict(saved[1])", "opt.load_state_dict(saved[1]); opt.t = saved[2]"),
    "a load of its own": ADAM.replace("    @torch.no", (
        "    def load_state_dict(self, state):\n        super().load_state_dict(state)\n"
        "        self.t = 5\n    @torch.no"), 1),
    "only shown": ADAM.replace(POWER, "group[\"beta\"]").replace(
        "self.t += 1", "self.t += 1\n        print(self.t, end='')"),
    "from the state": ADAM.replace("                state[\"m\"].lerp_", (
        "                state[\"t\"] = self.t = state.get(\"t\", 0) + 1\n                state[\"m\"].lerp_")).replace(
        "        self.t += 1\n", ""),
    "one dict of the class": ADAM.replace("        self.t = 0  #!\n", "").replace(
        "    def __init__", "    t = {0: 0}\n    def __init__", 1).replace("self.t += 1", "self.t[0] += 1").replace(
        "** self.t", "** self.t[0]"),
    "no load": ADAM.replace("        opt.load_state_dict(saved[1])\n", ""),
    "no averages": ADAM.replace("session(session())",
        "net, _ = session()\nsession((net, Mine(nn.Linear(3, 1).parameters()).state_dict()))"),
    "the same optimizer": ADAM.replace(
        "    return", "    opt.load_state_dict(opt.state_dict()); opt.zero_grad()\n"
        "    net(torch.randn(8, 3)).mean().backward(); opt.step()\n    return").replace(
        "session(session())", "session()"),
}  # fmt: skip
COUNT = "`self.t` counts from the beginning"


@pytest.mark.parametrize("name", COUNTS)
def test_a_count_that_is_not_saved_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, COUNTS[name]) if COUNT in each.text)
    assert found.labels[0].span.line == marked(COUNTS[name])


@pytest.mark.parametrize("name", NO_COUNTS)
def test_other_counts_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, NO_COUNTS[name]) if COUNT in each.text] == []
