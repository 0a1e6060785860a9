"""Checks the sentences about schedulers of another length than the training, and about options that no step reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.standing_out import marked, sentences

MODEL = "model = nn.Linear(4, 1)\nf = lambda: model(torch.randn(8, 4)).square().mean()\n"
SGD = "opt = torch.optim.SGD(model.parameters(), lr=0.1)\nfrom torch.optim import lr_scheduler as lrs\n"
START = MODEL + SGD
STEP = "opt.zero_grad(); f().backward(); opt.step()"
BATCHES = f"for epoch in range(4):\n    for batch in range(5):\n        {STEP}\n        schedule.step()\n"
EPOCHS = f"for epoch in range(4):\n    for batch in range(5):\n        {STEP}\n    schedule.step()\n"
RESUMED = """\
def part(saved, length):
    net = nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.OneCycleLR(opt, 0.1, total_steps=20)
    if saved:
        net.load_state_dict(saved[0]), opt.load_state_dict(saved[1]), schedule.load_state_dict(saved[2])
    for _ in range(length):
        opt.zero_grad()
        net(torch.randn(8, 4)).square().mean().backward()
        opt.step()
        schedule.step()
    return net.state_dict(), opt.state_dict(), schedule.state_dict()
part(part((), 10), 10)
"""
PARTS = """\
for batch in range(20):
    (f() / 4).backward()
    if batch % 4 == 3:
        opt.step(); opt.zero_grad()
    schedule.step()
"""
WORDS = ("whose learning rate it changes", "`T_max`", "`total_iters`", "`total_steps`", "which its function reads",
         "no step reads it")  # fmt: skip

WRONG = {
    "epochs, stepped by batches": (
        START + "schedule = lrs.CosineAnnealingLR(opt, T_max=3)  #!\n" + BATCHES,
        "`T_max` is 3: the learning rate of `SGD` rises again after each fall of 3 steps, 3 times, and is between",
    ),
    "a little too long": (
        START + "schedule = lrs.CosineAnnealingLR(opt, 14, eta_min=1e-4)  #!\n" + BATCHES,
        "makes 20 steps, and `T_max` is 14: the learning rate of `SGD` rises again after 14 steps",
    ),
    "batches, stepped by epochs": (
        START + "schedule = lrs.CosineAnnealingLR(opt, T_max=4 * 5)  #!\n" + EPOCHS,
        "`CosineAnnealingLR` makes 4 of the 20 steps of its `T_max`, which is the number of steps of `SGD`: the",
    ),
    "one cycle, stepped by epochs": (
        START + "schedule = lrs.OneCycleLR(opt, 0.1, epochs=4, steps_per_epoch=5)  #!\n" + EPOCHS,
        "`OneCycleLR` makes 4 of the 20 steps of its `total_steps`",
    ),
    "a function of batches, stepped by epochs": (
        START + "TOTAL = 20\nschedule = lrs.LambdaLR(opt, lambda n: max(0.0, 1 - n / TOTAL))  #!\n" + EPOCHS,
        "`LambdaLR` makes 4 of the 20 steps of `TOTAL`, which its function reads and which is the number of steps of",
    ),
    "a function in a function": (
        START + "def made(opt, total):\n    def rate(n):\n        return (n + 1) / 10 if n < 10 else 1 - n / total\n"
        "    return lrs.LambdaLR(opt, rate)  #!\nschedule = made(opt, 20)\n" + EPOCHS,
        "`LambdaLR` makes 4 of the 20 steps of `total`, which its function reads",
    ),
    "an object with a part of its steps for a warm-up": (
        START + "class Rate:\n    def __init__(self, total): self.rise, self.total = 3, total\n"
        "    def __call__(self, n): return 1 - (n - self.rise) / max(1, self.total - self.rise)\n"
        "schedule = lrs.LambdaLR(opt, Rate(20))  #!\n" + EPOCHS,
        "`LambdaLR` makes 4 of the 20 steps of `total`, which its function reads",
    ),
    "a function that another one calls": (
        START + "import functools\ndef line(n, last): return 1 - n / last\n"
        "def rate(n, *, total): return line(n, last=total)\n"
        "schedule = lrs.LambdaLR(opt, functools.partial(rate, total=20))  #!\n" + EPOCHS,
        "`LambdaLR` makes 4 of the 20 steps of `total`, which its function reads",
    ),
    "batches, stepped by the steps of four batches each, beside another model": (
        START + "other = nn.Linear(4, 1)\nslow = torch.optim.SGD(other.parameters(), lr=0.1)\n"
        "schedule = lrs.PolynomialLR(opt, 20)  #!\nfor batch in range(20):\n    (f() / 4).backward()\n"
        "    slow.zero_grad(); other(torch.randn(8, 4)).mean().backward(); slow.step()\n"
        "    if batch % 4 == 3:\n        opt.step(); opt.zero_grad(); schedule.step()\n",
        "the 20 steps of its `total_iters`, which is the number of backward passes that reach its parameters: the",
    ),
    "batches, stepped by the steps of four batches each": (
        START + "schedule = lrs.PolynomialLR(opt, 20)  #!\nfor batch in range(20):\n    (f() / 4).backward()\n"
        "    if batch % 4 == 3:\n        opt.step(); opt.zero_grad(); schedule.step()\n",
        "`PolynomialLR` makes 5 of the 20 steps of its `total_iters`, which is the number of backward passes",
    ),
}  # fmt: skip
WRONG["a step for each of four batches"] = (
    START + "schedule = lrs.StepLR(opt, 20)\nfor update in range(5):\n    for part in range(4):\n"
    "        (f() / 4).backward()\n        schedule.step()  #!\n    opt.step(); opt.zero_grad()\n",
    "`StepLR` makes 20 steps, and `SGD`, whose learning rate it changes, makes 5",
)
WRONG["a step for each batch, made for those of the optimizer"] = (
    START + "schedule = lrs.PolynomialLR(opt, 5)\n" + PARTS.replace("schedule.step()", "schedule.step()  #!"),
    "`PolynomialLR` makes 20 steps, and `SGD`, whose learning rate it changes, makes 5",
)
UNREAD = {
    "defaults": (
        START + f"for i in range(6):\n    {STEP}\n    opt.defaults['lr'] = 0.1 * 0.5 ** i  #!\n",
        '`defaults["lr"]` of `SGD` is changed to 0.003125, and no step reads it: each of 6 steps uses `lr=0.1` of its',
    ),
    "an attribute": (
        START + f"for i in range(6):\n    opt.lr = 0.1 / (1 + i)  #!\n    {STEP}\n",
        "the attribute `lr` of `SGD` is changed to 0.0166667, and no step reads it",
    ),
    "in a function whose optimizer is gone": (
        MODEL + "def train():\n    opt = torch.optim.AdamW(model.parameters(), weight_decay=0.1)\n"
        "    opt.weight_decay = 0.0  #!\n"
        f"    for i in range(8):\n        {STEP}\ntrain()\n",
        "the attribute `weight_decay` of `AdamW` is changed to 0, and no step reads it",
    ),
}  # fmt: skip
RIGHT = {
    "a cosine of all steps": START + "schedule = lrs.CosineAnnealingLR(opt, 20)\n" + BATCHES,
    "a cosine of all epochs": START + "schedule = lrs.CosineAnnealingLR(opt, 4)\n" + EPOCHS,
    "one step too many": START + "schedule = lrs.CosineAnnealingLR(opt, 19)\n" + BATCHES,
    "whole waves that end at the lowest rate": START + "schedule = lrs.CosineAnnealingLR(opt, 4)\n" + BATCHES.replace(
        "range(5)", "range(3)"),
    "a function of batches": START + "TOTAL = 20\nschedule = lrs.LambdaLR(opt, lambda n: 1 - n / TOTAL)\n" + BATCHES,
    "a function of epochs that counts batches": START
    + "TOTAL, EACH = 20, 5\nschedule = lrs.LambdaLR(opt, lambda n: max(0.0, 1 - n * EACH / TOTAL))\n" + EPOCHS,
    "a function that makes steps of epochs, and ends high": START + "TOTAL, EACH = 20, 5\n"
    "schedule = lrs.LambdaLR(opt, lambda n: 1 - 0.2 * n * EACH / TOTAL)\n" + EPOCHS,
    "a function of another count": START + "TOTAL, done = 20, 0\n"
        "schedule = lrs.LambdaLR(opt, lambda n: 1 - 0.4 * done / TOTAL)\n"
        + EPOCHS.replace("step()\n", "step(); done += 1\n"),
    "a function that makes half-epochs of epochs": START + "TOTAL, EACH = 20, 10\n"
        "schedule = lrs.LambdaLR(opt, lambda n: 1 - 0.4 * n * (EACH / 2) / TOTAL)\n" + EPOCHS,
    "a time to halve the rate": START + "HALF = 20\n"
        "schedule = lrs.LambdaLR(opt, lambda n: 0.5 ** (n / HALF))\n" + EPOCHS,
    "a global of the name of a slot": START + "class Of:\n    __slots__ = ('size',)\nof, size = Of(), 20\nof.size = 3\n"
        "schedule = lrs.LambdaLR(opt, lambda n: 1 - n / of.size / 9)\n" + EPOCHS,
    "attributes that a program computes": START + "class Odd:\n    @property\n"
        "    def __dict__(self): raise SystemError\n"
        "    def __call__(self, n): return 0.9 ** n\nschedule = lrs.LambdaLR(opt, Odd())\n" + EPOCHS,
    "a resumed run": START + "opt.param_groups[0]['initial_lr'] = 0.1\nTOTAL = 20\n"
        "schedule = lrs.LambdaLR(opt, lambda n: 1 - 0.3 * min(1, n / TOTAL), last_epoch=9)\n" + EPOCHS,
    "a function of micro-batches": START + "MICRO = 20\nschedule = lrs.LambdaLR(opt, lambda n: 1 - n / MICRO)\n"
        "for batch in range(MICRO):\n    (f() / 4).backward()\n    if batch % 4 == 3:\n        opt.step()\n"
        "        opt.zero_grad()\n    schedule.step()\n",
    "a function of epochs": START + "EPOCHS = 4\nschedule = lrs.LambdaLR(opt, lambda n: 1 - n / EPOCHS)\n" + EPOCHS,
    "a schedule of episodes, some for each step": START + "schedule = lrs.StepLR(opt, 20)\n" + PARTS,
    "a schedule of rounds, beside an update that waits": START + "schedule = lrs.ExponentialLR(opt, 0.99)\nseen = []\n"
    "def update():\n    f().backward(); opt.step(); opt.zero_grad(); seen.clear()\nfor episode in range(20):\n"
    "    seen.append(episode)\n    if len(seen) == 4: update()\n    schedule.step()\n",
    "warm restarts": START + "schedule = lrs.CosineAnnealingWarmRestarts(opt, 4)\n" + BATCHES,
    "two halves, each with its own model": RESUMED,
    "two halves of one model": RESUMED.replace("def", "net = nn.Linear(4, 1)\ndef", 1).replace("    net =", "    #"),
    "a run that is cut short": START + "schedule = lrs.CosineAnnealingLR(opt, 100)\n" + BATCHES,
    "one cycle": START + "schedule = lrs.OneCycleLR(opt, 0.1, total_steps=20)\n" + BATCHES,
    "a warm-up and a cosine": START + "schedule = lrs.SequentialLR(opt, [lrs.LinearLR(opt, 0.1, 1.0, 5), "
        "lrs.CosineAnnealingLR(opt, 15)], [5])\n" + BATCHES,
    "groups": START + f"for i in range(6):\n    opt.param_groups[0]['lr'] = 0.1 * 0.5 ** i\n    {STEP}\n",
    "groups, and a note of the rate": START + f"for i in range(6):\n    opt.lr = 0.1 * 0.5 ** i\n"
        f"    for group in opt.param_groups: group['lr'] = opt.lr\n    {STEP}\n",
    "defaults of the next group": START + "opt.defaults['lr'] = 0.01\nw = nn.Parameter(torch.ones(2))\n"
        f"opt.add_param_group(dict(params=[w]))\nfor i in range(6):\n    {STEP}\n",
    "an optimizer of the program's own": MODEL + "class Own(torch.optim.SGD):\n    def step(self, closure=None):\n"
        "        for group in self.param_groups: group['lr'] = self.lr\n        return super().step(closure)\n"
        f"opt = Own(model.parameters(), lr=0.1)\nopt.lr = 0.05\nfor i in range(6):\n    {STEP}\n",
}  # fmt: skip


@pytest.mark.parametrize("name", [*WRONG, *UNREAD])
def test_another_length_and_unread_options_are_named(tmp_path: Path, name: str) -> None:
    body, text = (WRONG | UNREAD)[name]
    (found,) = (each for each in sentences(tmp_path, body) if any(word in each.text for word in WORDS))
    assert text in found.text
    assert found.labels[0].span.line == marked(body)


@pytest.mark.parametrize("name", RIGHT)
def test_usual_schedules_are_left_alone(tmp_path: Path, name: str) -> None:
    found = sentences(tmp_path, RIGHT[name])
    assert [each.text for each in found if any(word in each.text for word in WORDS)] == []
