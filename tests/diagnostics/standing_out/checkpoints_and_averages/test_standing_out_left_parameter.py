"""Checks the sentence about parameters that a load leaves out, while an optimizer loads their averages."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.script_under_training import said
from support.standing_out import HEAD, marked

BODY = """\
import io

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 2)
        self.scale = nn.Parameter(torch.ones(2))

    def forward(self, x):
        return self.head(self.body(x).tanh()) * self.scale

def train(net, opt):
    for _ in range(3):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()

def made():
    net = Net()
    return net, torch.optim.Adam(net.parameters(), lr=0.01)

net, opt = made()
train(net, opt)
buffer = io.BytesIO()
kept = {k: v for k, v in net.state_dict().items() if "head" not in k}
torch.save({"net": kept, "opt": opt.state_dict()}, buffer)
buffer.seek(0)
state = torch.load(buffer)
net, opt = made()
net.load_state_dict(state["net"], strict=False)  #!
opt.load_state_dict(state["opt"])
train(net, opt)
"""
LOAD = 'net.load_state_dict(state["net"], strict=False)  #!\n'
ALL = BODY.replace(' if "head" not in k', "")
WRONG = {
    "not saved": BODY,
    "the optimizer first": BODY.replace(LOAD + 'opt.load_state_dict(state["opt"])\n', (
        'opt.load_state_dict(state["opt"])\n' + LOAD)),
    "not loaded": ALL.replace(LOAD, (
        "net.body.load_state_dict({k[5:]: v for k, v in state['net'].items() if k.startswith('body')})  #!\n"
        "net.scale.data.copy_(state['net']['scale'])\n")),
    "copied by lines": BODY.replace(LOAD, (
        "with torch.no_grad():\n    for name, p in net.named_parameters():\n"
        "        if name in state['net']: p.copy_(state['net'][name])  #!\n")),
}  # fmt: skip
PLAIN = BODY.replace("  #!", "")
RIGHT = {
    "all": ALL.replace("  #!", ""),
    "from two files": PLAIN.replace("opt.load_state_dict", (
        "net.head.load_state_dict({'weight': torch.ones(2, 4), 'bias': torch.zeros(2)})\nopt.load_state_dict")),
    "as numbers": PLAIN.replace("opt.load_state_dict", (
        "net.head.bias.data.fill_(float(state['net']['scale'].mean()))\n"
        "nn.init.constant_(net.head.weight, state['net']['scale'].mean().item())\nopt.load_state_dict")),
    "as data": PLAIN.replace("opt.load_state_dict", (
        "for p in net.head.parameters(): p.data = torch.ones(p.shape)\nopt.load_state_dict")),
    "an optimizer without averages": PLAIN.replace("torch.optim.Adam", "torch.optim.SGD"),
    "a new head with a new optimizer": PLAIN.replace('opt.load_state_dict(state["opt"])\n', ""),
    "a model that goes on": PLAIN.replace("net, opt = made()\nnet.load", (
        "opt = torch.optim.Adam(net.parameters(), lr=0.01)\nnet.load")),
    "an optimizer of a part": PLAIN.replace("Adam(net.parameters()", "Adam([*net.body.parameters(), net.scale]"),
    "tied": PLAIN.replace("nn.Linear(4, 2)\n", (
        "nn.Linear(4, 4)\n        self.head.weight = self.body.weight\n")).replace(
        "torch.ones(2)", "torch.ones(4)").replace('if "head" not in k', 'if k != "head.weight"'),
}  # fmt: skip
WORDS = "begin with the values that they were made with"


@pytest.mark.parametrize("name", WRONG)
def test_parameters_that_a_load_leaves_out_are_named(tmp_path: Path, name: str) -> None:
    (found,), _ = said(tmp_path, HEAD + WRONG[name], WORDS)
    assert found.labels[0].span.line == marked(WRONG[name]) + 2  # `said` adds two lines
    assert "of `net.head.weight` and `net.head.bias`, which" in found.text
    assert "a line has loaded the other 3 parameters of the `Adam`" in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_parameters_that_are_loaded_are_left_alone(tmp_path: Path, name: str) -> None:
    assert said(tmp_path, HEAD + RIGHT[name], WORDS)[0] == []
