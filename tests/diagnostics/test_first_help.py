"""The first help, applied as an edit, gives the gradients of the program as its author would repair it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.first_help import Programs
from support.warm import Warm

_WEIGHT = "import torch\nw = torch.linspace(-1, 2, 32).view(4, 8).requires_grad_()\n"
_END = "loss.backward()\nprint(w.grad)\n"

ROWS = f"""{_WEIGHT}x = w * 2
for row in x:
    row /= row.norm()
loss = x.pow(3).sum()
{_END}"""
CHANNELS = f"""{_WEIGHT}x = (w * 2)[None]
for factor, row in zip((1, 2, 3, 4), x[0]):
    row.mul_(factor).add_(1)
loss = x.pow(2).sum()
{_END}"""
COUNTED = f"""{_WEIGHT}def squash(w):
    x = w * 2
    for n, part in enumerate(x.chunk(4, dim=1)):
        part.sigmoid_()
    return x
loss = squash(w).pow(2).sum()
{_END}"""
GATES = f"""{_WEIGHT}one, two, three = torch.split(w * 3, [2, 2, 4], dim=1)
one.sigmoid_()
two *= one + 1
three.tanh_().mul_(2)
loss = (two * one).sum() + three.sum()
{_END}"""
HALVES = f"""{_WEIGHT}x = w * 2
mean, spread = x.chunk(2, dim=-1)
spread.clamp_(-1, 1)
loss = x.pow(2).sum() + mean.sum()
{_END}"""
LISTED = f"""{_WEIGHT}x = w * 2
parts = x.chunk(4, dim=1)
parts[0].sigmoid_()
parts[1].mul_(2)
loss = torch.cat(parts, dim=1).pow(2).sum()
{_END}"""
TOO_EARLY = f"""{_WEIGHT}x = w * 2
one, two = x.chunk(2)
x.mul_(3)
loss = (one * two).sum()
{_END}"""
UPDATE = f"""{_WEIGHT}bias = torch.zeros(8, requires_grad=True)
for step in range(2):
    loss = (w * w + bias).sum()
    loss.backward()
    print(w.grad, bias.grad)
    w -= 0.1 * w.grad
    bias -= 0.1 * bias.grad
    w.grad = bias.grad = None
"""
LAYER = """import torch
class Masked(torch.nn.Linear):
    def forward(self, x):
        w = self.weight
        w *= 0.5
        return x @ w.T
net = Masked(3, 2, bias=False)
torch.nn.init.ones_(net.weight)
net(torch.ones(4, 3)).pow(2).sum().backward()
print(net.weight.grad, net.weight)
"""
STARTED = """import torch
torch.manual_seed(0)
from torch import nn
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        nn.init.ones_(self.fc.weight)
        bias = self.fc.bias.view(2, 2)
        bias[:, 0] += 2
        bias[:, 1] = 1
        self.fc.bias = nn.Parameter(bias.view(-1))
        self.fc.weight[0].zero_()
head = Head()
head.fc(torch.ones(3)).pow(2).sum().backward()
print(head.fc.weight.grad, [name for name, _ in head.named_parameters()])
"""
FROZEN_FEATURES = """import torch
@torch.inference_mode()
def features():
    return torch.ones(2, 3)
layer = torch.nn.Linear(3, 1)
layer(features()).sum().backward()
print(layer.weight.grad)
"""
CHECKPOINTED = """import torch
from torch.utils import checkpoint as ck
first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
x = torch.ones(3, 2)
h = ck.checkpoint(
    first,
    x,
    use_reentrant=True,
)
loss = (h + ck.checkpoint(second, (x * 2), use_reentrant=True)).sum()
loss.backward()
print(first.weight.grad, second.weight.grad)
"""

MASKED = """import torch
torch.manual_seed(0)
class Sparse(torch.nn.Linear):
    def __init__(self):
        super().__init__(3, 2)
        self.register_buffer("mask", torch.ones(2, 3))
    def forward(self, x):
        if self.training:
            self.mask = torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]]).roll(len(seen), 1)
            seen.append(x)
            self.weight.data.mul_(self.mask)
        return torch.nn.functional.linear(x, self.weight, self.bias)
seen = []
one, two = Sparse(), torch.nn.Linear(2, 3)
torch.nn.init.ones_(one.weight)
torch.nn.init.ones_(two.weight)
one(two(one(torch.ones(4, 3, requires_grad=True)))).pow(2).mean().backward()
print(one.weight.grad, two.weight.grad)
"""
KEPT_AS_ATTRIBUTE = f"""{_WEIGHT}class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x
    @staticmethod
    def backward(ctx, g):
        return 2 * ctx.x * g
def double(t):
    t.mul_(2)
x = w * 1
y = Square.apply(x)
double(x)
loss = (y + x).sum()
{_END}"""
SHARED_GRADIENT = f"""{_WEIGHT}v = w.detach().clone().requires_grad_()
def clip(gradient):
    gradient.clamp_(-0.5, 0.5)
v.register_hook(clip)
loss = (w + v)
loss.backward(torch.full_like(w, 3.0))
print(w.grad, v.grad)
"""
UNSELECTED = f"""{_WEIGHT}def norm(x):
    root = x.sqrt()
    return torch.where(x > 0, root, 0.0)
loss = norm(w * 2).sum()
{_END}"""
FOR_A_PLOT = f"""import numpy as np
{_WEIGHT}loss = (w * 2).sum()
print(np.asarray(w).tolist(), loss.numpy())
{_END}"""

CASES = {
    "masked": (MASKED, [
        ("            self.weight.data.mul_(self.mask)\n", ""),
        ("(x, self.weight, self.bias)", "(x, self.weight * self.mask, self.bias)")]),
    "kept as attribute": (KEPT_AS_ATTRIBUTE, [("ctx.x = x", "ctx.x = x.detach().clone()")]),
    "shared gradient": (SHARED_GRADIENT, [("gradient.clamp_(-0.5, 0.5)", "return torch.clamp(gradient, -0.5, 0.5)")]),
    "unselected": (UNSELECTED, [("x.sqrt()", "torch.where(x > 0, x, 1).sqrt()")]),
    "for a plot": (FOR_A_PLOT, [("np.asarray(w).tolist(), loss.numpy()", "w.tolist(), loss.item()")]),
    "rows": (ROWS, [("for row in x:\n    row /= row.norm()", "x = x / x.norm(dim=1, keepdim=True)")]),
    "channels": (CHANNELS, [
        ("for factor, row in zip((1, 2, 3, 4), x[0]):\n    row.mul_(factor).add_(1)",
         "x = x * torch.tensor([1, 2, 3, 4]).view(4, 1) + 1")]),
    "counted": (COUNTED, [
        ("for n, part in enumerate(x.chunk(4, dim=1)):\n        part.sigmoid_()", "x = x.sigmoid()")]),
    "gates": (GATES, [("one.sigmoid_()", "one = one.sigmoid()"), ("two *= one + 1", "two = two * (one + 1)"),
                      ("three.tanh_().mul_(2)", "three = three.tanh().mul(2)")]),
    "halves": (HALVES, [("spread.clamp_(-1, 1)", "x = torch.cat((mean, spread.clamp(-1, 1)), dim=1)")]),
    "listed": (LISTED, [("parts[0].sigmoid_()\nparts[1].mul_(2)",
                         "parts = [parts[0].sigmoid(), parts[1].mul(2), *parts[2:]]")]),
    "too early": (TOO_EARLY, [("one, two = x.chunk(2)\nx.mul_(3)", "x = x * 3\none, two = x.chunk(2)")]),
    "update": (UPDATE, [("w -= 0.1 * w.grad", "w.data -= 0.1 * w.grad"),
                        ("bias -= 0.1 * bias.grad", "bias.data -= 0.1 * bias.grad")]),
    "layer": (LAYER, [("w *= 0.5", "w = w * 0.5")]),
    "started": (STARTED, [("bias = self.fc.bias.view(2, 2)", "bias = self.fc.bias.data.view(2, 2)"),
                          ("self.fc.weight[0].zero_()", "self.fc.weight.data[0].zero_()")]),
    "frozen features": (FROZEN_FEATURES, [("inference_mode", "no_grad")]),
    "checkpointed": (CHECKPOINTED, [("use_reentrant=True", "use_reentrant=False")]),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_applied_it_gives_the_gradients_that_were_meant(name: str, warm: Warm, tmp_path: Path) -> None:
    program, changes = CASES[name]
    repaired = program
    for before, after in changes:
        assert before in repaired
        repaired = repaired.replace(before, after)
    programs = Programs(warm, tmp_path, reference=True)
    for _ in range(3):  # an error may hide one that is independent of it
        found = programs.findings(program)
        if not found:
            break
        program = programs.repaired(program, found[0])
        assert program
    assert not found
    assert programs.printed(program) == programs.printed(repaired)
