"""Checks the sentence about averages that parameters of one shape share."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

MOMENTUM = """\
class Momentum:
    def __init__(self, params):
        self.params, self.means = list(params), {}

    @torch.no_grad()
    def step(self):
        for p in self.params:
            mean = self.means.setdefault(p.shape, torch.zeros_like(p))  #!
            mean.mul_(0.9).add_(p.grad)
            p.sub_(mean, alpha=0.01)

net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
opt = Momentum(net.parameters())
for _ in range(4):
    net.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
"""
UPDATE = "mean.mul_(0.9).add_(p.grad)"
WRONG = {
    "setdefault": MOMENTUM,
    "an item": MOMENTUM.replace("mean = self.means.setdefault(p.shape, torch.zeros_like(p))  #!", (
        "self.means[p.size()] = 0.9 * self.means.get(p.size(), torch.zeros_like(p)) + p.grad  #!")).replace(
        UPDATE, "mean = self.means[p.size()]"),
    "a text of a function": "def key(p):\n    return 'x'.join(map(str, p.size()))  #!\n" + MOMENTUM.replace(
        "p.shape, torch.zeros_like(p))  #!", "key(p), torch.zeros_like(p))"),
    "a method that gives the buffer": MOMENTUM.replace("    @torch.no_grad()", (
        "    def slot(self, p):\n        return self.means.setdefault((p.ndim, p.numel()), torch.zeros_like(p))  #!\n"
        "    @torch.no_grad()")).replace("self.means.setdefault(p.shape, torch.zeros_like(p))  #!", "self.slot(p)"),
    "a part of the name, and gradients that a call returns": """\
        net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        means, named = {}, dict(net.named_parameters())
        for _ in range(4):
            slopes = torch.autograd.grad(net(torch.randn(8, 4)).square().mean(), list(named.values()))
            for (name, p), slope in zip(named.items(), slopes):
                leaf = name.split(".")[-1]  #!
                means[leaf] = means.get(leaf, 0) * 0.9 + slope
                p.data = p.data - 0.01 * means[leaf]
    """,
}  # fmt: skip
RIGHT = {
    "a sum for a report, by which no step goes": MOMENTUM.replace(UPDATE, "mean.add_(p.grad**2)").replace(
        "p.sub_(mean, alpha=0.01)", "p.sub_(p.grad, alpha=0.01)"
    ),
    "a mean over the layers in each step": MOMENTUM.replace(
        "        for p in self.params:\n",
        (
            "        self.means = {}\n        for p in self.params:\n"
            "            self.means[p.shape] = self.means.get(p.shape, 0) + p.grad\n        for p in self.params:\n"
        ),
    ).replace(UPDATE, "mean = mean / 2"),
    "noise": MOMENTUM.replace(UPDATE, "mean.normal_().mul_(0.1).add_(p.grad)"),
    "by the name and the shape": MOMENTUM.replace("self.params, self.means", "self.named, self.means")
    .replace("list(params)", "dict(params)")
    .replace("for p in self.params", "for name, p in self.named.items()")
    .replace("setdefault(p.shape", "setdefault(f'{name} {tuple(p.shape)}'")
    .replace("net.parameters", "net.named_parameters"),
    "by parameter": MOMENTUM.replace("setdefault(p.shape", "setdefault(p"),
    "by name and shape": MOMENTUM.replace("setdefault(p.shape", "setdefault((id(p), p.shape)"),
    "a place for results": MOMENTUM.replace(UPDATE, "mean.copy_(p.grad).mul_(0.9)"),
    "a place that `out` names": MOMENTUM.replace(UPDATE, "torch.add(p, p.grad, out=mean); mean.mul_(0.9)"),
    "rounds of one matrix": MOMENTUM.replace("p.shape, torch.zeros_like(p))  #!", "p.shape, 0.5)").replace(
        UPDATE,
        (
            "new = p.grad / p.grad.norm()\n            for _ in range(2):\n"
            "                new = 1.5 * new - 0.5 * (new @ (new.mT @ new) if new.dim() == 2 else new)\n"
            "            mean = new * mean"
        ),
    ),
    "other shapes": MOMENTUM.replace("nn.Tanh(), nn.Linear(4, 4)", "nn.Linear(4, 3)"),
    "a cache of a model with residual layers": """\
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.parts, self.cache = nn.ModuleList(nn.Linear(4, 4) for _ in range(3)), {}

            def forward(self, x):
                if x.shape not in self.cache:
                    self.cache[x.shape] = torch.ones_like(x)
                for part in self.parts:
                    x = x + part(x) * self.cache[x.shape]
                return x

        net = Net()
        opt = torch.optim.SGD(net.parameters(), lr=0.01)
        for _ in range(4):
            opt.zero_grad()
            net(torch.randn(8, 4)).square().mean().backward()
            opt.step()
    """,
}
WORDS = "of one shape in each step"


@pytest.mark.parametrize("name", WRONG)
def test_an_average_of_one_shape_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert "for 2 parameters" in found.text
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_averages_of_each_parameter_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
