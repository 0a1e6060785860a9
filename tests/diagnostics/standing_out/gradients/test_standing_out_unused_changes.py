"""Checks the sentences about lines that change gradients in vain, and about gradients that are not finite."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, report_of, sentences

from tensorlens.analysis.trace_index import TraceIndex
from tensorlens.analysis.training.measured import measured_training
from tensorlens.render.report.training_section import summary

MODEL = "model = nn.Linear(4, 1)\nf = lambda x: model(x).square().mean()\n"
SGD = MODEL + "opt = torch.optim.SGD(model.parameters(), lr=0.1)\n"
CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 0.1)"
FOR = "for step in range(3):\n    "
PASS = "f(torch.randn(8, 4)).backward()\n    "
ZERO, STEP = "opt.zero_grad()\n    ", "opt.step()\n    "
LATE = " writes to gradients only after the step that used them, and no other step uses them"
WEIGHT = "w = nn.Parameter(torch.zeros(2))\nopt = torch.optim.SGD([w], lr=0.1)\n"

WRONG = {
    "clipped after the step": (
        SGD + FOR + ZERO + PASS + STEP + CLIP + "  #!\n",
        "`nn.utils.clip_grad_norm_(...)`" + LATE,
    ),
    "values clipped after the step": (
        SGD + FOR + ZERO + PASS + STEP + "nn.utils.clip_grad_value_(model.parameters(), 0.1)  #!\n",
        "`nn.utils.clip_grad_value_(...)`" + LATE,
    ),
    "masked after the step": (
        SGD + "mask = torch.tensor([[1.0, 0, 1, 0]])\n" + FOR + ZERO + PASS + STEP
        + "model.weight.grad.mul_(mask)  #!\n",
        "`model.weight.grad.mul_(mask)`" + LATE,
    ),
    "scaled after the step, in a function": (
        SGD + "def scale():\n    for p in model.parameters():\n        p.grad /= 8  #!\n"
        + FOR + PASS + STEP + "scale()\n    opt.zero_grad()\n",
        "`p.grad /= ...`" + LATE,
    ),
    "clipped before the pass": (
        SGD + FOR + ZERO + CLIP + "  #!\n    " + PASS + STEP,
        "`nn.utils.clip_grad_norm_(...)` finds no gradient each time that it runs",
    ),
    "clipped before the pass, zeros": (
        SGD + FOR + "opt.zero_grad(set_to_none=False)\n    " + CLIP + "  #!\n    " + PASS + STEP,
        "finds only gradients of zeros each time that it runs",
    ),
    "values clipped before the pass, zeros": (
        SGD + "f(torch.randn(8, 4)).backward()\n" + FOR + "model.zero_grad(set_to_none=False)\n    "
        + "nn.utils.clip_grad_value_(model.parameters(), 0.1)  #!\n    " + PASS + STEP,
        "finds only gradients of zeros each time that it runs",
    ),
    "another model is clipped": (
        SGD + "other = nn.Linear(4, 1)\n" + FOR + ZERO + PASS
        + "nn.utils.clip_grad_norm_(other.parameters(), 0.1)  #!\n    " + STEP,
        "`nn.utils.clip_grad_norm_(...)` finds no gradient each time that it runs",
    ),
    "the gradients of another loss are clipped": (
        SGD + "other = nn.Linear(1, 1)\nsecond = torch.optim.SGD(other.parameters(), lr=0.1)\n" + FOR
        + "second.zero_grad()\n    other(model(torch.randn(8, 4)).detach()).mean().backward()\n    second.step()\n    "
        + ZERO + "other(model(torch.randn(8, 4))).square().mean().backward()\n    "
        + "nn.utils.clip_grad_norm_(other.parameters(), 0.1)  #!\n    " + STEP,
        "writes to gradients that no step uses: those of `other.weight` and `other.bias` are cleared before",
    ),
    "an infinite loss": (
        SGD + "for scale in (1.0, 1.0, float('inf'), 1.0):\n    opt.zero_grad()\n"
        "    (f(torch.randn(8, 4)) * scale).backward()  #!\n    opt.step()\n",
        "each gradient of `model.weight` and `model.bias` has infinite or NaN values at 2 of 4 steps, first at the 3rd",
    ),
    "a root of zero": (
        WEIGHT + "w.sqrt().sum().backward()  #!\nopt.step()\n",
        "the gradient of `w` has infinite or NaN values at the only step",
    ),
    "a logarithm": (
        "w = nn.Parameter(torch.tensor([0.0, 1.0]))\nopt = torch.optim.SGD([w], lr=0.1)\n"
        + FOR + "opt.zero_grad()\n    (w.abs() + 1e-50).log().sum().backward()  #!\n    opt.step()\n",
        "the gradient of `w` has infinite or NaN values at 3 of 3 steps, first at the 1st",
    ),
    "an overflow": (
        WEIGHT.replace("zeros(2", "ones(2, dtype=torch.half")
        + "for scale in (1.0, 300.0):\n    opt.zero_grad()\n    (w * scale * scale).sum().backward()  #!\n"
        + "    opt.step()\n",
        "the gradient of `w` has infinite or NaN values at 1 of 2 steps, first at the 2nd",
    ),
}  # fmt: skip

RIGHT = {
    "clipped": SGD + FOR + ZERO + PASS + CLIP + "\n    " + STEP,
    "clipped, cleared after the step": SGD + FOR + PASS + CLIP + "\n    " + STEP + "opt.zero_grad()\n",
    "masked": SGD + FOR + ZERO + PASS + "model.weight.grad[:, 0] = 1.0\n    " + STEP,
    "accumulated and divided": SGD + FOR + ZERO + PASS + PASS
    + "for p in model.parameters():\n        p.grad /= 2\n    " + STEP,
    "decayed for the next step": SGD + FOR + PASS + STEP + "for p in model.parameters():\n        p.grad.mul_(0.5)\n",
    "zeroed by a product": SGD + FOR + PASS + STEP + "for p in model.parameters():\n        p.grad.mul_(0)\n",
    "kept for later": SGD + "kept = []\n" + FOR + ZERO + PASS + STEP
    + "model.weight.grad.mul_(2)\n    kept.append(model.weight.grad.clone())\n",
    "noise before the pass": SGD + FOR + "opt.zero_grad(set_to_none=False)\n    "
    + "model.weight.grad = torch.randn(1, 4)\n    " + PASS + STEP,
    "clipped in vain, without a step": SGD + FOR + ZERO + PASS + CLIP
    + "\nopt.zero_grad()\nf(torch.randn(8, 4)).backward()\nopt.step()\n",
    "clipped when there is one": SGD + FOR + CLIP + "\n    " + PASS + STEP,
    "norms after the step": SGD + "norms = []\n" + FOR + ZERO + PASS + STEP
    + 'norms.append(nn.utils.clip_grad_norm_(model.parameters(), float("inf")).item())\n',
    "norms after the step, by a function": "import math\n" + SGD
    + "def size(params, most=math.inf):\n    return nn.utils.clip_grad_norm_(params, max_norm=most)\n" + FOR + ZERO
    + PASS + STEP + "size(model.parameters())\n",
    "a large gradient": SGD + FOR + ZERO + "(f(torch.randn(8, 4)) * 1e30).backward()\n    model.zero_grad()\n",
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_the_line_is_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    found = [each for each in sentences(tmp_path, body) if text in each.text]
    assert len(found) == 1
    assert found[0].labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_a_change_that_is_used_is_not_named(tmp_path: Path, name: str) -> None:
    found = [each.text for each in sentences(tmp_path, RIGHT[name])]
    assert [text for text in found if "no step" not in text] == []


def test_the_section_names_the_lines_that_change_gradients(tmp_path: Path) -> None:
    training = measured_training(TraceIndex(report_of(tmp_path, RIGHT["clipped"]).trace))
    assert training is not None
    assert summary(training) == "3 backward passes, 3 steps of 1 optimizer, gradients changed at line 10"
