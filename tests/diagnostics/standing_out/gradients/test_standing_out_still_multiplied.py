"""Checks the sentences about gradients that are clipped or used while a `GradScaler` has them multiplied."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

WHAT = "gradients that a `GradScaler` has multiplied"
MODEL = """
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler('cpu', init_scale=64.0)
clip = nn.utils.clip_grad_norm_
f = lambda: model(torch.randn(8, 4)).square().mean()
"""
SCALED = "for step in range(3):\n    opt.zero_grad()\n    scaler.scale(f()).backward()\n"
END = "    scaler.step(opt)\n    scaler.update()\n"

WRONG = {
    "the norm": (
        MODEL + SCALED + "    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  #!\n" + END,
        "clips gradients that a `GradScaler` has multiplied, before it divides them again",
    ),
    "the values": (
        MODEL + SCALED + "    nn.utils.clip_grad_value_(model.parameters(), 0.5)  #!\n" + END,
        "clips gradients that a `GradScaler` has multiplied, before it divides them again",
    ),
    "in a function, unscaled too late": (
        MODEL + "def update(model, opt):\n    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  #!\n"
        "    scaler.unscale_(opt)\n    scaler.step(opt)\n    scaler.update()\n" + SCALED + "    update(model, opt)\n",
        "clips gradients that a `GradScaler` has multiplied, before it divides them again",
    ),
    "a scale that is printed": (
        MODEL + SCALED + "    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  #!\n" + END
        + "    print(f'scale {scaler.get_scale():.0f}')\nprint(scaler.get_scale())\n",
        "clips gradients that a `GradScaler` has multiplied, before it divides them again",
    ),
    "by hand, all at once": (
        MODEL + SCALED + "    grads = [p.grad for p in model.parameters()]\n"
        "    size = torch.stack(torch._foreach_norm(grads)).norm()\n"
        "    if size > 1: torch._foreach_mul_(grads, 1 / size)  #!\n" + END,
        "bounds gradients that a `GradScaler` has multiplied, before it divides them again",
    ),
    "by hand, a root of squares, for each": (
        MODEL + SCALED + "    size = sum(p.grad.data.pow(2).sum() for p in model.parameters()).sqrt()\n"
        "    factor = (0.5 / (size + 1e-6)).clamp(max=1.0)\n"
        "    for p in model.parameters():\n        p.grad.data.mul_(factor)  #!\n" + END,
        "bounds gradients that a `GradScaler` has multiplied, before it divides them again",
    ),
    "by hand, an assignment": (
        MODEL + SCALED + "    for p in model.parameters():\n        p.grad = p.grad / p.grad.norm().clamp(1.0)  #!\n"
        + END,
        "bounds gradients that a `GradScaler` has multiplied, before it divides them again",
    ),
    "values by hand": (
        MODEL + SCALED + "    for p in model.parameters():\n        p.grad.clamp_(-0.5, 0.5)  #!\n" + END,
        "bounds gradients that a `GradScaler` has multiplied, before it divides them again",
    ),
    "a plain step": (
        MODEL + SCALED + "    opt.step()  #!\n",
        "`SGD.step()` uses gradients that a `GradScaler` has multiplied: neither its `step()` nor",
    ),
    "a plain step of a loss with a name": (
        MODEL + "for step in range(3):\n    opt.zero_grad()\n    loss = scaler.scale(f())\n    loss.backward()\n"
        "    nn.utils.clip_grad_norm_(model.parameters(), 100.0)\n    opt.step()  #!\n    scaler.update(64.0)\n",
        "`SGD.step()` uses gradients that a `GradScaler` has multiplied: neither its `step()` nor",
    ),
}  # fmt: skip
CLIP = "    nn.utils.clip_grad_norm_(model.parameters(), {})\n"
RIGHT = {
    "unscaled first": MODEL + SCALED + "    scaler.unscale_(opt)\n" + CLIP.format("1.0") + END,
    "no clipping": MODEL + SCALED + END,
    "a scaler that is off": MODEL.replace("init_scale=64.0", "enabled=False") + SCALED + CLIP.format("1.0") + END,
    "a limit that is scaled": MODEL + SCALED + CLIP.format("scaler.get_scale()") + END,
    "divided by hand": MODEL + SCALED + "    for p in model.parameters():\n        p.grad /= 64.0\n    opt.step()\n",
    "an own scale": MODEL + "for step in range(3):\n    opt.zero_grad()\n    (f() * 64.0).backward()\n"
    + CLIP.format("1.0") + "    opt.step()\n",
    "bounded by hand after that": MODEL + SCALED + "    scaler.unscale_(opt)\n"
    "    for p in model.parameters():\n        p.grad.mul_(1 / p.grad.norm())\n" + END,
    "a ratio of two norms": MODEL + SCALED + "    grads = [p.grad for p in model.parameters()]\n"
    "    first, second = (each.norm() for each in grads)\n    grads[0].mul_(second / first)\n" + END,
    "a trust ratio": MODEL + SCALED
    + "    for p in model.parameters():\n        p.grad.mul_(p.detach().norm() / p.grad.norm())\n" + END,
    "a guard against overflows": MODEL + SCALED
    + "    for p in model.parameters():\n        p.grad.clamp_(-65504.0, 65504.0)\n" + END,
    "a limit by the state of the scaler": MODEL + SCALED
    + "    limit = torch.tensor(scaler.state_dict()['scale'])\n"
    "    for p in model.parameters():\n        p.grad.mul_(limit / p.grad.norm())\n" + END,
    "a limit that is the first scale": MODEL + SCALED
    + "    for p in model.parameters():\n        p.grad.clamp_(-64.0, 64.0)\n" + END,
    "a limit that has its name": MODEL.replace("64.0", "START").replace("model =", "START = 64.0\nmodel =", 1) + SCALED
    + "    for p in model.parameters():\n        p.grad.mul_(START / p.grad.norm())\n" + END,
    "a scale of 1": MODEL.replace("64.0", "1.0") + SCALED + CLIP.format("2.0") + END,
    "a norm that is measured": "import math\n" + MODEL + SCALED + CLIP.format("math.inf") + "    scaler.unscale_(opt)\n"
    + CLIP.format("1.0") + END,
    "a norm that is measured by a function": MODEL + "from torch import inf\n"
    "def size(most):\n    return nn.utils.clip_grad_norm_(model.parameters(), most)\n" + SCALED
    + "    print(size(inf))\n"
    "    scaler.unscale_(opt)\n" + CLIP.format("1.0") + END,
    "two optimizers": MODEL + "other = nn.Linear(4, 1)\n"
    "second = torch.optim.SGD(other.parameters(), lr=0.01)\n" + SCALED
    + "    second.zero_grad()\n    other(torch.randn(8, 4)).square().mean().backward()\n"
    "    nn.utils.clip_grad_norm_(other.parameters(), 1.0)\n    second.step()\n" + END,
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_names_gradients_that_are_still_multiplied(case: str, tmp_path: Path) -> None:
    body, text = WRONG[case]
    found = [each for each in sentences(tmp_path, body) if text in each.text]
    assert [each.labels[0].span.line for each in found] == [marked(body)]


@pytest.mark.parametrize("case", RIGHT)
def test_says_nothing_of_other_gradients(case: str, tmp_path: Path) -> None:
    assert not any(WHAT in each.text for each in sentences(tmp_path, RIGHT[case]))
