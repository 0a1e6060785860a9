"""Checks the sentences about gradients of several passes: clipped, filled by passes for an input, kept by reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

DATA = "x, y = torch.randn(32, 4), torch.randn(32, 1)\n"
DATA += "model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))\n"
OPT = "opt = torch.optim.SGD(model.parameters(), lr=0.01)\n"
PARTS = """\
for _ in range(3):
    opt.zero_grad()
    for a, b in zip(x.split(8), y.split(8)):
        ((model(a) - b).square().mean() / 4).backward()
        CLIP
    opt.step()
"""
LANGEVIN = """\
def sample(v):
    v = v.clone().requires_grad_()
    for _ in range(4):
        model(v).sum().backward()  #!
        with torch.no_grad():
            v -= 0.1 * v.grad
        v.grad.zero_()
    return v.detach()
for _ in range(3):
    opt.zero_grad()
    fake = sample(torch.randn(32, 4))
    (model(x).mean() - model(fake).mean()).backward()
    opt.step()
"""
TASKS = """\
heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
shared = list(model[0].parameters())
def collect(losses):
    found = []
    for loss in losses:
        for p in shared:
            if p.grad is not None:
                p.grad.zero_()
        loss.backward(retain_graph=True)
        found.append([p.grad for p in shared])  #!
    return found
for _ in range(3):
    opt.zero_grad()
    h = model[:2](x)
    found = collect([(head(h) - y).square().mean() for head in heads])
    for at, p in enumerate(shared):
        p.grad = sum(g[at] * 0.3 for g in found)
    opt.step()
"""
CLIPS = "runs between backward passes that add up before a step, 4 in all: it clips sums of only some"
SCALES = "4 in all: it changes the gradients of the passes before each time"
GAN = """\
made, judge = nn.Linear(4, 4), nn.Linear(4, 1)
opt_made = torch.optim.SGD(made.parameters(), lr=0.01)
opt_judge = torch.optim.SGD(judge.parameters(), lr=0.01)
for _ in range(3):
    fake = made(torch.randn(32, 4))
    opt_judge.zero_grad()
    opt_made.zero_grad()
    (judge(fake.detach()).mean() - judge(x).mean()).backward()
    (-judge(fake).mean()).backward()  #!
    opt_judge.step()
    opt_made.step()
"""
JUDGED = "(judge(fake.detach()).mean() - judge(x).mean()).backward()"
LABELS = GAN.replace(JUDGED, (
    "bce(judge(torch.cat([x, fake.detach()])), torch.cat([torch.ones(32, 1), torch.zeros(32, 1)])).backward()"
)).replace("(-judge(fake).mean()).backward()", "bce(judge(fake), torch.ones(32, 1)).backward()")  # fmt: skip
SQUARES = GAN.replace(JUDGED, (
    "((judge(x) - 1).pow(2).mean() + judge(fake.detach()).square().mean()).backward()")).replace(
    "(-judge(fake).mean()).backward()", "((judge(fake) - 1) ** 2).mean().backward()")  # fmt: skip
DECODER = """\
enc, dec, past = nn.Linear(4, 3), nn.Linear(3, 4), []
oe, od = (torch.optim.Adam(each.parameters(), lr=0.01) for each in (enc, dec))
for _ in range(4):
    oe.zero_grad(); od.zero_grad()
    z = enc(x)
    (dec(z) - x).square().mean().backward()
    NOISY
    oe.step(); od.step()
"""
BOTH = (
    "the loss of one pass takes `fake.detach()` as a constant, and the other pass gives them gradients together with "
    "`made.weight`"
)
INPUTS = "from 4 backward passes that also fill `v.grad`, which the script reads"
KEPT = (
    "`p.grad` is kept after each pass, but the passes fill one tensor in turn: `g[at] * 0.3` reads the last gradient 3"
)
FLAT = """\
heads = nn.ModuleList(nn.Linear(8, 1) for _ in range(3))
w = model[0].weight
for _ in range(3):
    opt.zero_grad()
    h, found = model[:2](x), []
    for head in heads:
        if w.grad is not None:
            w.grad.zero_()
        (head(h) - y).square().mean().backward(retain_graph=True)
        found.append(w.grad.flatten())  #!
    w.grad = sum(g * 0.3 for g in found).view_as(w)
    opt.step()
"""
FLAT_KEPT = "is kept after each pass, but the passes fill one tensor in turn: `g * 0.3` reads the last gradient 3"
HELPER = """\
def limit(params, most):
    for p in params:
        LIMIT
"""
MEAN = """\
for _ in range(3):
    opt.zero_grad()
    for k, (a, b) in enumerate(zip(x.split(8), y.split(8))):
        for p in model.parameters():
            if k:
                p.grad.mul_(k / (k + 1))
        ((model(a) - b).square().mean() / (k + 1)).backward()
    opt.step()
"""
CALLED = HELPER + DATA + OPT + PARTS.replace("CLIP", "limit(model.parameters(), 0.1)")
WRONG = {
    "scaled in a function": (
        CALLED.replace("LIMIT", "p.grad = p.grad * min(1.0, most / p.grad.norm().item())  #!"), SCALES),
    "clamped in a function": (CALLED.replace("LIMIT", "p.grad.clamp_(-most, most)  #!"), CLIPS),
    "scaled all at once": (CALLED.replace(
        "    for p in params:\n        LIMIT", "    torch._foreach_div_([p.grad for p in params], most)  #!"), SCALES),
    "clipped after each part": (
        DATA + OPT + PARTS.replace("CLIP", "nn.utils.clip_grad_norm_(model.parameters(), 0.1)  #!"), CLIPS),
    "values clipped after each part": (
        DATA + OPT + PARTS.replace("CLIP", "nn.utils.clip_grad_value_(model.parameters(), 0.01)  #!"), CLIPS),
    "divided after each part": (
        DATA + OPT + PARTS.replace("CLIP", "for p in model.parameters():\n            p.grad.div_(8)  #!"), SCALES),
    "two losses before two steps": (DATA + GAN, BOTH),
    "labels of both at once": (DATA + "bce = nn.BCEWithLogitsLoss()\n" + LABELS, BOTH),
    "least squares": (DATA + SQUARES, BOTH),
    "samples of an energy": (DATA + OPT + LANGEVIN, INPUTS),
    "gradients of tasks": (DATA + OPT + TASKS, KEPT),
    "views of gradients": (DATA + OPT + FLAT, FLAT_KEPT),
    "views that a variable has": (
        DATA + OPT + FLAT.replace("found.append(w.grad.flatten())  #!",
                                  "g = w.grad.data.view(-1)  #!\n        found.append(g)"),
        FLAT_KEPT,
    ),
    "cleared by zero_grad": (DATA + OPT + TASKS.replace("        for p in shared:\n            if p.grad is not None:\n"
    "                p.grad.zero_()\n", "        opt.zero_grad(set_to_none=False)\n"), KEPT),
}  # fmt: skip
RIGHT = {
    "noisy codes for the decoder": DATA + DECODER.replace("NOISY", (
        "(dec(z.detach() + torch.randn(32, 3)) - x).square().mean().backward()")),
    "codes of before for the decoder": DATA + DECODER.replace("NOISY", (
        "if past:\n        nn.functional.mse_loss(dec(past[-1]), x).backward()\n    past.append(z.detach())")),
    "masked in a function": CALLED.replace("LIMIT", "p.grad.mul_((p.detach().abs() > most).float())"),
    "guarded in a function": CALLED.replace("LIMIT", "p.grad.clamp_(-1e4, 1e4)"),
    "clipped before the step": DATA + OPT + PARTS.replace("        CLIP\n", "").replace(
        "    opt.step()", "    nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n    opt.step()"),
    "clipped gradients of each part, added by hand": DATA + OPT + PARTS.replace("    opt.zero_grad()\n", (
        "    sums = [torch.zeros_like(p) for p in model.parameters()]\n")).replace("        ((", (
        "        opt.zero_grad()\n        ((")).replace("CLIP", (
        "nn.utils.clip_grad_norm_(model.parameters(), 0.1)\n"
        "        for s, p in zip(sums, model.parameters()):\n            s += p.grad")).replace("    opt.step()", (
        "    for s, p in zip(sums, model.parameters()):\n        p.grad = s\n    opt.step()")),
    "a sum in which earlier passes count less": DATA + OPT + PARTS.replace("        CLIP\n", "").replace("        ((", (
        "        for p in model.parameters():\n            if p.grad is not None:\n                p.grad.mul_(0.9)\n"
        "        ((")),
    "a trace": DATA + OPT + "decay = 0.9\n"
    + PARTS.replace("CLIP", "for p in model.parameters():\n            p.grad.mul_(decay)"),
    "norms of the sums so far": DATA + OPT + PARTS.replace("CLIP", (
        "print(nn.utils.clip_grad_norm_(model.parameters(), float('inf')))")),
    "losses of several points that are one": DATA + OPT + "for _ in range(3):\n    opt.zero_grad()\n"
    "    v = torch.zeros(32, 4, requires_grad=True)\n    for _ in range(3):\n"
    "        ((model(x + v) - y).square().mean() / 6).backward()\n"
    "        v = (v.detach() + 0.1 * v.grad.sign()).requires_grad_()\n"
    "    (0.5 * (model(x) - y).square().mean()).backward()\n    opt.step()\n",
    "a mean that goes on": DATA + OPT + MEAN,
    "a mean by a share": DATA + OPT + MEAN.replace("p.grad.mul_(k / (k + 1))", "p.grad *= keep").replace(
        "        for p in", "        keep = 1 - 1 / (k + 1)\n        for p in"),
    "divided before the step": DATA + OPT + PARTS.replace("        CLIP\n", "").replace(
        "    opt.step()", "    for p in model.parameters():\n        p.grad.div_(8)\n    opt.step()"),
    "a step after each loss": DATA + GAN.replace("    (-judge", "    opt_judge.step()\n    (-judge").replace(
        "    opt_judge.step()\n    opt_made", "    opt_made").replace("  #!", ""),
    "two losses of both": DATA + GAN.replace("fake.detach()", "fake").replace(
        "mean() - judge(x).mean()).backward()", "mean()).backward(retain_graph=True)").replace("  #!", ""),
    "parts of a GAN": DATA + OPT + "other = torch.optim.SGD(model[2].parameters(), lr=0.01)\n" + PARTS.replace(
        "CLIP", "other.step()"),
    "cleared after the samples": DATA + OPT + LANGEVIN.replace("    (model(x).mean()", (
        "    opt.zero_grad()\n    (model(x).mean()")),
    "samples by autograd.grad": DATA + OPT + LANGEVIN.replace("model(v).sum().backward()  #!", (
        "g, = torch.autograd.grad(model(v).sum(), v)")).replace("v.grad.zero_()", "pass").replace("v.grad", "g"),
    "samples of frozen weights": DATA + OPT + LANGEVIN.replace("    fake", (
        "    model.requires_grad_(False)\n    fake")).replace("    (model(x).mean()", (
        "    model.requires_grad_(True)\n    (model(x).mean()")),
    "one pass whose gradients count twice": DATA + OPT + LANGEVIN.replace("range(4)", "range(1)"),
    "an adversarial example of each pass": DATA + OPT + "v = torch.zeros(32, 4, requires_grad=True)\n"
    "for _ in range(6):\n    opt.zero_grad()\n    (model(x + v) - y).square().mean().backward()\n"
    "    with torch.no_grad():\n        v += 0.1 * v.grad.sign()\n    v.grad.zero_()\n    opt.step()\n",
    "a gradient that is looked at": DATA + OPT + "v = [torch.randn(8, 4) for _ in range(3)]\nw = model[0].weight\n"
    "for i in range(4):\n    (model(x) - y).square().mean().backward()\n    g = w.grad\n"
    "    if i % 2:\n        dots = [(g * each).sum() for each in v]\n        opt.step()\n"
    "    opt.zero_grad(set_to_none=False)\n",
    "copies of views": DATA + OPT + FLAT.replace("flatten()", "flatten().clone()"),
    "views that copy": DATA + OPT + FLAT.replace("w.grad.flatten()", "w.grad.t().flatten()"),
    "views that are joined": DATA + OPT + FLAT.replace("w.grad.flatten()", "torch.cat([w.grad.flatten(), w.grad[0]])")
    .replace("view_as(w)", "narrow(0, 0, 32).view_as(w)"),
    "gradients that are read before the next pass": DATA + OPT + TASKS.replace("    return found", (
        "        sizes = [g.norm() for g in found[-1]]\n    return found"))
    .replace("for g in found)", "for g in found[-1:] * 3)"),
    "copies of gradients": DATA + OPT + TASKS.replace("[p.grad for", "[p.grad.clone() for"),
    "gradients that are set to None": DATA + OPT + TASKS.replace("p.grad.zero_()", "p.grad = None"),
    "norms of gradients": DATA + OPT + TASKS.replace("[p.grad for p in shared]", "[p.grad.norm() for p in shared]")
    .replace("sum(g[at] * 0.3 for g in found)", "torch.ones_like(p) * sum(g[at] for g in found)"),
}  # fmt: skip
WORDS = (
    "it clips sums",
    "it changes the gradients",
    "as a constant, and the other pass",
    "backward passes that also fill",
    "is kept after each pass",
)


@pytest.mark.parametrize("name", WRONG)
def test_sums_of_gradients_are_named(tmp_path: Path, name: str) -> None:
    body, text = WRONG[name]
    (found,) = (each for each in sentences(tmp_path, body) if any(word in each.text for word in WORDS))
    assert text in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_usual_sums_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, RIGHT[name])
    assert [each.text for each in found if any(word in each.text for word in WORDS)] == []


def test_the_call_of_a_function_that_clips_is_labelled(tmp_path: Path) -> None:
    call = "limit(model.parameters(), 0.1)"
    body = CALLED.replace("LIMIT", "p.grad.clamp_(-most, most)").replace(call, f"{call}  #!")
    (found,) = (each for each in sentences(tmp_path, body) if CLIPS in each.text)
    assert {label.role: label.span.line for label in found.labels}["called_here"] == marked(body)
