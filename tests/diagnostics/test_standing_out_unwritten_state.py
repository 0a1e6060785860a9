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
WRONG = {
    "lerp": APART,
    "a sum": APART.replace(LERP, "first = 0.9 * first + 0.1 * p.grad  #!"),
    "in a pair": APART.replace(LERP, "first, g = 0.9 * first + 0.1 * p.grad, p.grad  #!"),
    "another name of the base": "from torch.optim import Optimizer as BaseOptimizer\n"
    + APART.replace("torch.optim.Optimizer", "BaseOptimizer"),
}
PLAIN = APART.replace("  #!", "")
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
        "ahead = p.grad + 0.0 * first").replace("first =", "ahead =")),
    "a number": PLAIN.replace('state["first"] = torch.zeros_like(p)', 'state["first"] = torch.zeros(())').replace(
        "first = torch.lerp(first, p.grad, 0.1)", "first = first + p.grad"),
    "another class": PLAIN.replace("torch.optim.Optimizer", "Optimal").replace("class Own", (
        "class Optimal(torch.optim.Optimizer): pass\nclass Own")),
    "few steps": PLAIN.replace("range(5)", "range(2)"),
    "not in an optimizer": PLAIN.replace("torch.optim.Optimizer", "object").replace(
        "super().__init__(params, dict(lr=lr))",
        "import collections\n        self.param_groups = [dict(params=list(params), lr=lr)]\n"
        "        self.state = collections.defaultdict(dict)",
    ).replace("opt.zero_grad()", "net.zero_grad()"),
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
