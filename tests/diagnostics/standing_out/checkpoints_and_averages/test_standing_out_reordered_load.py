"""Checks the sentence about an optimizer that loads averages for parameters in another order."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.head(self.body(x).tanh())

def train(net, opt):
    for _ in range(4):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()

net = Net()
opt = torch.optim.Adam([{"params": net.body.parameters()}, {"params": net.head.parameters()}])
train(net, opt)
state = net.state_dict(), opt.state_dict()
new = Net()
new.load_state_dict(state[0])
more = torch.optim.Adam([{"params": new.head.parameters()}, {"params": new.body.parameters()}])
more.load_state_dict(state[1])  #!
train(new, more)
"""
ORDER = '[{"params": new.head.parameters()}, {"params": new.body.parameters()}]'
ONE = NET.replace('[{"params": net.body.parameters()}, {"params": net.head.parameters()}]', "net.parameters()")
SAVED = """\
import io
def train(net, opt):
    for _ in range(4):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()

net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
opt = torch.optim.Adam(net.parameters())
train(net, opt)
disk = io.BytesIO()
torch.save({"net": net, "opt": opt.state_dict()}, disk)
disk.seek(0)
saved = torch.load(disk, weights_only=False)
named = dict(saved["net"].named_parameters())
more = torch.optim.Adam([named[name] for name in sorted(named, reverse=True)])
more.load_state_dict(saved["opt"])  #!
train(saved["net"], more)
"""
WRONG = {
    "a module from a file": SAVED,
    "weights that are loaded later": NET.replace("new.load_state_dict(state[0])\n", "").replace(
        "#!", "#!\nnew.load_state_dict(state[0])"
    ),
    "groups": NET,
    "a list": ONE.replace(ORDER, "list(new.parameters())[::-1]").replace("nn.Linear(4, 4)", "nn.Linear(4, 4, False)"),
    "the same model": NET.replace("new = Net()", "new = net"),
}
RIGHT = {
    "a module from a file": SAVED.replace("sorted(named, reverse=True)", "named"),
    "a state in the new order": SAVED.replace("more.load_state_dict(saved['opt'])", (
        "old = list(saved['opt']['state'].values())\nsaved['opt']['state'] = dict(enumerate(old[::-1]))\n"
        "more.load_state_dict(saved['opt'])")).replace("sorted(named, reverse=True)", "reversed(named)").replace(
        'more.load_state_dict(saved["opt"])', (
        "old = list(saved['opt']['state'].values())\nsaved['opt']['state'] = dict(enumerate(old[::-1]))\n"
        "more.load_state_dict(saved['opt'])")),
    "a new state in this order": NET.replace("more.load_state_dict(state[1])", (
        "old = state[1].pop('state')\nnew_state = {k: old[(k + 2) % 4] for k in old}\n"
        "more.load_state_dict({**state[1], 'state': new_state})")),
    "the same order": NET.replace(ORDER, '[{"params": new.body.parameters()}, {"params": new.head.parameters()}]'),
    "all parameters": ONE.replace(ORDER, "new.parameters()"),
    "a state that is put into this order": NET.replace("more.load_state_dict(", (
        "old = state[1]['state']\nstate[1]['state'] = {k: old[(k + 2) % 4] for k in range(4)}\nmore.load_state_dict(")),
    "another optimizer with this order": NET.replace("\ntrain(net, opt)", (
        "\ntrain(net, opt)\nthird = Net()\nopt = torch.optim.Adam([{'params': third.head.parameters()}, "
        "{'params': third.body.parameters()}])\ntrain(third, opt)")),
    "not loaded": NET.replace("more.load_state_dict(state[1])  #!\n", ""),
}  # fmt: skip
WORDS = "in another order than the one"


@pytest.mark.parametrize("name", WRONG)
def test_another_order_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_the_same_order_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
