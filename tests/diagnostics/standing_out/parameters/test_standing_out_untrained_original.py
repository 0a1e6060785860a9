"""Checks the sentence about originals that are used after the training of their copies."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

STACKED = """\
from torch.func import functional_call, stack_module_state
import copy
members = [nn.Linear(3, 1) for _ in range(2)]
params, buffers = stack_module_state(members)  #!
skeleton = copy.deepcopy(members[0]).to("meta")
opt = torch.optim.SGD(params.values(), lr=0.1)
run = torch.vmap(lambda p, b, x: functional_call(skeleton, (p, b), (x,)))
for _ in range(3):
    loss = run(params, buffers, torch.randn(2, 8, 3)).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.no_grad():
    print([each(torch.ones(1, 3)).item() for each in members])
"""
CLONED = """\
net = nn.Linear(3, 1)
weight = net.weight.detach().clone().requires_grad_()  #!
opt = torch.optim.SGD([weight], lr=0.1)
for _ in range(3):
    loss = (torch.randn(8, 3) @ weight.T).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(net(torch.ones(1, 3)).item())
"""
WRONG = {
    "a stack": STACKED,
    "a clone": CLONED,
    "a mean of losses is printed": STACKED.replace("square().mean()", "square().mean((1, 2))").replace(
        "loss.backward()", "loss.sum().backward()") + "print(loss.detach().mean().item())\n",
    "losses are printed": CLONED.replace("    opt.step()\n", "    opt.step()\n    print(loss.item())\n"),
}  # fmt: skip
RIGHT = {
    "the copies are used": STACKED.replace("print(", "print(run(params, buffers, torch.ones(2, 1, 3)), "),
    "put back": CLONED.replace("print", "with torch.no_grad():\n    net.weight.copy_(weight)\nprint"),
    "the original is not used": CLONED.replace("print(net", "print((lambda x: x)").replace(
        "torch.ones(1, 3)", "torch.ones(1)"),
    "both are used": CLONED.replace("print(", "print(torch.ones(1, 3) @ weight.T, "),
    "the best values": CLONED.replace("    opt.step()", "    opt.step()\n    best = weight.detach().clone()").replace(
        "print(net", "print(best.sum().item(), net"),
    "saved": CLONED + "import io\ntorch.save(weight, io.BytesIO())\n",
    "a frozen original": CLONED.replace("weight =", "net.requires_grad_(False)\nweight ="),
    "read in the training": CLONED.replace("square().mean()", "square().mean() + 0 * net(torch.ones(1, 3)).sum()"),
    "changed as an array": CLONED.replace("print", "array = net.weight.detach().numpy()\narray[:] = 1\nprint"),
    "both are trained": CLONED.replace("SGD([weight]", "SGD([weight, net.weight]").replace(
        "loss = ", "loss = net(torch.randn(8, 3)).square().mean() + "),
}  # fmt: skip
WORDS = "the values from before the training"


@pytest.mark.parametrize("name", WRONG)
def test_an_original_that_is_not_trained_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", RIGHT)
def test_other_copies_are_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
