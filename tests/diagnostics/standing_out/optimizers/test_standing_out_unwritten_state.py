"""Checks the sentence about zeros of an optimizer that its steps read and never write."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

OWN = """\
class Own(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["first"], state["second"] = torch.zeros_like(p), torch.zeros_like(p)
                first, second = state["first"], state["second"]
                first = torch.lerp(first, p.grad, 0.1)  #!
                second.mul_(0.9).addcmul_(p.grad, p.grad, value=0.1)
                p.addcdiv_(first, second.sqrt() + 1e-8, value=-group["lr"])

net = nn.Linear(4, 1)
opt = Own(net.parameters())
for _ in range(5):
    loss = net(torch.randn(8, 4)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LERP = "first = torch.lerp(first, p.grad, 0.1)  #!"
MADE = 'state["first"], state["second"] = torch.zeros_like(p), torch.zeros_like(p)'
APART = OWN.replace(MADE, (
    'state["first"] = torch.zeros_like(p)\n                    state["second"] = torch.zeros_like(p)'))  # fmt: skip
PLAIN = APART.replace("  #!", "")
WRONG = {
    "lerp": APART,
    "a sum": APART.replace(LERP, "first = 0.9 * first + 0.1 * p.grad  #!"),
    "in a pair": APART.replace(LERP, "first, g = 0.9 * first + 0.1 * p.grad, p.grad  #!"),
    "another name of the base": "from torch.optim import Optimizer as BaseOptimizer\n"
    + APART.replace("torch.optim.Optimizer", "BaseOptimizer"),
}
PLAIN_CLASS = """\
class Own:
    def __init__(self, parameters):
        self.parameters = list(parameters)
        self.means = {i: torch.zeros_like(p) for i, p in enumerate(self.parameters)}

    @torch.no_grad()
    def step(self):
        for i, p in enumerate(self.parameters):
            mean = torch.lerp(self.means[i], p.grad, 0.1)  #!
            p.sub_(mean, alpha=0.1)

net = nn.Linear(4, 1)
opt = Own(net.parameters())
for _ in range(5):
    loss = net(torch.randn(8, 4)).square().mean()
    net.zero_grad()
    loss.backward()
    opt.step()
"""
FUNCTION = """\
net = nn.Linear(4, 1)
parameters = list(net.parameters())
velocity = [torch.zeros_like(p) for p in parameters]

@torch.no_grad()
def step():
    for p, v in zip(parameters, velocity):
        v = 0.9 * v + p.grad  #!
        p.sub_(v, alpha=0.1)

for _ in range(5):
    loss = net(torch.randn(8, 4)).square().mean()
    net.zero_grad()
    loss.backward()
    step()
"""
WRONG |= {
    "a class of its own": PLAIN_CLASS,
    "a class of its own, with items": PLAIN_CLASS.replace("for i, p in enumerate(self.parameters):", (
        "for p, old in zip(self.parameters, self.means.values()):")).replace(
        "torch.lerp(self.means[i], p.grad, 0.1)", "old.mul(0.9).add(p.grad, alpha=0.1)"),
    "an attribute of an object": PLAIN_CLASS.replace("torch.zeros_like(p) for", (
        "SimpleNamespace(mean=torch.zeros_like(p)) for")).replace("self.means[i],", "self.means[i].mean,").replace(
        "class Own", "from types import SimpleNamespace\nclass Own"),
    "a function": FUNCTION,
    "the top level": FUNCTION.replace("@torch.no_grad()\ndef step():", "def nothing(): pass\n").replace(
        FUNCTION[FUNCTION.index("    for p"):FUNCTION.index("\nfor _")], "",
    ).replace("    step()", "    with torch.no_grad():\n"
        "        for name, (p, v) in enumerate(zip(parameters, velocity)):\n"
        "            v = torch.add(p.grad, v.mul(0.9))  #!\n            p.sub_(v, alpha=0.1)"),
    "an optimizer of another name": PLAIN.replace("torch.optim.Optimizer", "object").replace(
        "super().__init__(params, dict(lr=lr))",
        "import collections\n        self.param_groups = [dict(params=list(params), lr=lr)]\n"
        "        self.state = collections.defaultdict(dict)",
    ).replace("opt.zero_grad()", "net.zero_grad()").replace("p.grad, 0.1)", "p.grad, 0.1)  #!"),
}  # fmt: skip
RIGHT = {
    "in place": PLAIN.replace("first = torch.lerp(first, p.grad, 0.1)", "first.lerp_(p.grad, 0.1)"),
    "kept": PLAIN.replace("first = torch.lerp(first, p.grad, 0.1)", 'first = state["first"] = first.lerp(p.grad, 0.1)'),
    "copied": PLAIN.replace("first = torch.lerp(first, p.grad, 0.1)", "first.copy_(first.lerp(p.grad, 0.1))"),
    "a constant": PLAIN.replace("first = torch.lerp(first, p.grad, 0.1)", "first = torch.maximum(first, p.grad)"),
    "an option": PLAIN.replace("first = torch.lerp(first, p.grad, 0.1)", (
        "if group['lr'] > 1:\n                    first.mul_(0.9).add_(p.grad)\n"
        "                first = p.grad + 0.0 * first")),
    "memory that NumPy shares": PLAIN.replace("first = torch.lerp(first, p.grad, 0.1)", (
        "array = first.numpy()\n                array += p.grad.numpy()\n                first = first.mul(0.1)")),
    "data that is replaced": PLAIN.replace("first = torch.lerp(first, p.grad, 0.1)", (
        "state['first'].data = first.lerp(p.grad, 0.1)\n                first = 0.9 * first")),
    "a key that a method writes": PLAIN.replace("    @torch.no_grad()", (
        "    def take(self, p, mean): self.state[p]['first'] = mean\n\n    @torch.no_grad()")),
    "a function below the class": PLAIN.replace("net = nn.Linear(4, 1)", (
        "def keep(state, g): state['first'].add_(g)\nnet = nn.Linear(4, 1)")),
    "a list that is given away": PLAIN.replace("first = torch.lerp", (
        "if group['lr'] > 1: torch._foreach_add_([first], [p.grad])\n                first = torch.lerp")),
    "another variable": PLAIN.replace("first = torch.lerp(first, p.grad, 0.1)", (
        "ahead = p.grad + first").replace("first =", "ahead =")),
    "a number": PLAIN.replace('state["first"] = torch.zeros_like(p)', 'state["first"] = torch.zeros(())').replace(
        "first = torch.lerp(first, p.grad, 0.1)", "first = first + p.grad"),
    "another class": PLAIN.replace("torch.optim.Optimizer", "Optimal").replace("class Own", (
        "class Optimal(torch.optim.Optimizer): pass\nclass Own")),
    "few steps": PLAIN.replace("range(5)", "range(2)"),
    "steps that go on from a start": FUNCTION.replace("v = 0.9 * v + p.grad  #!", (
        "\n        for _ in range(3): v = 0.9 * v + p.grad\n       ")),
    "a list that gets the new one": FUNCTION.replace("for p, v in zip(parameters, velocity):", (
        "for i, (p, v) in enumerate(zip(parameters, velocity)):")).replace(
        "p.grad  #!", "p.grad; velocity[i] = v"),
    "a list that a branch writes": FUNCTION.replace("p.grad  #!", (
        "p.grad\n        if v.sum() > 1e9: v.copy_(p.grad)")),
    "zeros that are no state": FUNCTION.replace("v = 0.9 * v + p.grad  #!", "g = v + p.grad").replace(
        "sub_(v", "sub_(g"),
    "a method that resets": PLAIN_CLASS.replace("  #!", "").replace("    @torch.no_grad()", (
        "    def keep(self, i, mean): self.means[i] = mean\n\n    @torch.no_grad()")),
}  # fmt: skip
WORDS = "no call writes to them"


@pytest.mark.parametrize("name", WRONG)
def test_zeros_that_are_never_written_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert "has made for a parameter 5 times" in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_zeros_that_are_written_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
