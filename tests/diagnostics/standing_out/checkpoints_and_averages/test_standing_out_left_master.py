"""Checks the sentence about a model that is loaded without the float32 copies of its weights that steps change."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

LOOP = """\
import copy

class Mixed:
    def __init__(self, net):
        self.weights = list(net.parameters())
        self.masters = [p.detach().clone().float() for p in self.weights]
        self.inner = torch.optim.Adam(self.masters, lr=0.01)

    @torch.no_grad()
    def step(self):
        for m, p in zip(self.masters, self.weights):
            m.grad = p.grad.float()
        self.inner.step()
        for m, p in zip(self.masters, self.weights):
            p.copy_(m)  #!
            p.grad = None

def train(net, opt):
    for _ in range(3):
        net(torch.randn(8, 4).bfloat16()).float().square().mean().backward()
        opt.step()

def made():
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)).bfloat16()
    return net, Mixed(net)

net, opt = made()
train(net, opt)
kept = copy.deepcopy(net.state_dict())
net, opt = made()
net.load_state_dict(kept)
train(net, opt)
"""
LOAD = "net.load_state_dict(kept)\n"
MADE = "    return net, Mixed(net)\n"
SET = LOOP.replace("p.copy_(m)", "p.data = m.bfloat16()")
EACH = "for m, p in zip(self.masters, self.weights):\n            p.copy_(m)  #!\n            p.grad = None"
FLAT = LOOP.replace("[p.detach().clone().float() for p in self.weights]", (
    "[nn.utils.parameters_to_vector(self.weights).detach().float()]")).replace(
    "for m, p in zip(self.masters, self.weights):\n            m.grad = p.grad.float()",
    "self.masters[0].grad = torch.cat([p.grad.flatten().float() for p in self.weights])",
).replace("            p.grad = None", "        for p in self.weights: p.grad = None")  # fmt: skip
SPLIT = FLAT.replace("zip(self.masters, self.weights)", (
    "zip(self.masters[0].split([p.numel() for p in self.weights]), self.weights)")).replace("copy_(m)", (
    "copy_(m.view_as(p))"))  # fmt: skip
NARROW = FLAT.replace("for m, p in zip(self.masters, self.weights):\n            p.copy_(m)", (
    "at, half = 0, self.masters[0].bfloat16()\n        for p in self.weights:\n            at += p.numel()\n"
    "            p.data = half[at - p.numel():at].view(p.shape)"))  # fmt: skip
ALL = LOOP.replace(EACH, (
    "torch._foreach_copy_(self.weights, self.masters)  #!\n        for p in self.weights: p.grad = None"))  # fmt: skip
WRONG = {"copied": LOOP, "assigned": SET, "split": SPLIT, "a part of a cast": NARROW, "all of them": ALL}
PLAIN = LOOP.replace("  #!", "")
RIGHT = {
    "masters made afterwards": PLAIN.replace(MADE, "    return net, None\n")
    .replace("net, opt = made()\ntrain", "net, opt = made()\nopt = Mixed(net)\ntrain")
    .replace(LOAD, LOAD + "opt = Mixed(net)\n"),
    "masters that are loaded too": PLAIN.replace(
        LOAD, LOAD + "with torch.no_grad():\n    for m, p in zip(opt.masters, opt.weights): m.copy_(p)\n"),
    "loaded from the masters": PLAIN.replace("net.load_state_dict(kept)", (
        "net.load_state_dict({name: m for name, m in zip(net.state_dict(), opt.masters)})")),
    "loaded for an evaluation, and put back": PLAIN.replace(LOAD, (
        "before = copy.deepcopy(net.state_dict())\nnet.load_state_dict(kept)\nnet(torch.randn(2, 4).bfloat16())\n"
        "net.load_state_dict(before)\n")),
    "masters from the checkpoint": PLAIN.replace(LOAD, (
        LOAD + "opt.masters[:] = [p.detach().clone().float() for p in kept.values()]\n"
        "opt.inner = torch.optim.Adam(opt.masters, lr=0.01)\n")),
    "loaded through NumPy": PLAIN.replace(LOAD, (
        LOAD + "for m, p in zip(opt.masters, kept.values()): m.numpy()[...] = p.float().numpy()\n")),
    "loaded from a vector": PLAIN.replace(LOAD, (
        LOAD + "flat = torch.cat([p.float().flatten() for p in kept.values()])\n"
        "nn.utils.vector_to_parameters(flat, opt.masters)\n")),
    "masters that are loaded from float32": PLAIN.replace(
        LOAD, LOAD + "with torch.no_grad():\n    for m, p in zip(opt.masters, opt.weights): m.copy_(p.float())\n"),
    "a flat master that is filled again": SPLIT.replace("  #!", "").replace(LOAD, (
        LOAD + "opt.masters[0].copy_(nn.utils.parameters_to_vector(net.parameters()).detach())\n")),
    "parts of a flat master that are filled": SPLIT.replace("  #!", "").replace(LOAD, (
        LOAD + "at = 0\nfor p in net.parameters():\n    opt.masters[0][at:at + p.numel()] = p.detach().flatten()\n"
        "    at += p.numel()\n")),
    "masters of all that are loaded too": ALL.replace("  #!", "").replace(
        LOAD, LOAD + "with torch.no_grad(): torch._foreach_copy_(opt.masters, opt.weights)\n"),
    "a target that is copied again": """\
import copy
net = nn.Linear(4, 1)
target = nn.Linear(4, 1)
target.load_state_dict(net.state_dict())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(4):
    x = torch.randn(8, 4)
    with torch.no_grad():
        goal = target(x)
    (net(x) - goal - 1).square().mean().backward()
    opt.step()
    opt.zero_grad()
    with torch.no_grad():
        for p, q in zip(target.parameters(), net.parameters()): p.copy_(q)
""",
}  # fmt: skip
WORDS = "that only steps have changed since"


@pytest.mark.parametrize("name", WRONG)
def test_masters_that_are_not_loaded_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])
    assert "overwrites 4 of 4 tensors that `net.load_state_dict(kept)` has loaded" in found.text


@pytest.mark.parametrize("name", RIGHT)
def test_masters_that_have_the_loaded_values_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
