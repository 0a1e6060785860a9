"""Checks the sentence about masks that are applied to parameters once, before the steps that follow."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

NET = """\
net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
"""
PRUNE = """\
def prune(module):
    with torch.no_grad():
        mask = (module.weight.abs() > module.weight.abs().median()).float()
        module.weight.mul_(mask)  #!
    return mask

"""
STEP = """\
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    opt.step()
"""
ONCE = "for step in range(8):\n" + STEP + "    if step == 3:\n        prune(net[0])\n"
WRONG = {
    "in the middle": NET + PRUNE + ONCE,
    "by .data": NET + PRUNE.replace("module.weight.mul_(mask)", "module.weight.data *= mask") + ONCE,
    "a bool": NET + PRUNE.replace(".float()", "") + ONCE,
    "a copied product": NET + PRUNE.replace(".mul_(mask)", ".copy_(module.weight * mask)") + ONCE,
    "small ones are assigned": NET + PRUNE.replace("module.weight.mul_(mask)", "module.weight[mask == 0] = 0") + ONCE,
    "the zeros are counted": NET + PRUNE + ONCE + "print((net[0].weight != 0).float().mean().item())\n",
    "a mask in a dict that nothing reads": "masks = {}\n" + NET + PRUNE + ONCE.replace("prune(net[0])", (
        "masks[0] = prune(net[0])")),
    "a mask in an attribute": NET + PRUNE.replace("return mask", "module.mask = mask") + ONCE,
}  # fmt: skip
ADAM = NET.replace("SGD", "Adam")
HOOKED = (
    "masks = {}\nnet[0].weight.register_hook(lambda grad: grad * masks[0] if masks else grad)\n"
    + ONCE.replace("prune(net[0])", "masks[0] = prune(net[0])")
)  # fmt: skip
MASKED = "masks = {}\n" + ONCE.replace("prune(net[0])", "masks[0] = prune(net[0])").replace(
    "    opt.step()", "    if masks:\n        net[0].weight.grad.mul_(masks[0])\n    opt.step()"
)
PARTIAL = PRUNE.replace("return mask", ("module.weight.register_hook(functools.partial(torch.mul, mask))"))
COUNTED = "print(net[0].weight.eq(0).float().mean().item())\n"
BY_AVERAGES = {
    "a hook that is no function of the program": "import functools\n" + ADAM + PARTIAL + ONCE + COUNTED,
    "masked gradients, and the zeros are counted": ADAM + PRUNE + MASKED + COUNTED,
    "a hook": ADAM + PRUNE + HOOKED,
    "a hook that fills": ADAM + PRUNE.replace("mul_(mask)", (
        "copy_(torch.where(mask.bool(), module.weight, torch.zeros(())))")) + HOOKED.replace(
        "grad * masks[0]", "grad.masked_fill(~masks[0].bool(), 0.0)"),
    "a mask of the others": ADAM + PRUNE.replace(" > ", " <= ").replace(".float()", "").replace(
        "mul_(mask)", "masked_fill_(mask, 0)") + MASKED.replace("mul_(masks[0])", "mul_(~masks[0])"),
    "new data and new gradients": (ADAM + PRUNE + MASKED).replace("weight.mul_(", "weight.data = (module.weight * ")
    .replace("grad.mul_(", "grad = (net[0].weight.grad * "),
    "masked gradients": ADAM + PRUNE + MASKED,
    "momentum": NET.replace("lr=0.1", "lr=0.1, momentum=0.9") + PRUNE + HOOKED,
    "the mask is counted": ADAM + PRUNE + HOOKED + "print(masks[0].mean().item())\n",
}  # fmt: skip
NARROWED = """\
masks = {}
mask = torch.ones_like(net[0].weight)
def prune(share):
    with torch.no_grad():
        cut = (net[0].weight.abs() * mask).flatten().kthvalue(int(share * 32)).values
        mask.mul_((net[0].weight.abs() > cut).float())
        net[0].weight.mul_(mask)  #!
for step in range(12):
    opt.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    if step > 3:
        net[0].weight.grad.mul_(mask)
    opt.step()
    if step in (3, 6):
        prune(0.25 * (1 + step // 3))
"""
BY_AVERAGES |= {
    "a mask that gets fewer ones": ADAM + NARROWED,
    "a mask that gets fewer ones, of bools": ADAM + NARROWED.replace("like(net[0].weight)", (
        "like(net[0].weight, dtype=torch.bool)")).replace(
        "mask.mul_((net[0].weight.abs() > cut).float())", "mask.logical_and_(net[0].weight.abs() > cut)"),
}  # fmt: skip
AGAIN = "    if step > 3:\n        net[0].weight.data.mul_(mask)\n"
RIGHT = {
    "fewer ones, and after each step": ADAM + NARROWED.replace("    if step in", AGAIN + "    if step in"),
    "fewer ones, and no averages": NET + NARROWED,
    "fewer ones, and averages that are masked": ADAM + NARROWED.replace("weight.mul_(mask)", (
        "weight.mul_(mask)\n        opt.state[net[0].weight]['exp_avg'].mul_(mask)")),
    "fewer ones, and all may grow again": ADAM + NARROWED.replace(
        "    if step > 3:\n        net[0].weight.grad.mul_(mask)\n", ""),
    "fewer ones, and some again": ADAM + NARROWED.replace("        net[0].weight.mul_(mask)", (
        "        mask[torch.rand(8, 4) > 0.9] = 1\n        net[0].weight.mul_(mask)")),
    "small weights begin anew from time to time": NET + PRUNE + ONCE.replace("step == 3", "step % 3 == 2"),
    "a mask for another program": "import io\n" + NET + PRUNE.replace("return mask", "torch.save(mask, io.BytesIO())")
    + ONCE,
    "masks that are shown at the end": "masks = {}\n" + NET + PRUNE + ONCE.replace("prune(net[0])", (
        "masks[0] = prune(net[0])")) + "for mask in masks.values():\n    print(mask)\n",
    "negative weights are set to zero": NET + PRUNE.replace("module.weight.mul_(mask)", (
        "module.weight[module.weight < 0] = 0")) + ONCE,
    "assigned again after each step": ADAM + PRUNE.replace("module.weight.mul_(mask)", (
        "module.weight[mask == 0] = 0")) + HOOKED + "    if masks:\n        net[0].weight.data[masks[0] == 0] = 0\n",
    "new data after each step": ADAM + PRUNE + HOOKED
    + "    if masks:\n        net[0].weight.data = net[0].weight.data * masks[0]\n",
    "zeros that are found again by a comparison": NET + PRUNE.replace("return mask", (
        "alive = module.weight != 0\n    print(alive.float().mean().item())\n    return alive.float()"))
    + "mask = prune(net[0])\nfor step in range(6):\n" + STEP + "    net[0].weight.data.mul_(mask)\n",
    "a copied product after each step": NET + PRUNE + "mask = prune(net[0])\nfor step in range(6):\n" + STEP
    + "    net[0].weight.data.copy_(net[0].weight.detach() * mask)\n",
    "a partial function from the first step on": "import functools\n" + ADAM + PARTIAL
    + "prune(net[0])\nfor step in range(6):\n" + STEP + COUNTED,
    "a hook without averages": NET + PRUNE + HOOKED,
    "a hook from the first step on": ADAM + PRUNE + "mask = prune(net[0])\n"
    "net[0].weight.register_hook(lambda grad: grad * mask)\nfor step in range(6):\n" + STEP,
    "weights that are masked after each step": ADAM + PRUNE + HOOKED
    + "    if masks:\n        net[0].weight.data.mul_(masks[0])\n",
    "averages that are masked, too": ADAM + PRUNE + HOOKED.replace("masks[0] = prune(net[0])", (
        "masks[0] = prune(net[0])\n        opt.state[net[0].weight]['exp_avg'].mul_(masks[0])")),
    "a state that is cleared": ADAM + PRUNE + HOOKED.replace("masks[0] = prune(net[0])", (
        "masks[0] = prune(net[0])\n        opt.state.clear()")),
    "gradients of zeros alone": NET + PRUNE + ONCE.replace("    opt.step()", (
        "    net[0].weight.grad.mul_(net[0].weight != 0)\n    opt.step()")),
    "an optimizer for the rest": ADAM + PRUNE + HOOKED.replace("masks[0] = prune(net[0])", (
        "masks[0] = prune(net[0])\n        opt = torch.optim.Adam(net.parameters(), lr=0.1)")),
    "after each step": NET + PRUNE + "mask = prune(net[0])\nfor step in range(6):\n" + STEP
    + "    with torch.no_grad():\n        net[0].weight.mul_(mask)\n",
    "masked gradients": NET + PRUNE + "mask = prune(net[0])\nfor step in range(6):\n"
    + STEP.replace("    opt.step()", "    net[0].weight.grad.mul_(mask)\n    opt.step()"),
    "a hook": NET + PRUNE + "mask = prune(net[0])\nnet[0].weight.register_hook(lambda grad: grad * mask)\n"
    "for step in range(6):\n" + STEP,
    "weights that start anew from time to time": NET + PRUNE + "for step in range(12):\n" + STEP
    + "    if step % 4 == 3:\n        prune(net[0])\n",
    "at the end": NET + PRUNE + "for step in range(6):\n" + STEP + "prune(net[0])\n",
    "frozen": NET + PRUNE + "prune(net[0])\nnet[0].requires_grad_(False)\nfor step in range(6):\n" + STEP,
    "shrunk": NET + "for step in range(6):\n" + STEP
    + "    if step == 2:\n        net[0].weight.data.mul_(torch.ones(8, 1))\n",
}  # fmt: skip
WORDS = "by a mask before"


@pytest.mark.parametrize("name", WRONG)
def test_a_mask_that_is_applied_once_is_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, WRONG[name]) if WORDS in each.text)
    assert found.labels[0].span.line == marked(WRONG[name])


@pytest.mark.parametrize("name", BY_AVERAGES)
def test_averages_that_move_masked_elements_are_named(tmp_path: Path, name: str) -> None:
    (found,) = (each for each in sentences(tmp_path, BY_AVERAGES[name]) if WORDS in each.text)
    assert "go on along averages of the gradients from before" in found.text
    assert found.labels[0].span.line == marked(BY_AVERAGES[name])


@pytest.mark.parametrize("name", RIGHT)
def test_a_mask_that_is_kept_is_left_alone(tmp_path: Path, name: str) -> None:
    assert [each.text for each in sentences(tmp_path, RIGHT[name]) if WORDS in each.text] == []
